package view

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrofill/retrofill/executors/run"
	"github.com/retrofill/retrofill/planner/status"
)

// screen understands what Live writes to a terminal of some width: text, line
// breaks, cursor up, erase below. Lines that are too long wrap.
type screen struct {
	mu     sync.Mutex
	width  int
	lines  []string
	row    int
	writes int
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	text := string(b)
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\r"):
			text = text[1:]
		case strings.HasPrefix(text, "\x1b[J"):
			s.lines = s.lines[:min(s.row, len(s.lines))]
			text = text[3:]
		case strings.HasPrefix(text, "\x1b["):
			n, rest := 0, ""
			if _, err := fmt.Sscanf(text, "\x1b[%dA", &n); err != nil {
				return 0, fmt.Errorf("unknown sequence %q", text[:min(8, len(text))])
			}
			_, rest, _ = strings.Cut(text, "A")
			s.row = max(0, s.row-n)
			text = rest
		default:
			line, rest, _ := strings.Cut(text, "\n")
			runes := []rune(line)
			for {
				n := min(len(runes), s.width)
				s.lines = append(s.lines[:s.row], string(runes[:n]))
				s.row++
				if runes = runes[n:]; len(runes) == 0 {
					break
				}
			}
			text = rest
		}
	}
	return len(b), nil
}

// resize wraps what is on the screen anew, as terminals do.
func (s *screen) resize(width int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.lines
	s.width, s.lines = width, nil
	for _, l := range old {
		runes := []rune(l)
		for {
			n := min(len(runes), width)
			s.lines = append(s.lines, string(runes[:n]))
			if runes = runes[n:]; len(runes) == 0 {
				break
			}
		}
	}
	s.row = len(s.lines)
}

func (s *screen) columns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func (s *screen) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func counts(of map[status.Status]int) status.Counts {
	var c status.Counts
	for s, n := range of {
		c.Add(status.State{Status: s}, n)
	}
	return c
}

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &screen{width: 100}
		p := NewProgress(ProgressOptions{Out: s, Terminal: true, Width: s.columns, Now: time.Now, Name: "fct_flight_20261201_1", Total: 365})
		p.Handle(run.Event{Kind: run.Begun, At: time.Now(), Counts: counts(map[status.Status]int{status.Pending: 365})})
		p.Handle(run.Event{Kind: run.Started, At: time.Now(), ID: "fct_flight@2013-01-01"})
		for i := range 100 {
			time.Sleep(100 * time.Millisecond)
			p.Handle(run.Event{Kind: run.Finished, At: time.Now(), ID: fmt.Sprint("x", i), Status: status.Succeeded,
				Counts: counts(map[status.Status]int{status.Succeeded: i + 1, status.Pending: 364 - i})})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want := "fct_flight_20261201_1  100/365  27 %  9.1/s  29 s left\n  fct_flight@2013-01-01  11 s"
		if d := cmp.Diff(want, s.text()); d != "" {
			t.Error(d)
		}
		if n := s.Count(); n > 11*10+5 {
			t.Errorf("%d redraws in 11 s, at most ten a second are wanted", n)
		}
		// A failure stays above the block; the block shrinks with the terminal.
		p.Handle(run.Event{Kind: run.Finished, At: time.Now(), ID: "fct_flight@2013-01-01", Status: status.Failed, Error: "no such table\nmore",
			Counts: counts(map[status.Status]int{status.Succeeded: 100, status.Failed: 1, status.Pending: 264})})
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		lines := strings.Split(s.text(), "\n")
		if len(lines) != 2 || lines[0] != "fct_flight@2013-01-01  failed: no such table" || !strings.Contains(lines[1], "1 failed") {
			t.Errorf("screen:\n%s", s.text())
		}
		s.resize(30)
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if got := s.text(); strings.Count(got, "…") != 1 || strings.Count(got, "fct_flight_") != 1 {
			t.Errorf("after shrinking:\n%s", got)
		}
		p.Close(time.Second)
		if got := s.text(); strings.Contains(got, "365") || !strings.Contains(got, "no such table") {
			t.Errorf("after the end only notes stay:\n%s", got)
		}
	})
}

func TestProgressWithoutATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var b bytes.Buffer
		out := writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return b.Write(p)
		})
		p := NewProgress(ProgressOptions{Out: out, Now: time.Now, Name: "b", Total: 2})
		p.Handle(run.Event{Kind: run.Begun, At: time.Now(), Counts: counts(map[status.Status]int{status.Pending: 2})})
		p.Handle(run.Event{Kind: run.Started, At: time.Now(), ID: "n@1", Counts: counts(map[status.Status]int{status.Running: 1, status.Pending: 1})})
		time.Sleep(12 * time.Second)
		p.Handle(run.Event{Kind: run.Finished, At: time.Now(), ID: "n@1", Status: status.Succeeded, Rows: 1200,
			Counts: counts(map[status.Status]int{status.Succeeded: 1, status.Pending: 1})})
		p.Handle(run.Event{Kind: run.Retrying, At: time.Now(), ID: "n@2", Attempt: 1, Wait: 2 * time.Second, Error: "busy",
			Counts: counts(map[status.Status]int{status.Succeeded: 1, status.Pending: 1})})
		p.Handle(run.Event{Kind: run.Stopping, At: time.Now(), Counts: counts(map[status.Status]int{status.Succeeded: 1, status.Pending: 1})})
		p.Close(time.Second)
		want := `b  0/2  0 %  1 running
n@1  succeeded in 12 s, 1,200 rows
n@2  attempt 1 failed, next one in 2 s: busy
stopping: nothing new begins, running instances finish; Ctrl-C again cancels them
`
		mu.Lock()
		defer mu.Unlock()
		if d := cmp.Diff(want, b.String()); d != "" {
			t.Error(d)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A terminal that does not take anything must not hold the run up.
func TestProgressNeverBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		out := writerFunc(func(b []byte) (int, error) { <-hold; return len(b), nil })
		p := NewProgress(ProgressOptions{Out: out, Now: time.Now, Name: "b", Total: 1_000_000})
		start := time.Now()
		for i := range 10_000 {
			p.Handle(run.Event{Kind: run.Finished, At: time.Now(), ID: fmt.Sprint(i), Status: status.Failed, Error: "x"})
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("handling took %s", d)
		}
		p.Close(2 * time.Second) // gives up
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("closing took %s", d)
		}
		close(hold)
		<-p.done
	})
}

func TestFitAndWidth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcdef", 5, "ab…ef"}, {"abcdef", 4, "ab…f"}, {"abcdef", 1, "…"}, {"abcdef", 0, ""},
		{"日本語テーブル", 9, "日本…ブル"}, {"naïve", 5, "naïve"},
	} {
		if got := Fit(c.in, c.width); got != c.want || Width(got) > max(c.width, 0) {
			t.Errorf("Fit(%q, %d) = %q (%d columns), want %q", c.in, c.width, got, Width(got), c.want)
		}
	}
	if got := Clean("a\x1b[2Jb\nc\u202ed"); got != "a [2Jb cd" {
		t.Errorf("Clean: %q", got)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", time.Microsecond: "1 ms", 30 * time.Millisecond: "30 ms", 400 * time.Millisecond: "0.4 s", 2 * time.Second: "2 s", 12400 * time.Millisecond: "12 s",
		200 * time.Second: "3 min 20 s", 125 * time.Minute: "2 h 5 min", 72 * time.Hour: "3 days",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}
