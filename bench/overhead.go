package bench

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver, for running floors bare

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/fixtures"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/planner"
)

//go:embed floor/overhead_session.sql
var overheadSession string

//go:embed floor/overhead_sources.sql
var overheadSources string

//go:embed floor/checksum.sql
var checksum string

// The goals of issue 3, "Speed".
const (
	goalInstance = 0.002 // seconds of retrofill's own for a durable instance
	goalNoOp     = 5000  // no-op instances a second
	goalStart    = 0.150 // seconds from process start to the first statement
)

// overhead measures what retrofill adds to the engine's time.
func overhead(ctx context.Context, r *runner) error {
	if err := r.durable(ctx); err != nil {
		return err
	}
	if err := r.noOp(ctx); err != nil {
		return err
	}
	return r.start(ctx)
}

const overheadFile = "overhead.duckdb"

// overheadProject writes the project of the suite: a fact table, a summary
// over it, a monthly table, and tables whose instances are dry runs.
func overheadProject(dir string, dry int) error {
	files := map[string]string{
		"retrofill.yml": `name: overhead
engines:
  local: {type: duckdb, path: ` + overheadFile + `}
environments:
  dev: {engine: local, schema: dw}
params: {day: "${yyyy-mm-dd}"}
sources:
  - table: src.events
    partition: {ds: "${yyyy-mm-dd}"}
`,
		"models/fct.yml":   "table: fct\nkind: fact\nkey: [id]\npartition: {ds: \"${yyyy-mm-dd}\"}\n",
		"models/fct.sql":   "SELECT e.id, e.region, e.amount, e.amount * 2 AS twice\nFROM src.events e\nWHERE e.ds = '${day}'\n",
		"models/agg.yml":   "table: agg\nkind: summary\nkey: [region]\npartition: {ds: \"${yyyy-mm-dd}\"}\n",
		"models/agg.sql":   "SELECT f.region, count(*) AS n, sum(f.amount) AS amount\nFROM fct f\nWHERE f.ds = '${day}'\nGROUP BY f.region\n",
		"models/month.yml": "table: month\nkind: dimension\nkey: [region]\npartition: {ds: \"${yyyy-mm-dd}\"}\nschedule: {cycle: monthly, monthdays: [1]}\n",
		"models/month.sql": "SELECT DISTINCT e.region\nFROM src.events e\nWHERE e.ds = '${day}'\n",
	}
	for i := range dry {
		base := fmt.Sprintf("models/dry_%02d", i)
		files[base+".yml"] = fmt.Sprintf("table: dry_%02d\nkind: summary\nkey: [region]\npartition: {ds: \"${yyyy-mm-dd}\"}\ndry_run: true\n", i)
		files[base+".sql"] = "SELECT m.region\nFROM month m\nWHERE m.ds = '${day}'\n"
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("write project: %w", err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write project: %w", err)
		}
	}
	return nil
}

// bare opens a database file as the engine does, on one connection.
func bare(ctx context.Context, file string, script ...string) (_ *sql.DB, err error) {
	db, err := sql.Open("duckdb", file+"?autoinstall_known_extensions=false&autoload_known_extensions=false")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Base(file), err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range append([]string{overheadSession}, script...) {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare %s: %w", filepath.Base(file), err), db.Close())
		}
	}
	return db, nil
}

// fresh makes a folder with the project and the sources.
func (r *runner) fresh(ctx context.Context, name string, dry int) (dir string, err error) {
	if dir, err = os.MkdirTemp(r.cfg.Dir, name+"-"); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	if err := overheadProject(dir, dry); err != nil {
		return "", err
	}
	db, err := bare(ctx, filepath.Join(dir, overheadFile), overheadSources)
	if err != nil {
		return "", err
	}
	return dir, db.Close()
}

// durable measures retrofill's own time for an instance: a run's time less
// that of the very statements that it gave the engine, run bare, each unit in
// BEGIN and COMMIT on one connection of another fresh database. The ratio is
// to the goal.
func (r *runner) durable(ctx context.Context) error {
	days := 183
	if r.cfg.Short {
		days = 10
	}
	first := bizdate.Of(2024, time.January, 1)
	req := planner.Request{Nodes: []string{"fct"}, Downstream: 1,
		Selection: bizdate.Selection{Start: first.String(), End: (first + bizdate.Date(days-1)).String()}}
	return r.measure(ctx, measured{
		name: "durable_instance", target: 1, goal: goalInstance, want: "equal",
		run: func(ctx context.Context, round int) (sample, error) {
			var mine, floor sample
			var units *recorder
			var err error
			if mine, units, err = r.durableRun(ctx, req); err != nil {
				return sample{}, err
			}
			if floor, err = r.durableBare(ctx, units); err != nil {
				return sample{}, err
			}
			n := len(units.units)
			s := sample{seconds: (mine.seconds - floor.seconds) / float64(n), rows: mine.rows, statements: mine.statements, sum: "equal"}
			if mine.sum != floor.sum {
				s.sum = mine.sum + " instead of " + floor.sum
			}
			if round == r.cfg.Rounds-1 {
				r.note("durable_instance: in the last round %d instances took %s s, their statements run bare %s s (×%.2f)",
					n, short(mine.seconds), short(floor.seconds), mine.seconds/floor.seconds)
			}
			return s, nil
		},
	})
}

func (r *runner) durableRun(ctx context.Context, req planner.Request) (out sample, rec *recorder, err error) {
	dir, err := r.fresh(ctx, "overhead", 0)
	if err != nil {
		return out, nil, err
	}
	s, err := openSession(ctx, dir, overheadFile, 1, r.cfg.Clock)
	if err != nil {
		return out, nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	p, err := s.plan(ctx, req)
	if err != nil {
		return out, nil, err
	}
	claim, err := s.claim(ctx, p)
	if err != nil {
		return out, nil, err
	}
	out.seconds, err = r.seconds(func() error {
		sum, err := s.run(ctx, p, claim)
		out.rows = sum.Rows
		return err
	})
	if err != nil {
		return out, nil, err
	}
	for _, u := range s.engine.units {
		out.statements += int64(len(u.Statements))
	}
	rows, err := s.engine.Query(ctx, sumOf("dw.fct__main")+" UNION ALL "+sumOf("dw.agg__main"), 0)
	if err != nil {
		return out, nil, err
	}
	out.sum = fmt.Sprint(rows.Values)
	return out, s.engine, nil
}

func sumOf(table string) string {
	return fmt.Sprintf(strings.TrimSpace(checksum[strings.Index(checksum, "\n"):]), table)
}

// durableBare runs recorded units without retrofill.
func (r *runner) durableBare(ctx context.Context, rec *recorder) (out sample, err error) {
	dir, err := r.fresh(ctx, "bare", 0)
	if err != nil {
		return out, err
	}
	db, err := bare(ctx, filepath.Join(dir, overheadFile))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return out, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	out.seconds, err = r.seconds(func() error {
		for _, s := range rec.prepared {
			if _, err := conn.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		for _, u := range rec.units {
			if err := bareUnit(ctx, conn, u); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("run bare: %w", err)
	}
	rows, err := conn.QueryContext(ctx, sumOf("dw.fct__main")+" UNION ALL "+sumOf("dw.agg__main"))
	if err != nil {
		return out, fmt.Errorf("sum up: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var list [][]any
	for rows.Next() {
		var n int64
		var h string
		if err := rows.Scan(&n, &h); err != nil {
			return out, fmt.Errorf("sum up: %w", err)
		}
		list = append(list, []any{n, h})
	}
	out.sum = fmt.Sprint(list)
	return out, rows.Err()
}

func bareUnit(ctx context.Context, conn *sql.Conn, u executors.Unit) error {
	if _, err := conn.ExecContext(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	for _, s := range u.Statements {
		if s.Role != executors.RoleFacts {
			if _, err := conn.ExecContext(ctx, s.SQL); err != nil {
				return err
			}
			continue
		}
		rows, err := conn.QueryContext(ctx, s.SQL)
		if err != nil {
			return err
		}
		for rows.Next() { // the numbers are fetched, nobody looks at them
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

// noOp measures durable instances that run nothing: dry runs over a year, in
// the ledger one by one. The few real instances that a plan must have are
// measured along.
func (r *runner) noOp(ctx context.Context) error {
	dry, end := 20, "2024-12-31"
	if r.cfg.Short {
		dry, end = 2, "2024-01-31"
	}
	var planned int
	m := measured{name: "no_op_instances", target: 1, goal: 1.0 / goalNoOp}
	m.run = func(ctx context.Context, _ int) (out sample, err error) {
		dir, err := r.fresh(ctx, "noop", dry)
		if err != nil {
			return out, err
		}
		s, err := openSession(ctx, dir, overheadFile, 1, r.cfg.Clock)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		p, err := s.plan(ctx, planner.Request{Nodes: []string{"month"}, Downstream: 1, Selection: bizdate.Selection{Start: "2024-01-01", End: end}})
		if err != nil {
			return out, err
		}
		claim, err := s.claim(ctx, p)
		if err != nil {
			return out, err
		}
		planned = p.Estimate.DryRun
		out.statements, out.sum = int64(p.Instances), fmt.Sprint(p.Instances)
		out.seconds, err = r.seconds(func() error {
			_, err := s.run(ctx, p, claim)
			return err
		})
		// The goal is a rate: what is compared is the time of an instance.
		out.seconds /= float64(p.Estimate.DryRun)
		return out, err
	}
	if err := r.measure(ctx, m); err != nil {
		return err
	}
	r.note("no_op_instances: the time of one of %d dry-run instances, the real ones of the plan measured along", planned)
	return nil
}

// start measures a process from its start to its first statement on the
// example project: the time of `retrofill backfill` of one table and date,
// less the time that the run itself says it took. Closing the database and the
// ledger is in it, so the figure is an upper bound.
func (r *runner) start(ctx context.Context) error {
	if r.cfg.Binary == "" {
		r.note("process_start left out: no built command is given")
		return nil
	}
	dir := filepath.Join(r.cfg.Dir, "flights")
	if err := fixtures.WriteFlights(dir); err != nil {
		return err
	}
	if _, err := fixtures.CreateWarehouse(ctx, dir); err != nil {
		return err
	}
	backfill := func(ctx context.Context) (sample, error) {
		p, err := r.process(ctx, dir, "backfill", "fct_arrival", "--start-date", "2013-03-01", "--end-date", "2013-03-01", "--yes", "-o", "json")
		if err != nil {
			return sample{}, err
		}
		var doc struct {
			Ran     int   `json:"ran"`
			Rows    int64 `json:"rows"`
			Elapsed int64 `json:"elapsed"` // nanoseconds
		}
		if err := json.Unmarshal(p.out, &doc); err != nil {
			return sample{}, fmt.Errorf("read the summary: %w", err)
		}
		return sample{seconds: p.seconds - time.Duration(doc.Elapsed).Seconds(), rows: doc.Rows, statements: int64(doc.Ran),
			sum: fmt.Sprint(doc.Ran, doc.Rows), cpu: p.cpu, peakMB: p.peakMB}, nil
	}
	if _, err := backfill(ctx); err != nil { // fills the cache
		return err
	}
	return r.measure(ctx, measured{name: "process_start", target: 1, goal: goalStart,
		run: func(ctx context.Context, _ int) (sample, error) { return backfill(ctx) }})
}
