package duckdb

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
)

// BenchmarkOverhead runs the same statements as units and bare (BEGIN, the
// statements, COMMIT on one connection), in turn, so that the machine's mood
// meets both. It reports the own time of a unit and the ratio.
func BenchmarkOverhead(b *testing.B) {
	for _, rows := range []int{100, 10_000} {
		for _, stage := range []bool{false, true} {
			b.Run(fmt.Sprintf("rows=%d/stage=%v", rows, stage), func(b *testing.B) { benchOverhead(b, rows, stage) })
		}
	}
}

func benchOverhead(b *testing.B, rows int, stage bool) {
	ctx := b.Context()
	e, err := Open(ctx, Options{Path: filepath.Join(b.TempDir(), "a.duckdb"), Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	if err := e.Prepare(ctx, []string{"CREATE TABLE bare (i INTEGER, a INTEGER, s VARCHAR)", "CREATE TABLE unit (i INTEGER, a INTEGER, s VARCHAR)"}); err != nil {
		b.Fatal(err)
	}
	statements := func(table string, i int) []executors.Statement {
		source := fmt.Sprintf("SELECT range, 'abc' || range FROM range(%d)", rows)
		var out []executors.Statement
		if stage {
			out = append(out, executors.Statement{Role: executors.RoleStage, SQL: "CREATE OR REPLACE TEMP TABLE st AS " + source})
			source = "SELECT * FROM st"
		}
		return append(out,
			executors.Statement{Role: executors.RoleDelete, Target: table, SQL: fmt.Sprintf("DELETE FROM %s WHERE i = %d", table, i)},
			executors.Statement{Role: executors.RoleInsert, Target: table, SQL: fmt.Sprintf("INSERT INTO %s (i, a, s) SELECT %d, * FROM (%s)", table, i, source)},
			executors.Statement{Role: executors.RoleFacts, SQL: fmt.Sprintf("SELECT count(*) AS n FROM %s WHERE i = %d", table, i)},
		)
	}
	conn, err := e.db.Connx(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	bare := func(i int) {
		if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
			b.Fatal(err)
		}
		for _, s := range statements("bare", i) {
			if s.Role == executors.RoleFacts {
				var n int64
				if err := conn.QueryRowContext(ctx, s.SQL).Scan(&n); err != nil {
					b.Fatal(err)
				}
				continue
			}
			if _, err := conn.ExecContext(ctx, s.SQL); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
			b.Fatal(err)
		}
	}
	var floor, own time.Duration
	i := 0
	for b.Loop() {
		start := time.Now()
		bare(i)
		middle := time.Now()
		if _, err := e.Execute(ctx, executors.Unit{
			Marker:     executors.Marker{Backfill: "bench_20260101_1", Instance: fmt.Sprintf("fct_bench@%d", i), Attempt: 1, Token: 1},
			Statements: statements("unit", i),
			Accept:     func(executors.Facts) error { return nil },
		}); err != nil {
			b.Fatal(err)
		}
		floor += middle.Sub(start)
		own += time.Since(middle)
		i++
	}
	b.ReportMetric(float64(floor.Microseconds())/float64(b.N)/1000, "bare-ms")
	b.ReportMetric(float64((own-floor).Microseconds())/float64(b.N)/1000, "own-ms")
	b.ReportMetric(own.Seconds()/floor.Seconds(), "ratio")
}
