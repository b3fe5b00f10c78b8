package postgres

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	process "os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/postgres/pgtest"
)

// The test binary is its own child: these variables make it the writer.
const (
	childDSN     = "RETROFILL_POSTGRES_CHILD"
	childAttempt = "RETROFILL_POSTGRES_ATTEMPT"
)

func TestMain(m *testing.M) {
	dsn := os.Getenv(childDSN)
	if dsn == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, loop(dsn))
	os.Exit(1)
}

const crashRows = 200

// loop writes unit after unit on two connections, each acknowledged on stdout
// after Execute has returned.
func loop(dsn string) error {
	ctx := context.Background()
	attempt, err := strconv.Atoi(os.Getenv(childAttempt))
	if err != nil {
		return err
	}
	e, err := Open(ctx, Options{DSN: dsn})
	if err != nil {
		return err
	}
	if err := e.Prepare(ctx, []string{"CREATE TABLE IF NOT EXISTS c (i integer, k integer, attempt integer)", "CREATE INDEX IF NOT EXISTS c_i ON c (i)"}); err != nil {
		return err
	}
	errs := make(chan error, 2)
	for lane := range 2 {
		go func() {
			for i := lane; ; i += 2 {
				u := executors.Unit{
					Marker: executors.Marker{Backfill: "crash", Instance: fmt.Sprint("c@", i), Attempt: attempt, Token: int64(attempt)},
					Statements: []executors.Statement{
						{Role: executors.RoleDelete, Target: "c", SQL: fmt.Sprintf("DELETE FROM c WHERE i = %d", i)},
						{Role: executors.RoleInsert, Target: "c", SQL: fmt.Sprintf("INSERT INTO c (i, k, attempt) SELECT %d, g, %d FROM generate_series(1, %d) AS g", i, attempt, crashRows)},
					},
				}
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

// TestKill kills a writing client with SIGKILL at random moments. Afterwards
// the marker of each unit must agree with its rows, and every acknowledged
// unit must be there.
func TestKill(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	rounds, unacknowledged := 6, 0
	if testing.Short() {
		rounds = 2
	}
	for attempt := 1; attempt <= rounds; attempt++ {
		cmd := process.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childDSN+"="+dsn, childAttempt+"="+fmt.Sprint(attempt))
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out := bufio.NewScanner(pipe)
		acknowledged := map[string]bool{}
		for target := 1 + rng.IntN(60); len(acknowledged) < target; {
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

		for i := range len(acknowledged) + 10 {
			instance := fmt.Sprint("c@", i)
			_, m, err := e.Lookup(t.Context(), executors.Marker{Backfill: "crash", Instance: instance})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := e.Query(t.Context(), fmt.Sprintf("SELECT count(*), count(DISTINCT k), coalesce(min(attempt), 0), coalesce(max(attempt), 0) FROM c WHERE i = %d", i), 0)
			if err != nil {
				t.Fatal(err)
			}
			want := [4]int64{0, 0, 0, 0}
			if m.Attempt > 0 {
				want = [4]int64{crashRows, crashRows, int64(m.Attempt), int64(m.Attempt)}
			}
			if got := rows.Values[0]; [4]any{got[0], got[1], got[2], got[3]} != [4]any{want[0], want[1], want[2], want[3]} {
				t.Errorf("round %d: %s has rows %v, its marker is of attempt %d", attempt, instance, got, m.Attempt)
			}
			switch {
			case acknowledged[instance] && m.Attempt != attempt:
				t.Errorf("round %d: %s was acknowledged, its marker is of attempt %d", attempt, instance, m.Attempt)
			case !acknowledged[instance] && m.Attempt == attempt:
				unacknowledged++
			}
		}
	}
	t.Logf("%d units were durable and not acknowledged", unacknowledged)
}
