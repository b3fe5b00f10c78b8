package bizdate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// zones have changes at midnight, across midnight (St. John's at 00:01), of
// half an hour, of a whole day, in winter only, and none.
var zones = []string{"UTC", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Africa/Cairo",
	"Africa/Casablanca", "Australia/Lord_Howe", "Asia/Kolkata", "Europe/London", "Europe/Dublin", "Pacific/Apia",
	"Pacific/Kwajalein", "Asia/Tehran", "Antarctica/Troll", "America/Anchorage", "Asia/Kathmandu"}

// interesting gives dates around every change of clocks of a zone between 1965
// and 2037, the last days of years (see segmentAt), and some at random.
func interesting(z *time.Location, r *rand.Rand) []Date {
	var out []Date
	t := time.Date(1965, 1, 1, 0, 0, 0, 0, time.UTC).In(z)
	for n := 0; n < 400; n++ {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Year() > 2037 {
			break
		}
		if !end.After(t) {
			end = t.AddDate(0, 0, 1)
		} else if r.IntN(6) == 0 {
			d := FromTime(end)
			out = append(out, d-1, d, d+1)
		}
		t = end
	}
	for _, y := range []int{1996, 2011, 2024, 2040, 2096} {
		out = append(out, Of(y, 12, 30), Of(y, 12, 31), Of(y+1, 1, 1))
	}
	for range 10 {
		out = append(out, Of(1965, 1, 1)+Date(r.IntN(40000)))
	}
	return out
}

// TestInstantOracle compares Instant and Slots with a walk over all minutes.
func TestInstantOracle(t *testing.T) {
	t.Parallel()
	const seed = 7
	for _, name := range zones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			z := mustZone(t, name)
			for _, d := range interesting(z, r) {
				tod := TimeOfDay(r.IntN(1440) * 60)
				if r.IntN(3) == 0 {
					tod = 0
				}
				want := d.UTC().Unix() + int64(tod)
				at := want - maxOffset
				for {
					u := time.Unix(at, 0).In(z)
					_, off := u.Zone()
					if at+int64(off) >= want {
						break
					}
					at += 60
				}
				if got := Instant(d, tod, z).Unix(); got != at {
					t.Fatalf("Instant(%s, %s) = %s, walked %s", d, tod, time.Unix(got, 0).In(z), time.Unix(at, 0).In(z))
				}
				checkSubDaily(t, d, z, r)
			}
		})
	}
}

func checkSubDaily(t *testing.T, local Date, z *time.Location, r *rand.Rand) {
	t.Helper()
	s := Schedule{Cycle: Minute, Every: []int{1, 5, 15, 30, 60, 90, 120, 420}[r.IntN(8)]}
	if r.IntN(3) == 0 {
		s.Hours = &Window{From: TimeOfDay(r.IntN(600) * 60), To: TimeOfDay((600 + r.IntN(840)) * 60)}
	}
	var w *Window
	if r.IntN(2) == 0 {
		w = &Window{From: TimeOfDay(r.IntN(300) * 60), To: TimeOfDay((300 + r.IntN(1140)) * 60)}
	}
	day := DayInterval(local, z)
	var want, got []string
	for at := day.Start; at.Before(day.End); at = at.Add(time.Minute) {
		if FromTime(at) != local {
			continue
		}
		m := at.Hour()*60 + at.Minute()
		from, to := 0, 1439
		if s.Hours != nil {
			from, to = s.Hours.From.Minute(), s.Hours.To.Minute()
		}
		if m < from || m > to || (m-from)%s.Every != 0 || w != nil && !w.Contains(TimeOfDay(m*60)) {
			continue
		}
		want = append(want, at.Format(rfc))
	}
	slots := s.Slots(local-1, z, w)
	for i, slot := range slots {
		got = append(got, slot.ID())
		if !day.Contains(slot.At) || slot.Date != local-1 || i > 0 && !slots[i-1].At.Before(slot.At) {
			t.Fatalf("slot %v is outside the day or out of order", slot)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s %s, window %v: %s", local, s, w, d)
	}
	if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
		t.Fatalf("%s %s: ids repeat", local, s)
	}
	if daily := (Schedule{At: TimeOfDay(r.IntN(86400))}).Slots(local-1, z, nil); len(daily) != 1 || daily[0].At.Before(day.Start) || daily[0].At.After(day.End) {
		t.Fatalf("%s: daily slots %v", local, daily)
	}
}

// TestIntervalsTile checks that the slots' intervals leave no hole over days
// of clock changes.
func TestIntervalsTile(t *testing.T) {
	t.Parallel()
	for _, name := range zones {
		z := mustZone(t, name)
		s := Schedule{Cycle: Hourly}
		var last time.Time
		for d := Of(2011, 1, 1); d < Of(2012, 3, 1); d++ {
			for _, i := range s.Intervals(d, z) {
				if !last.IsZero() && !last.Equal(i.Start) {
					t.Fatalf("%s %s: hole between %s and %s", name, d, last, i.Start)
				}
				last = i.End
			}
		}
	}
}

func TestSelectionProperties(t *testing.T) {
	t.Parallel()
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 2))
	clock := Clock{Now: Of(2030, 1, 1).UTC()}
	for i := range 500 {
		start := Of(1990, 1, 1) + Date(r.IntN(12000))
		s := Selection{Mode: ModeRange, Start: start.String(), End: (start + Date(r.IntN(MaxDays))).String()}
		switch r.IntN(3) {
		case 0:
			s.Mode, s.Weekdays = ModeCycle, []string{Weekday(r.IntN(7)).String()}
		case 1:
			s.Mode, s.MonthDays = ModeCycle, []string{MonthDay(1 + r.IntN(31)).String(), "last"}
		}
		asc, ascDiags := s.Select(clock)
		s.Direction = Desc
		desc, descDiags := s.Select(clock)
		slices.Reverse(desc)
		if d := cmp.Diff(asc, desc); d != "" {
			t.Fatalf("seed %d, case %d: desc is not the reverse of asc: %s", seed, i, d)
		}
		if !slices.Equal(ascDiags.Codes(), descDiags.Codes()) {
			t.Fatalf("seed %d, case %d: %v and %v", seed, i, ascDiags, descDiags)
		}
		if !slices.IsSorted(asc) || len(slices.Compact(slices.Clone(asc))) != len(asc) {
			t.Fatalf("seed %d, case %d: not ascending and unique: %v", seed, i, asc)
		}
		for _, d := range asc {
			if s.Mode == ModeCycle && len(s.Weekdays) > 0 && Weekday(d.Weekday()).String() != s.Weekdays[0] {
				t.Fatalf("%s is no %s", d, s.Weekdays[0])
			}
		}
	}
}

func TestSetProperties(t *testing.T) {
	t.Parallel()
	const seed = 13
	r := rand.New(rand.NewPCG(seed, 3))
	random := func() (Set, map[Date]bool) {
		m := map[Date]bool{}
		var list []Date
		for range r.IntN(40) {
			d := Date(r.IntN(60))
			m[d] = true
			list = append(list, d)
		}
		return SetOf(list...), m
	}
	for i := range 500 {
		a, inA := random()
		b, inB := random()
		var union, both, minus []Date
		for d := Date(-1); d <= 60; d++ {
			if a.Contains(d) != inA[d] {
				t.Fatalf("seed %d, case %d: Contains(%s)", seed, i, d)
			}
			if inA[d] || inB[d] {
				union = append(union, d)
			}
			if inA[d] && inB[d] {
				both = append(both, d)
			}
			if inA[d] && !inB[d] {
				minus = append(minus, d)
			}
		}
		for what, pair := range map[string][2]Set{"union": {a.Union(b), SetOf(union...)},
			"intersect": {a.Intersect(b), SetOf(both...)}, "minus": {a.Minus(b), SetOf(minus...)}} {
			if !pair[0].Equal(pair[1]) {
				t.Fatalf("seed %d, case %d: %s: %s, want %s", seed, i, what, pair[0], pair[1])
			}
		}
		dates := a.Dates()
		if a.Len() != len(inA) || len(dates) != len(inA) {
			t.Fatalf("seed %d, case %d: Len %d, want %d", seed, i, a.Len(), len(inA))
		}
		for n, d := range dates {
			if at, ok := a.At(n); !ok || at != d || a.Index(d) != n {
				t.Fatalf("seed %d, case %d: At(%d) = %s, Index(%s) = %d", seed, i, n, at, d, a.Index(d))
			}
		}
		back := slices.Collect(a.Backward())
		slices.Reverse(back)
		if !slices.Equal(back, dates) {
			t.Fatalf("seed %d, case %d: Backward %v", seed, i, back)
		}
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var again Set
		if err := json.Unmarshal(data, &again); err != nil || !again.Equal(a) {
			t.Fatalf("seed %d, case %d: %s gives %s, %v", seed, i, data, again, err)
		}
	}
}

func TestSetJSON(t *testing.T) {
	t.Parallel()
	s := SetOfRanges(Range{Of(2013, 2, 5), Of(2013, 2, 5)}, Range{Of(2013, 1, 20), Of(2013, 1, 31)}, Range{Of(2013, 1, 1), Of(2013, 1, 21)})
	data, err := json.Marshal(s)
	if err != nil || string(data) != `["2013-01-01..2013-01-31","2013-02-05"]` {
		t.Errorf("%s, %v", data, err)
	}
	if data, err := json.Marshal(Set{}); err != nil || string(data) != `[]` {
		t.Errorf("%s, %v", data, err)
	}
	for _, bad := range []string{`["2013-01-02..2013-01-01"]`, `["2013-01-01.."]`, `[1]`, `"2013-01-01"`} {
		var s Set
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s is accepted as %s", bad, s)
		}
	}
	if _, ok := s.At(s.Len()); ok {
		t.Error("At beyond the end")
	}
}

// BenchmarkSelect and BenchmarkSlots tell the cost of 10,000 dates.
func BenchmarkSelect(b *testing.B) {
	s := Selection{Mode: ModeCycle, Start: "1990-01-01", End: "2017-05-18", AllowLongRange: true,
		Weekdays: []string{"mon,tue,wed,thu,fri,sat,sun"}, MonthDays: []string{"1", "15", "last"}}
	clock := Clock{Now: Of(2030, 1, 1).UTC()}
	for b.Loop() {
		if dates, diags := s.Select(clock); len(dates) != 10000 {
			b.Fatal(len(dates), diags)
		}
	}
}

func BenchmarkSlots(b *testing.B) {
	z := mustZone(b, "America/New_York")
	for _, s := range []Schedule{{}, {Cycle: Hourly}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			var slots []Slot
			for b.Loop() {
				slots = slots[:0]
				for d := Of(1998, 1, 1); d < Of(1998, 1, 1)+10000; d++ {
					slots = s.AppendSlots(slots, d, z, nil)
				}
			}
		})
	}
}
