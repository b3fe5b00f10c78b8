package duckdb

import (
	"testing"

	"github.com/retrofill/retrofill/planner/compile/spine"
)

// ownBody is a body of our own: the kind of the lateral form's refusal, ""
// for none. Its rows are compared with the per-date runs in every form.
type ownBody struct {
	id, refuse, sql string
}

// TestSpineOwn runs bodies that the case file does not hold, in every form.
func TestSpineOwn(t *testing.T) {
	t.Parallel()
	b := newSpineBench(t)
	for _, c := range ownBodies() {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			db := b.open(t)
			in := b.input(t, c.sql, db)
			perDate := b.perDate(db, in)
			var want spineRows
			if perDate == nil {
				var err error
				if want, _, err = digest(db, "pd"); err != nil {
					t.Fatal(err)
				}
			}
			got, refused, err := spine.Compile(t.Context(), in)
			switch {
			case err != nil:
				t.Fatal(err)
			case refused == nil && c.refuse != "":
				t.Errorf("not refused, want %s", c.refuse)
			case refused != nil && string(refused.Kind) != c.refuse:
				t.Errorf("refused: %v, want %q", refused, c.refuse)
			}
			if perDate != nil {
				if refused == nil {
					t.Errorf("per date fails (%v), the lateral form does not", perDate)
				}
				return
			}
			if refused == nil {
				b.same(t, db, in, got, want)
			}
			// The syntax alone, without an engine, must not accept what is wrong.
			in.Probe = nil
			if blind, r, err := spine.Compile(t.Context(), in); err != nil {
				t.Fatal(err)
			} else if r == nil && refused != nil && refused.Kind != spine.Unsupported {
				t.Errorf("without an engine %s is accepted\n%s", refused.Kind, blind.Chunks[0].SQL)
			}
			in.Probe = db
			for _, f := range []spine.Form{spine.Constants, spine.Repaired, spine.UnionAll} {
				got, r, err := spine.ChooseFrom(t.Context(), in, f)
				if err != nil {
					t.Fatal(err)
				}
				if r == nil {
					b.same(t, db, in, got, want)
				} else if f == spine.UnionAll && !r.All {
					t.Errorf("UNION ALL: %v", r)
				}
			}
		})
	}
}

func ownBodies() []ownBody {
	return []ownBody{
		{"tz-literal", "", "select id, ts::timestamptz < TIMESTAMP WITH TIME ZONE '${ds} 12:00:00+00' v from fact where ds = '${ds}'"},
		{"decimal-literal", "", "select DECIMAL(6,2) '${dec}' v, id from fact where ds = DATE '${ds}'"},
		{"double-precision", "", "select DOUBLE PRECISION '${dec}' v"},
		{"interval-text", "", "select id from fact where ds > DATE '${ds}' - INTERVAL '${k} days' and ds <= DATE '${ds}'"},
		{"interval-plural", "", "select DATE '${ds}' + INTERVAL '${k}' MONTHS v, DATE '${ds}' - INTERVAL ${days} HOURS w"},
		{"interval-glued", "", "select DATE '${ds}' - INTERVAL ${k}${two} DAY v"},
		{"cast-operator", "", "select '${ds}'::date v, '${k}'::int + 1 w, try_cast('${cat}' as int) x"},
		{"national", "unsupported_by_engine", "select N'${cat}x' v"},
		{"continued", "", "select 'a${dd}'\n  'b${mm}' v"},
		{"union-names", "", "select id a, '${dd}' b from fact where ds = '${ds}' union all by name select '${mm}' b, 3 a"},
		{"between-literal", "", "select id from fact where '${ds}' between ds and ds + 1"},
		{"flipped", "", "select id from fact where '${cut}' < qty and '${ds}' = ds"},
		{"in-literal-left", "", "select id from fact where '${ds}' in (ds, ds + 1)"},
		{"not-in-list", "", "select id from fact where ds not in ('${ds}', '${yesterday}')"},
		{"nullif", "", "select id, nullif(qty, '${cut}') v, ifnull(qty, '${cut}') w from fact where ds = '${ds}'"},
		{"least-dates", "", "select id, least(ds, '${yesterday}') v from fact where ds = '${ds}'"},
		{"case-mixed", "", "select id, case when qty > 5 then qty else '${cut}' end v from fact where ds = '${ds}'"},
		{"date-diff", "", "select id, date_diff('day', '${ds}', ds) v from fact where ds <= '${ds}'"},
		{"is-distinct", "", "select id from fact where qty is distinct from '${cut}' and ds = '${ds}'"},
		{"having-literal", "", "select cat, sum(qty) s from fact where ds <= '${ds}' group by cat having sum(qty) > '${cut}'"},
		{"tuple-equal", "", "select id from fact where (ds, qty) = ('${ds}', '${cut}')"},
		{"pow-negative", "parameter_changes_syntax", "select ${neg}::varchar v"},
		{"minus-blank", "", "select 10 - ${neg} v, - ${k} w"},
		{"decimal-varies", "", "select ${dec} v, ${dec} * 2 w, price * ${dec} x from fact where ds = '${ds}'"},
		{"decimal-typeof", "parameter_type_varies", "select typeof(${dec}) v"},
		{"decimal-text", "parameter_type_varies", "select ${dec}::varchar v"},
		{"big-compare", "", "select n from nums where n < ${big}"},
		{"glued-decimal", "", "select ${k}.5 v, 0.${dd} w"},
		{"exponent", "", "select ${k}e2 v"},
		{"group-position", "parameter_in_position", "select cat, qty, count(*) n from fact where ds = '${ds}' group by ${pos}, 1, 2"},
		{"distinct-on-position", "parameter_in_position", "select distinct on (${pos}) id, qty from fact where ds = '${ds}' order by id, qty, price"},
		{"alias-string", "parameter_in_identifier", "select id as 'n${dd}' from fact where ds = '${ds}'"},
		{"name-suffix", "parameter_in_identifier", "select id from fact_${k} where 1 = 1"},
		{"type-modifier", "parameter_in_identifier", "select price::decimal(1${k}, 2) v from fact where ds = '${ds}'"},
		{"star-like", "parameter_in_identifier", "select * like '${col}%' from fact where ds = '${ds}'"},
		{"columns-lambda", "parameter_in_identifier", "select columns(c -> c like '${col}%') from fact where ds = '${ds}'"},
		{"qualified-column", "parameter_in_identifier", "select f.${col} v from fact f where ds = '${ds}'"},
		{"read-csv-option", "parameter_in_table_function", "select * from read_csv('x.csv', delim = '${sep}')"},
		{"query-function", "parameter_in_table_function", "select * from query('select ${k} v')"},
		{"generate-two", "", "select g.i from generate_series(1, ${k}) g(i)"},
		{"unnest-param", "", "select unnest(['${ds}', '${cat}']) v"},
		{"unnest-from", "", "select u.v from unnest([${k}, ${dd}]) u(v)"},
		{"macro-scalar", "", "select dbl(${k}) v, day_total(DATE '${ds}') w"},
		{"json-arrow", "", "select id, js->'${key}' v, js->>'${key}' w from fact where ds = '${ds}'"},
		{"json-path", "", "select id, js->>'$.${key}' v from fact where ds = '${ds}'"},
		{"list-index", "", "select id, tags[${two}] v from fact where ds = '${ds}'"},
		{"list-contains", "", "select id from fact where list_contains(tags, '${key}') and ds = '${ds}'"},
		{"lambda", "unsupported_by_engine", "select id, list_filter(tags, x -> x = '${key}') v from fact where ds = '${ds}'"},
		{"strftime-format", "unsupported_by_engine", "select id, strftime(ds, '${fmtp}') v from fact where ds = '${ds}'"},
		{"date-trunc", "", "select id, date_trunc('${part}', ds) v, date_part('${part}', ds) w from fact where ds = '${ds}'"},
		{"offset", "unsupported_by_engine", "select id from fact where ds = '${ds}' order by id, price offset ${k}"},
		{"window-order-param", "unsupported_by_engine", "select id, row_number() over (order by abs(id - ${dd}), id, price) v from fact where ds = '${ds}'"},
		{"lag-default", "unsupported_by_engine", "select id, lag(id, 1, ${k}) over (order by id, price) v from fact where ds = '${ds}'"},
		{"agg-filter-param", "", "select sum(qty) filter (where qty > ${k}) v, count(*) filter (where cat = '${cat}') w from fact where ds = '${ds}'"},
		{"agg-only-param-max", "unsupported_by_engine", "select max('${ds}') v, count(*) n from fact where ds = '${ds}'"},
		{"left-join-on-right", "unsupported_by_engine", "select f.id, d.level from fact f left join dim_day d on d.user_id = f.user_id and d.ds = DATE '${ds}' where f.ds = DATE '${ds}'"},
		{"semi-join", "unsupported_by_engine", "select f.id from (select * from fact where ds = '${ds}') f semi join dim_user u on u.user_id = f.user_id"},
		{"join-using", "", "select f.id, u.name from (select * from fact where ds = '${ds}') f join dim_user u using (user_id)"},
		{"natural-join", "", "select id, name from (select id, user_id from fact where ds = '${ds}') f natural join dim_user"},
		{"asof-left-outer", "wrong_on_engine", "select f.id, r.rate from (select * from fact where ds = '${ds}') f asof left join (select * from rates where eff <= DATE '${ds}') r on f.cat = r.cat and f.ds >= r.eff"},
		{"set-op-count", "", "select count(*) n, sum(qty) s from fact where ds = '${ds}' union all select 0, 0"},
		{"distinct-limit-max", "wrong_on_engine", "select distinct max(id) m from fact where ds = '${ds}' limit 5"},
		{"nested-order", "wrong_on_engine", "select m from (select m from (select max(id) m from fact where ds = '${ds}')) order by m"},
		{"group-above-union", "wrong_on_engine", "select n from (select m, 1 n from (select max(id) m from fact where ds = '${ds}') group by m) union all select 1"},
		{"group-count-order", "", "select n from (select m, count(*) n from (select max(id) m from fact where ds = '${ds}') group by m) order by n"},
		{"rollup-order", "wrong_on_engine", "select cat, max(id) m from fact where ds = '${ds}' group by rollup (cat) order by 1"},
		{"rollup-approx", "wrong_on_engine", "select cat, approx_count_distinct(id) v from fact where ds = '${ds}' group by rollup (cat)"},
		{"approx-grouped", "", "select cat, approx_count_distinct(id) v from fact where ds = '${ds}' group by cat"},
		{"entropy", "wrong_on_engine", "select entropy(qty) + 1 v from fact where ds = '${ds}'"},
		{"max-having", "wrong_on_engine", "select max(id) m from fact where ds = '${ds}' having max(id) is null order by 1"},
		{"scalar-max-order", "", "select u.name, (select max(id) from fact where ds = '${ds}' order by 1) v from dim_user u"},
		{"max-hidden-null", "", "select coalesce(max(id), 0) v, max(id) w from fact where ds = '${ds}' order by 1"},
		{"max-hidden-null-union", "", "select 'x' k, case when max(id) is null then 0 end v from fact where ds = '${ds}' union all select 'y', sum(coalesce(level, 0)) from dim_day where ds = '${ds}'"},
		{"scalar-count-union", "wrong_on_engine", "select name, (select count(*) from (select max(id) m from fact where ds = '${ds}' union all select 1)) v from dim_user"},
		{"scalar-approx", "wrong_on_engine", "select name, (select approx_count_distinct(id) from fact where ds = '${ds}') v from dim_user"},
		{"in-max-union", "", "select name, user_id in (select max(id) from fact where ds = '${ds}' union all select 2) v from dim_user"},
		{"in-max", "", "select id, id in (select max(id) from fact where ds = '${ds}') v from fact"},
		{"cte-chain-in", "wrong_on_engine", "with a as (select * from dim_day where ds = '${ds}'), b as (select user_id from a) select name, user_id in (select user_id from b) v from dim_user"},
		{"cte-columns-in", "wrong_on_engine", "with b(u) as (select user_id from dim_day where ds = '${ds}') select name, user_id in (select u from b) v from dim_user"},
		{"cte-any", "wrong_on_engine", "with b as (select level from dim_day where ds = '${ds}') select id, qty > all (select level from b) v, qty = any (select level from b x) w from fact"},
		{"cte-scalar-count", "unsupported_by_engine", "with a as (select user_id from dim_day where ds = '${ds}') select name, (select count(*) from a where a.user_id = u.user_id) n from dim_user u"},
		{"cte-exists-plain", "", "with a as (select user_id from dim_day where ds = '${ds}') select name from dim_user where exists (select 1 from a)"},
		{"cte-untainted-exists", "", "with a as (select user_id, ds from dim_day) select name from dim_user u where exists (select 1 from a where a.user_id = u.user_id and a.ds = '${ds}')"},
		{"cte-shadow", "", "with fact as (select * from dim_day where ds = '${ds}') select user_id, level from fact"},
		{"values-body", "", "values ('${ds}', ${k})"},
		{"no-params", "", "select n from nums"},
		{"comment-end", "", "select id from fact where ds = '${ds}' -- the end ${nowhere}"},
		{"spine-alias-used", "", "select _rf.id from fact _rf where _rf.ds = '${ds}'"},
		{"time-expression", "", "select id from fact where ds between '${yyyy-mm-dd - 1}' and '${yyyy-mm-dd}'"},
		{"nd-clock-word", "nondeterministic", "select id, current_timestamp v from fact where ds = '${ds}'"},
		{"nd-limit-subquery", "nondeterministic", "select id from (select id from fact where ds = '${ds}' limit 2)"},
		{"sample-param", "sample", "select id from fact where ds = '${ds}' using sample ${k}"},
		{"self-cte", "self_dependency", "with a as (select * from summary_t where ds = '${yesterday}') select id from a where qty > ${k}"},
		{"select-into-delete", "not_a_select", "delete from wide where ds = '${ds}'"},
		{"two-selects", "multi_statement", "select '${ds}'; select 2;"},
	}
}
