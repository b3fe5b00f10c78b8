package plan

import (
	"testing"
	"time"
)

func TestDayPart(t *testing.T) {
	t.Parallel()
	for text, holds := range map[string][4]bool{ // at 00:00, 07:59:59, 08:00 and 18:00
		"08:00-18:00": {false, false, true, false},
		"18:00-08:00": {true, true, false, true},
		"00:00-08:00": {true, true, false, false},
		"07:59-23:59": {false, true, true, true},
	} {
		p, err := ParseDayPart(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range []string{"00:00:00", "07:59:59", "08:00:00", "18:00:00"} {
			clock, err := time.Parse("15:04:05", at)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Holds(clock); got != holds[i] {
				t.Errorf("%s holds %s: %v", text, at, got)
			}
		}
	}
	for _, text := range []string{"", "8-18", "08:00-08:00", "08:00-24:00", "08:00 18:00", "08:00-18:00:00", "25:00-26:00"} {
		if p, err := ParseDayPart(text); err == nil {
			t.Errorf("%q is read as %v", text, p)
		}
	}
}

func TestRunsAt(t *testing.T) {
	t.Parallel()
	if at, err := (&Plan{}).RunsAt(); err != nil || !at.IsZero() {
		t.Error(at, err)
	}
	at, err := (&Plan{RunAt: "2026-12-01T20:30:00+01:00"}).RunsAt()
	if err != nil || !at.Equal(time.Date(2026, 12, 1, 19, 30, 0, 0, time.UTC)) {
		t.Error(at, err)
	}
	if _, err := (&Plan{RunAt: "tomorrow"}).RunsAt(); err == nil {
		t.Error("no error")
	}
}
