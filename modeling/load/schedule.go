package load

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// schedule reads a schedule; modeling/bizdate judges it (semantics §3.3,
// §3.5). A broken one becomes daily at 00:00, so that loading can go on.
func (b *builder) schedule(r rawSchedule) modeling.Schedule {
	s := modeling.Schedule{Cycle: modeling.Daily, At: "00:00"}
	if r.has("cycle") && r.Cycle.Text == "" {
		return s // reported when it was read; what else fits is unknown
	}
	parsed, diags := bizdate.ScheduleText{
		Cycle: r.Cycle.Text, At: r.At.Text, Every: r.Every.Text, From: r.From.Text, To: r.To.Text,
		Weekdays: texts(r.Weekdays), MonthDays: texts(r.MonthDays),
	}.Parse(func(key string) diag.Pos {
		if !r.has(key) && r.has("cycle") {
			return r.at("cycle")
		}
		return r.at(key)
	})
	for _, d := range diags {
		if d.Code == "no_rule" && (r.has("weekdays") || r.has("monthdays")) {
			continue // its entries were reported when they were read
		}
		b.report(d)
	}
	if diags.HasErrors() {
		return s
	}
	s.Cycle = modeling.Cycle(cmp.Or(string(parsed.Cycle), string(bizdate.Daily)))
	if parsed.Cycle.SubDaily() {
		s.At, s.Every, s.From, s.To = "", parsed.Every, r.From.Text, r.To.Text
		return s
	}
	s.At = cmp.Or(r.At.Text, "00:00")
	slices.SortFunc(parsed.MonthDays, func(x, y bizdate.MonthDay) int { return cmp.Compare(uint8(x-1), uint8(y-1)) }) // MonthEnd last
	for _, d := range parsed.Weekdays {
		s.Weekdays = append(s.Weekdays, d.String())
	}
	slices.SortFunc(s.Weekdays, func(x, y string) int {
		return slices.Index(weekdays[:], x) - slices.Index(weekdays[:], y)
	})
	for _, d := range parsed.MonthDays {
		s.MonthDays = append(s.MonthDays, d.String())
	}
	return s
}

func texts(list []word) []string {
	var out []string
	for _, w := range list {
		out = append(out, w.Text)
	}
	return out
}

// days reads 400d.
func days(w word) int {
	n, err := strconv.Atoi(strings.TrimSuffix(w.Text, "d"))
	if err != nil {
		return 0 // the key table let only numbers through
	}
	return n
}

// cyclePattern is an offset of previous cycles: -1d, -7d..-1d, -1h, 0d.
var cyclePattern = regexp.MustCompile(`^(-?[0-9]{1,5})(d|h)(?:\.\.(-?[0-9]{1,5})(d|h))?$`)

// dependencies reads depends_on. What it names is checked when all files are
// known.
func (b *builder) dependencies(list []rawDependency) []modeling.Dependency {
	var out []modeling.Dependency
	for _, r := range list {
		dep := modeling.Dependency{Unit: modeling.Daily, Pos: r.Pos}
		if r.Cycle.Pos.Line > 0 {
			b.cycle(r.Cycle, &dep)
		}
		given := 0
		for _, k := range []struct {
			name string
			w    word
		}{{"table", r.Table}, {"task", r.Task}, {"node", r.Node}} {
			if !r.has(k.name) {
				continue
			}
			if given++; b.goodName(k.w, k.name) {
				dep.Node, dep.Pos = k.w.Text, k.w.Pos
				b.refs = append(b.refs, reference{what: k.name, word: k.w, from: b.owner, sameSlot: dep.To == 0})
			}
		}
		if given != 1 {
			b.report(diag.Errorf("bad_value", "a dependency names exactly one upstream, not %d", given).At(r.Pos).
				WithHint("write one of table, task, node"))
		}
		out = append(out, dep)
	}
	return out
}

func (b *builder) cycle(w word, dep *modeling.Dependency) {
	m := cyclePattern.FindStringSubmatch(strings.ReplaceAll(w.Text, " ", ""))
	if m == nil || m[4] != "" && m[4] != m[2] {
		b.report(diag.Errorf("bad_value", "%q is not a range of cycles", clip(w.Text)).At(w.Pos).
			WithHint("write -1d, -7d..-1d or -1h"))
		return
	}
	from, errFrom := strconv.Atoi(m[1])
	to, errTo := from, error(nil)
	if m[3] != "" {
		to, errTo = strconv.Atoi(m[3])
	}
	if errFrom != nil || errTo != nil || from > to || to > 0 {
		b.report(diag.Errorf("bad_value", "%q does not go from an earlier to a later cycle, at most the same one", clip(w.Text)).At(w.Pos).
			WithHint("write the earlier one first: -7d..-1d"))
		return
	}
	dep.From, dep.To = from, to
	if m[2] == "h" {
		dep.Unit = modeling.Hourly
	}
}
