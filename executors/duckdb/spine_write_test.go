package duckdb

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/retrofill/retrofill/planner/compile/spine"
)

// carryOut runs work as a runner does: facts are collected, the rules judged
// at the end. It gives the facts and the codes of the rules that do not hold,
// each with its slot.
func carryOut(t *testing.T, db *spineDB, w spine.Work) (facts map[string]int64, broken []string) {
	t.Helper()
	facts = map[string]int64{}
	for _, s := range w.Statements {
		if s.Role != "facts" {
			if _, err := db.Exec(s.SQL); err != nil {
				t.Fatalf("%s %s: %v\n%s", s.Role, s.Target, err, s.SQL)
			}
			continue
		}
		rows, err := db.Query(s.SQL)
		if err != nil {
			t.Fatalf("%s: %v\n%s", s.Name, err, s.SQL)
		}
		cols, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			n++
			vals, into := make([]int64, len(cols)), make([]any, len(cols))
			for i := range vals {
				into[i] = &vals[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, c := range cols {
				facts[s.Name+"."+c] = vals[i]
			}
		}
		if err := rows.Err(); err != nil || n != 1 {
			t.Fatalf("%s: %d rows of facts, %v", s.Name, n, err)
		}
	}
	for _, r := range w.Verify {
		v, ok := facts[r.Fact]
		if !ok {
			t.Fatalf("no fact %s", r.Fact)
		}
		bad := r.Kind == "zero" && v != 0
		if r.Kind == "not_emptied" {
			had, ok := facts[r.Other]
			if !ok {
				t.Fatalf("no fact %s", r.Other)
			}
			bad = v == 0 && had != 0
		}
		if bad {
			broken = append(broken, fmt.Sprintf("%s@%d", r.Code, r.Slot))
		}
	}
	return facts, broken
}

const (
	writeBody = "select id, user_id, qty, price, fl, '${dd}' d from fact where ds = '${ds}' qualify row_number() over (partition by id order by price) = 1"
	oneNode   = "CREATE TABLE t (ds DATE, id INTEGER, user_id INTEGER, qty INTEGER, price DECIMAL(10,2), fl DOUBLE, d VARCHAR)"
)

func writeTarget(nodes ...spine.Node) spine.Target {
	return spine.Target{Nodes: nodes, Key: []string{"id"}}
}

func fields(names ...string) []spine.Field {
	types := map[string]string{"id": "INTEGER", "user_id": "INTEGER", "qty": "INTEGER", "price": "DECIMAL(10,2)", "fl": "DOUBLE", "d": "VARCHAR", "m": "INTEGER"}
	var out []spine.Field
	for _, n := range names {
		out = append(out, spine.Field{Name: n, Type: types[n]})
	}
	return out
}

// TestSpineWrite replaces exactly the selected partitions, of one node and of
// several, in the lateral form and in chunks of UNION ALL.
func TestSpineWrite(t *testing.T) {
	t.Parallel()
	b := newSpineBench(t)
	for _, form := range []spine.Form{spine.Lateral, spine.UnionAll} {
		for _, nodes := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d nodes", form, nodes), func(t *testing.T) {
				t.Parallel()
				db := b.open(t)
				in := b.input(t, writeBody, db)
				in.Partition = []spine.Column{{Name: "ds", Type: "DATE"}}
				in.Slots = append(in.Slots[:1], in.Slots[2:]...) // sparse: 2024-02-28 is not selected
				in.MaxUnion = 4
				c, r, err := spine.ChooseFrom(t.Context(), in, form)
				if err != nil || r != nil {
					t.Fatal(err, r)
				}
				target := writeTarget(spine.Node{Name: "t", Table: `"t"`, Fields: fields("id", "user_id", "qty", "price", "fl", "d")})
				ddl := []string{oneNode}
				if nodes == 2 {
					target = writeTarget(spine.Node{Name: "t", Table: `"t"`, Fields: fields("id", "user_id", "qty", "fl")}, spine.Node{Name: "u", Table: `"u"`, Fields: fields("id", "price", "d")})
					ddl = []string{"CREATE TABLE t (ds DATE, id INTEGER, user_id INTEGER, qty INTEGER, fl DOUBLE)", "CREATE TABLE u (ds DATE, id INTEGER, price DECIMAL(10,2), d VARCHAR)"}
				}
				for _, s := range append(ddl, "INSERT INTO t BY NAME SELECT DATE '2024-02-28' ds, 7 id UNION ALL SELECT DATE '2024-02-29', 8") {
					if _, err := db.Exec(s); err != nil {
						t.Fatal(err)
					}
				}
				w, r := spine.Write(in, c, target, spine.CheckSlots(len(in.Slots), 4, []int{2}, 1))
				if r != nil {
					t.Fatal(r)
				}
				facts, broken := carryOut(t, db, w)
				if len(broken) > 0 {
					t.Errorf("broken rules %q", broken)
				}
				if got := [3]int64{facts[spine.RowsFact(0)], facts[spine.RowsFact(2)], facts[spine.HadFact("t", 1)]}; got != [3]int64{6, 0, 1} {
					t.Errorf("rows of the first date, of the empty one, and before on the second: %v", got)
				}
				var kept, rest int
				if err := db.QueryRow("SELECT count(*) FILTER (WHERE ds = '2024-02-28' AND id = 7), count(*) FILTER (WHERE ds <> '2024-02-28') FROM t").Scan(&kept, &rest); err != nil {
					t.Fatal(err)
				}
				if kept != 1 || rest != 27 {
					t.Errorf("%d rows of the date that is not selected, %d others", kept, rest)
				}
			})
		}
	}
}

// TestSpineWriteBreaks: repeated and NULL keys and an emptied partition are
// found on their dates.
func TestSpineWriteBreaks(t *testing.T) {
	t.Parallel()
	b := newSpineBench(t)
	db := b.open(t)
	in := b.input(t, "select case when id = 18 then null else id end id, qty from fact where ds = '${ds}'", db)
	in.Partition = []spine.Column{{Name: "ds", Type: "DATE"}, {Name: "pt", Type: "VARCHAR"}}
	for i := range in.Slots {
		in.Slots[i].Partition = []string{in.Slots[i].ID, "x'"}
	}
	c, r, err := spine.Choose(t.Context(), in)
	if err != nil || r != nil {
		t.Fatal(err, r)
	}
	for _, s := range []string{"CREATE TABLE t (ds DATE, pt VARCHAR, id INTEGER, qty INTEGER)", "INSERT INTO t VALUES ('2024-03-15', 'x''', 1, 1), ('2024-03-31', 'y', 1, 1)"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	w, r := spine.Write(in, c, writeTarget(spine.Node{Name: "t", Table: "t", Fields: fields("id", "qty")}), []int{0, 3})
	if r != nil {
		t.Fatal(r)
	}
	_, broken := carryOut(t, db, w)
	if got := strings.Join(broken, " "); got != "key_null@1 key_duplicate@2 emptied@3" {
		t.Errorf("broken rules: %s", got)
	}
	var other int
	if err := db.QueryRow("SELECT count(*) FROM t WHERE pt = 'y'").Scan(&other); err != nil || other != 1 {
		t.Errorf("the other partition holds %d rows, %v", other, err)
	}
}

// TestSpineSelfCheck gives the self-check forms that are wrong on purpose: the
// traps, and a filter forgotten. An order-dependent sum must pass.
func TestSpineSelfCheck(t *testing.T) {
	t.Parallel()
	b := newSpineBench(t)
	for _, c := range []struct {
		name, sql, wrong, field string
		check                   []int
		found                   bool
	}{
		{"right", "select max(id) m from fact where ds = '${ds}'", "", "m", []int{0, 3, 6}, false},
		{"lost empty row", "select max(id) m from fact where ds = '${ds}' order by 1", "select max(id) m from fact where ds = CAST(_rf.ds AS DATE) order by 1", "m", []int{0, 3, 6}, true},
		{"not seen without the empty date", "select max(id) m from fact where ds = '${ds}' order by 1", "select max(id) m from fact where ds = CAST(_rf.ds AS DATE) order by 1", "m", []int{0, 6}, false},
		{"filter forgotten", "select min(id) m from fact where ds = '${ds}'", "select min(id) m from fact where ds <= CAST(_rf.ds AS DATE)", "m", []int{1}, true},
		{"repeated rows", "select id m from fact where ds = '${ds}'", "select distinct id m from fact where ds = CAST(_rf.ds AS DATE)", "m", []int{2}, true},
		{"last digits", "select sum(fl) fl from fact where ds <= '${ds}'", "select sum(fl) + 1e-13 fl from fact where ds <= CAST(_rf.ds AS DATE)", "fl", []int{0, 5}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := b.open(t)
			in := b.input(t, c.sql, db)
			in.Partition = []spine.Column{{Name: "ds", Type: "DATE"}}
			got, r, err := spine.Choose(t.Context(), in)
			if err != nil || r != nil {
				t.Fatal(err, r)
			}
			got.Form = spine.Lateral
			if c.wrong != "" {
				var rows []string
				for i, s := range in.Slots {
					rows = append(rows, fmt.Sprintf("(%d, DATE '%s', '%s')", i, s.ID, s.ID))
				}
				got.Chunks = []spine.Chunk{{To: len(in.Slots), SQL: "SELECT _rf._rf_slot, _rf._rf_part_0, q.* FROM (VALUES " + strings.Join(rows, ", ") +
					") AS _rf(_rf_slot, _rf_part_0, ds), LATERAL (" + c.wrong + ") q"}}
			}
			typ := fields(c.field)[0].Type
			if _, err := db.Exec(fmt.Sprintf("CREATE TABLE t (ds DATE, %s %s)", c.field, typ)); err != nil {
				t.Fatal(err)
			}
			w, r := spine.Write(in, got, spine.Target{Nodes: []spine.Node{{Name: "t", Table: "t", Fields: fields(c.field)}}}, c.check)
			if r != nil {
				t.Fatal(r)
			}
			_, broken := carryOut(t, db, w)
			if (len(broken) > 0) != c.found {
				t.Errorf("broken rules: %q", broken)
			}
		})
	}
}

// TestSpineMetamorphic: for random bodies every form gives the rows of the
// per-date runs. RETROFILL_SEED repeats a run.
func TestSpineMetamorphic(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s := os.Getenv("RETROFILL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("RETROFILL_SEED=%d", seed)
	b := newSpineBench(t)
	db := b.open(t)
	g := bodyMaker{rand.New(rand.NewPCG(seed, 0))}
	forms := map[string]int{}
	for range 60 {
		text := g.body(2)
		in := b.input(t, text, db)
		in.Dense = g.IntN(2) == 0
		if err := b.perDate(db, in); err != nil {
			t.Fatalf("per date: %v\n%s", err, text)
		}
		want, _, err := digest(db, "pd")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []spine.Form{spine.Lateral, spine.Constants, spine.Repaired, spine.UnionAll} {
			c, r, err := spine.ChooseFrom(t.Context(), in, f)
			if err != nil {
				t.Fatal(err)
			}
			if r != nil {
				forms[string(f)+" "+string(r.Kind)]++
				continue
			}
			forms[string(f)]++
			b.same(t, db, in, c, want)
			if t.Failed() {
				t.Fatalf("RETROFILL_SEED=%d\n%s", seed, text)
			}
		}
	}
	t.Log(forms)
	if forms["lateral"] < 30 || forms["union_all"] < 50 {
		t.Errorf("too few bodies are accepted: %v", forms)
	}
}

// bodyMaker makes random bodies with columns a (INTEGER) and c (VARCHAR) from
// the tables of the case file. All of them are deterministic.
type bodyMaker struct{ *rand.Rand }

func (g bodyMaker) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g bodyMaker) filter(alias string) string {
	return g.pick(alias+"ds = '${ds}'", alias+"ds = DATE '${ds}'", alias+"ds between '${yesterday}' and '${ds}'", "strftime("+alias+"ds, '%Y%m') = '${ym}'",
		alias+"ds > DATE '${ds}' - INTERVAL ${days} DAY and "+alias+"ds <= '${ds}'", alias+"ds in ('${ds}', '${next_day}')", "not ("+alias+"ds <> '${ds}')")
}

func (g bodyMaker) source(depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		return "(" + g.body(depth-1) + ")"
	}
	return g.pick("(select id a, cat c from fact where "+g.filter("")+")", "(select user_id a, city c from dim_day where "+g.filter("")+")",
		"(select user_id a, name c from dim_user)", "(select id a, cat c from fact_s where pt = '${bizdate}')")
}

func (g bodyMaker) body(depth int) string {
	s := g.source(depth)
	kind := g.IntN(14)
	if kind == 5 && depth < 2 {
		// DuckDB 1.5.6 pushes a join's filter below ORDER BY … LIMIT now and then:
		// the same text over a limited subquery gives other rows on other runs.
		kind = 0
	}
	switch kind {
	case 0:
		return "select a, c from " + s + " x where a > ${k} or c = '${cat}'"
	case 1:
		return "select c, count(*)::int a from " + s + " x group by c"
	case 2:
		return "select " + g.pick("max", "min", "count", "sum") + "(a)::int a, max(c) c from " + s + " x"
	case 3:
		return "select distinct a, c from " + s + " x" + g.pick("", " order by 1, 2")
	case 4:
		return "select a, c from " + s + " x " + g.pick("union", "union all", "except", "intersect", "except all") + " select a, c from " + g.source(depth-1) + " y"
	case 5:
		return "select a, c from " + s + " x order by a, c limit " + g.pick("1", "3", "${two}")
	case 6:
		return "select row_number() over (order by a, c)::int a, c from " + s + " x"
	case 7:
		return "with w as (select a, c from " + s + " x) select a, c from w where a " + g.pick("in", "not in") + " (select a from w where a > ${k})"
	case 8:
		return "with w as (select a, c from " + s + " x) select x.a, y.c from w x join w y on x.a = y.a"
	case 9:
		return "select x.a, x.c from " + s + " x " + g.pick("join", "left join", "full join", "anti join") + " " + "(select a, c from " + g.source(depth-1) + " z) y on x.a = y.a"
	case 10:
		return "select a, (select max(c) from " + g.source(depth-1) + " y where y.a <= x.a) c from " + s + " x"
	case 11:
		return "select coalesce(a, '${k}') a, case when c < 'b' then c else '${dd}' end c from " + s + " x"
	case 12:
		return "select max(a) a, c from " + s + " x group by " + g.pick("rollup (c)", "c having max(a) > ${k}", "c")
	}
	return "select a, c from " + s + " x where " + g.pick("", "not ") + "exists (select 1 from " + g.source(depth-1) + " y where y.a = x.a)"
}
