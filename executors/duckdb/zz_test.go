package duckdb

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
)

func TestZZ(t *testing.T) {
	for range 2 {
		for _, th := range []string{"16MB", "64MB", "256MB"} {
			p := filepath.Join(t.TempDir(), "a.duckdb")
			e, err := Open(t.Context(), Options{Path: p, Create: true, Settings: map[string]string{"checkpoint_threshold": th}})
			if err != nil {
				t.Fatal(err)
			}
			e.Prepare(t.Context(), []string{"CREATE TABLE t (i INTEGER, a INTEGER, s VARCHAR, d DOUBLE)"})
			s := time.Now()
			var wg sync.WaitGroup
			for lane := range 4 {
				wg.Go(func() {
					for i := lane; i < 360; i += 4 {
						_, err := e.Execute(t.Context(), executors.Unit{Marker: executors.Marker{Backfill: "b", Instance: fmt.Sprint(i), Attempt: 1}, Statements: []executors.Statement{
							{Role: executors.RoleDelete, SQL: fmt.Sprintf("DELETE FROM t WHERE i=%d", i)},
							{Role: executors.RoleInsert, SQL: fmt.Sprintf("INSERT INTO t SELECT %d, range, 'abcdef'||range, range/3 FROM range(10000)", i)}}})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			r := time.Since(s)
			e.Close()
			fmt.Println(th, r, time.Since(s))
		}
	}
}
