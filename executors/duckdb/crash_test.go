package duckdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
)

// The test binary is its own child: these variables choose what it does.
const (
	childMode = "RETROFILL_DUCKDB_CHILD"
	childPath = "RETROFILL_DUCKDB_PATH"
	childSeed = "RETROFILL_DUCKDB_ATTEMPT"
)

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	var err error
	switch path := os.Getenv(childPath); mode {
	case "hold":
		err = hold(path)
	case "loop":
		err = loop(path)
	case "full":
		err = full(path)
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const crashRows = 200

// crashUnit writes crashRows rows that carry the attempt, in place of what is
// there.
func crashUnit(i, attempt int) executors.Unit {
	return executors.Unit{
		Marker: executors.Marker{Backfill: "crash", Instance: fmt.Sprint("t@", i), Attempt: attempt, Token: int64(attempt)},
		Statements: []executors.Statement{
			{Role: executors.RoleDelete, Target: "t", SQL: fmt.Sprintf("DELETE FROM t WHERE i = %d", i)},
			{Role: executors.RoleInsert, Target: "t", SQL: fmt.Sprintf("INSERT INTO t (i, k, attempt, pad) SELECT %d, range, %d, repeat('x', 100) FROM range(%d)", i, attempt, crashRows)},
		},
	}
}

// loop is the child of TestKill: unit after unit on two connections, each
// acknowledged on stdout after Execute has returned.
func loop(path string) error {
	ctx := context.Background()
	attempt, err := strconv.Atoi(os.Getenv(childSeed))
	if err != nil {
		return err
	}
	// A small log, so that kills meet checkpoints too.
	e, err := Open(ctx, Options{Path: path, Create: true, Settings: map[string]string{"checkpoint_threshold": "256KB"}})
	if err != nil {
		return err
	}
	if err := e.Prepare(ctx, []string{"CREATE TABLE IF NOT EXISTS t (i INTEGER, k INTEGER, attempt INTEGER, pad VARCHAR)"}); err != nil {
		return err
	}
	errs := make(chan error, 2)
	for lane := range 2 {
		go func() {
			for i := lane; ; i += 2 {
				u := crashUnit(i, attempt)
				if _, err := e.Execute(ctx, u); err != nil {
					errs <- err
					return
				}
				// One write system call a line: lines do not mix.
				if _, err := os.Stdout.WriteString(u.Marker.Instance + "\n"); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

// TestKill kills a writing process with SIGKILL at random moments. Afterwards
// the marker of each unit must agree with its rows, and every acknowledged
// unit must be there.
func TestKill(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	path := filepath.Join(t.TempDir(), "a.duckdb")
	unacknowledged := 0
	for attempt := 1; attempt <= rounds; attempt++ {
		cmd, out := child(t, "loop", childPath+"="+path, childSeed+"="+fmt.Sprint(attempt))
		acknowledged := map[string]bool{}
		target := 1 + rng.IntN(40)
		for len(acknowledged) < target {
			if !out.Scan() {
				t.Fatalf("round %d: the child ended after %d units", attempt, len(acknowledged))
			}
			acknowledged[out.Text()] = true
		}
		// Somewhere inside the next units, not right behind an answer.
		<-time.After(time.Duration(rng.IntN(5000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() {
			acknowledged[out.Text()] = true
		}
		_ = cmd.Wait() // it was killed

		e, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatalf("round %d: %v", attempt, err)
		}
		rows, err := e.Query(t.Context(), "SELECT i, count(*), count(DISTINCT k), min(attempt), max(attempt) FROM t GROUP BY i ORDER BY i", 0)
		if err != nil {
			t.Fatal(err)
		}
		content := map[string][]any{}
		last := 0
		for _, r := range rows.Values {
			content[fmt.Sprint("t@", r[0])] = r[1:]
			last = int(r[0].(int64))
		}
		seen := 0
		for i := range last + 10 {
			instance := fmt.Sprint("t@", i)
			outcome, m, err := e.Lookup(t.Context(), executors.Marker{Backfill: "crash", Instance: instance})
			if err != nil {
				t.Fatal(err)
			}
			r, written := content[instance]
			if (outcome == executors.Committed) != written {
				t.Fatalf("round %d: %s: marker %v, rows %v", attempt, instance, outcome, r)
			}
			if written && fmt.Sprint(r) != fmt.Sprint([]any{crashRows, crashRows, m.Attempt, m.Attempt}) {
				t.Fatalf("round %d: %s: rows %v, marker %+v", attempt, instance, r, m)
			}
			if acknowledged[instance] {
				seen++
			}
			if acknowledged[instance] && m.Attempt != attempt {
				t.Fatalf("round %d: %s was acknowledged, the marker is of attempt %d", attempt, instance, m.Attempt)
			}
			if written && m.Attempt == attempt && !acknowledged[instance] {
				unacknowledged++
			}
		}
		if seen != len(acknowledged) {
			t.Fatalf("round %d: %d units were acknowledged, %d of them are there", attempt, len(acknowledged), seen)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d units were durable but not acknowledged", unacknowledged)
}

// full is the child of TestDiskFull: no file of this process may grow beyond
// 3 MB, which looks to DuckDB like a full disk.
func full(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	e, err := Open(ctx, Options{Path: path, Create: true, Connections: 1})
	if err != nil {
		return err
	}
	if err := e.Prepare(ctx, []string{"CREATE TABLE IF NOT EXISTS t (i INTEGER, k INTEGER, attempt INTEGER, pad VARCHAR)"}); err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 3 << 20, Max: 3 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for i := range 1000 {
		u := crashUnit(i, 1)
		u.Statements[1].SQL = fmt.Sprintf("INSERT INTO t (i, k, attempt, pad) SELECT %d, range, 1, md5(range::VARCHAR || '%d') FROM range(%d)", i, i, 20*crashRows)
		_, err := e.Execute(ctx, u)
		if err == nil {
			continue
		}
		_, lookupErr := e.db.ExecContext(ctx, "SELECT 1")
		fmt.Printf("unit %d\n%s\n%s\n%v\n", i, e.Classify(err), strings.ReplaceAll(err.Error(), "\n", " "), lookupErr)
		return nil
	}
	return errors.New("the disk never got full")
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.duckdb")
	cmd, out := child(t, "full", childPath+"="+path)
	var lines []string
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	if err := cmd.Wait(); err != nil && len(lines) < 3 {
		t.Fatalf("%v, %q", err, lines)
	}
	t.Logf("%q", lines)
	if class := lines[1]; class != "permanent" && class != "ambiguous" {
		t.Errorf("class %s", class)
	}
	if !strings.Contains(lines[2], "full") {
		t.Errorf("the message does not speak of a full disk: %s", lines[2])
	}
	var failed int
	if _, err := fmt.Sscanf(lines[0], "unit %d", &failed); err != nil {
		t.Fatal(err)
	}
	e := mustOpen(t, Options{Path: path})
	for i := range failed + 2 {
		outcome, _, err := e.Lookup(t.Context(), crashUnit(i, 1).Marker)
		if err != nil {
			t.Fatal(err)
		}
		n := one(t, e, fmt.Sprintf("SELECT count(*) FROM t WHERE i = %d", i))
		if (outcome == executors.Committed) != (n == int64(20*crashRows)) || n != int64(0) && n != int64(20*crashRows) {
			t.Errorf("unit %d: marker %v, %v rows", i, outcome, n)
		}
		if i < failed && outcome != executors.Committed {
			t.Errorf("unit %d was acknowledged and is not there", i)
		}
	}
}
