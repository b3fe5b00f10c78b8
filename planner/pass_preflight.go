package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling"
	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/lineage"
	"github.com/retrofill/retrofill/planner/plan"
)

// passPreflight looks for what would make a run lose or falsify data although
// every statement of it succeeds: partitions of sources that are not there or
// past their retention, dates that the target's engine drops, and sources of
// which only the latest state exists. Errors are what would take something
// away that the target holds; the rest are warnings. Each has an override of
// its own: with it, an error is a warning, and a warning is left out.
func passPreflight(ctx context.Context, b *build) error {
	if b.diags.HasErrors() {
		return nil
	}
	today := todayIn(b)
	if at := b.req.RunAt; at != nil && at.After(b.deps.Now) {
		today = bizdate.FromTime(at.In(b.deps.Model.Zone))
	}
	for _, p := range b.picked {
		b.checkLifecycle(p, today)
	}
	derive := lineage.NewDeriver(b.deps.Model, b.dates)
	var silent []string
	for _, s := range b.sourcesRead(derive) {
		if s.source.Snapshot {
			b.checkSnapshot(s, today)
			continue
		}
		told, err := b.probe(ctx, s)
		if err != nil {
			return err
		}
		if !told {
			silent = append(silent, s.name)
		}
		b.checkSource(s, today)
	}
	if len(silent) > 0 {
		b.warnf("not_probed", "the partitions of %s were not looked at: %s", someNames(silent), b.deps.NotProbed).
			Hint = "plan again when the database is free, to see whether what the plan reads is there"
	}
	return nil
}

// sourceRead is a source with who reads which of its partitions.
type sourceRead struct {
	name    string
	source  *modeling.Source
	dated   *lineage.Partition // nil = nothing to ask for
	sched   bizdate.Schedule
	filled  map[bizdate.Date]bool // by a task of the plan
	readers []sourceReader
	// missing are the partitions that have no rows; nil = not known.
	missing map[bizdate.Date]bool
}

type sourceReader struct {
	p    *picked
	runs []plan.MapRun
	told bool // the SQL's predicates tell the runs
}

// each calls f with each real date of a reader and each date of the source
// that it reads there, but for what the plan itself fills.
func (s *sourceRead) each(b *build, r sourceReader, f func(d, u bizdate.Date)) {
	real := r.p.realDates()
	for _, run := range r.runs {
		for _, d := range within(b.dates, run.From, run.To) {
			if !real[d] {
				continue
			}
			for u := d + bizdate.Date(run.Lo); u <= d+bizdate.Date(run.Hi); u++ {
				if !s.filled[u] && s.sched.Scheduled(u) {
					f(d, u)
				}
			}
		}
	}
}

// distinct calls f with the dates of the source that its readers' SQL reads,
// most of them once: many readers read the same.
func (s *sourceRead) distinct(b *build, f func(u bizdate.Date)) {
	from, to := bizdate.Date(0), bizdate.Date(-1) // the dates of the last calls, without a gap
	visit := func(lo, hi bizdate.Date) {
		for u := lo; u <= hi; u++ {
			if !s.filled[u] && s.sched.Scheduled(u) {
				f(u)
			}
		}
	}
	for _, r := range s.readers {
		if !r.told {
			continue
		}
		real := r.p.realDates()
		for _, run := range r.runs {
			for _, d := range within(b.dates, run.From, run.To) {
				lo, hi := d+bizdate.Date(run.Lo), d+bizdate.Date(run.Hi)
				switch {
				case from <= lo && hi <= to || !real[d]:
				case lo > to+1 || hi < from-1:
					visit(lo, hi)
					from, to = lo, hi
				default:
					visit(lo, from-1)
					visit(to+1, hi)
					from, to = min(lo, from), max(hi, to)
				}
			}
		}
	}
}

// sourcesRead gives the sources with anything to check, in the order in which
// the plan reads them.
func (b *build) sourcesRead(derive *lineage.Deriver) []*sourceRead {
	at := map[int]*picked{}
	for _, p := range b.picked {
		at[p.node.Position] = p
	}
	var out []*sourceRead
	seen := map[*modeling.Source]*sourceRead{}
	probing := b.deps.Prober != nil || b.deps.NotProbed != ""
	for _, p := range b.picked {
		if len(p.real) == 0 || !p.node.IsTable() {
			continue
		}
		for _, in := range p.node.Inputs {
			src := in.Source
			if src == nil || len(in.References) == 0 || !src.Snapshot && src.RetentionDays == 0 && (!probing || len(src.Partition) == 0) || !b.readsInput(p, in) {
				continue
			}
			s := seen[src]
			if s == nil {
				s = &sourceRead{name: in.Name, source: src}
				if l := derive.Layout(src); l != nil {
					s.dated, s.sched = l.Dated(), l.Schedule
				}
				if up := at[in.Node]; up != nil {
					s.filled = up.realDates()
				}
				seen[src] = s
				out = append(out, s)
			}
			r := sourceReader{p: p}
			if r.runs, r.told = derive.SourceReads(p.node, in); !r.told {
				r.runs = derive.Reads(p.node, in).Runs
			}
			s.readers = append(s.readers, r)
		}
	}
	return out
}

// probe asks the engine, in one query, which of the partitions that the plan
// reads of a source have rows. It tells whether that is known or needs none.
func (b *build) probe(ctx context.Context, s *sourceRead) (bool, error) {
	if s.dated == nil {
		return true, nil
	}
	values := map[bizdate.Date]string{}
	var slots []bizdate.Slot
	s.distinct(b, func(u bizdate.Date) {
		if _, known := values[u]; known {
			return
		}
		slots = s.sched.AppendSlots(slots[:0], u, b.deps.Model.Zone, nil)
		if len(slots) == 0 {
			return
		}
		if v, diags := s.dated.Expr.Eval(param.At(slots[0])); !diags.HasErrors() {
			values[u] = v
		}
	})
	if len(values) == 0 {
		return true, nil
	}
	if found, err := b.inEngine(ctx, s.name); err != nil || !found {
		return true, err // a task of the plan makes it, or passSources has refused
	}
	if b.deps.Prober == nil {
		return b.deps.NotProbed == "", nil
	}
	var from, to string
	for _, v := range values {
		if from == "" || v < from {
			from = v
		}
		to = max(to, v)
	}
	list, err := b.deps.Prober.Partitions(ctx, s.name, s.dated.Name, from, to)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil && len(list) > 0 && !slices.ContainsFunc(list, func(v string) bool { return len(v) == len(from) }) {
		err = fmt.Errorf("%s holds values such as %s, where the declared partition gives %s", s.dated.Name, list[0], from)
	}
	if err != nil { // what cannot be looked at does not forbid the backfill
		d := b.warnf("probe_failed", "the partitions of %s could not be looked at", s.name)
		d.Detail, d.Pos = err.Error(), s.source.Pos
		d.Hint = "check that the source can be read, and that its declared partition gives what the column " + s.dated.Name + " holds"
		return true, nil
	}
	have := make(map[string]bool, len(list))
	for _, v := range list {
		have[v] = true
	}
	// What comes until a later start may come yet.
	later, today := b.req.RunAt != nil && b.req.RunAt.After(b.deps.Now), todayIn(b)
	s.missing = map[bizdate.Date]bool{}
	for u, v := range values {
		if !have[v] && (!later || u < today) {
			s.missing[u] = true
		}
	}
	return true, nil
}

// finding is what is wrong with a source: which of its partitions, on which
// dates of the target, for which readers.
type finding struct {
	parts, dates map[bizdate.Date]bool
	readers      []string
}

func (f *finding) add(reader string, d, u bizdate.Date) {
	if f.parts == nil {
		f.parts, f.dates = map[bizdate.Date]bool{}, map[bizdate.Date]bool{}
	}
	f.parts[u], f.dates[d] = true, true
	if n := len(f.readers); n == 0 || f.readers[n-1] != reader {
		f.readers = append(f.readers, reader)
	}
}

func (f *finding) empty() bool { return len(f.readers) == 0 }

func (f *finding) detail() string {
	verb := "read"
	if len(f.readers) == 1 {
		verb = "reads"
	}
	return fmt.Sprintf("%s %s it on %s", someNames(f.readers), verb, rangesText(ascending(f.dates)))
}

// checkSource tells of partitions that are missing or past their retention.
func (b *build) checkSource(s *sourceRead, today bizdate.Date) {
	var lost, gone, aged, missing finding
	keep := s.source.RetentionDays
	if keep == 0 && len(s.missing) == 0 {
		return
	}
	for _, r := range s.readers {
		name, holds := r.p.node.Name, b.holdsRows(r.p)
		s.each(b, r, func(d, u bizdate.Date) {
			away := r.told && s.missing[u]
			past := keep > 0 && u < today-bizdate.Date(keep)
			switch {
			case past && away && holds(d):
				lost.add(name, d, u)
			case past && away:
				gone.add(name, d, u)
			case past:
				aged.add(name, d, u)
			case away:
				missing.add(name, d, u)
			}
		})
	}
	if !lost.empty() {
		d := b.stop(b.req.Allow.PastRetention)("past_retention", "%s no longer has %s, and %s rows that were built before it dropped them",
			s.name, rangesText(ascending(lost.parts)), holdText(lost.readers))
		d.Detail, d.Pos = fmt.Sprintf("it keeps %s; %s", days(keep), lost.detail()), s.source.Pos
		d.Hint = "leave these dates out, or restore the partitions; --allow-past-retention replaces those rows by what the SELECT gives without them"
	}
	if !gone.empty() && !b.req.Allow.PastRetention {
		d := b.warnf("past_retention", "%s no longer has %s", s.name, rangesText(ascending(gone.parts)))
		d.Detail, d.Pos = fmt.Sprintf("it keeps %s; %s", days(keep), gone.detail()), s.source.Pos
		d.Hint = "leave these dates out, or restore the partitions; --allow-past-retention says that this is known"
	}
	if !aged.empty() && !b.req.Allow.PastRetention {
		d := b.warnf("past_retention", "%s may drop %s at any time: it keeps %s", s.name, rangesText(ascending(aged.parts)), days(keep))
		d.Detail, d.Pos = aged.detail(), s.source.Pos
		d.Hint = "make sure that they stay until the backfill has ended; --allow-past-retention says that this is known"
	}
	if !missing.empty() && !b.req.Allow.MissingSource {
		say := b.warnf
		if b.req.Strict {
			say = b.errorf
		}
		d := say("source_partition_missing", "%s has no rows on %s", s.name, rangesText(ascending(missing.parts)))
		d.Detail, d.Pos = missing.detail(), s.source.Pos
		d.Hint = "load these partitions first; --allow-missing-source says that there are none"
	}
}

// checkSnapshot tells of old dates that are made from a source's latest state:
// an error where they would replace what was made from the state of that time.
func (b *build) checkSnapshot(s *sourceRead, today bizdate.Date) {
	var replaced, old finding
	for _, r := range s.readers {
		holds := b.holdsRows(r.p)
		for _, d := range r.p.real {
			switch {
			case d >= today-1: // the regular run of yesterday, or later
			case holds(d):
				replaced.add(r.p.node.Name, d, d)
			default:
				old.add(r.p.node.Name, d, d)
			}
		}
	}
	if !replaced.empty() {
		d := b.stop(b.req.Allow.Snapshot)("snapshot_source", "%s holds only its latest state, and %s rows of earlier ones", s.name, holdText(replaced.readers))
		d.Detail, d.Pos = replaced.detail(), s.source.Pos
		d.Hint = "leave these dates or the fields that read it out; --allow-snapshot replaces those rows by ones of today's state"
	}
	if !old.empty() && !b.req.Allow.Snapshot {
		d := b.warnf("snapshot_source", "%s holds only its latest state: old dates will show today's", s.name)
		d.Detail, d.Pos = old.detail(), s.source.Pos
		d.Hint = "read a source that keeps its history, if there is one; --allow-snapshot says that this is known"
	}
}

// checkLifecycle refuses dates that the target's engine drops again.
func (b *build) checkLifecycle(p *picked, today bizdate.Date) {
	if !p.node.IsTable() || p.node.Table.LifecycleDays == 0 {
		return
	}
	keep := p.node.Table.LifecycleDays
	var old []bizdate.Date
	for _, d := range p.real {
		if d < today-bizdate.Date(keep) {
			old = append(old, d)
		}
	}
	if len(old) == 0 {
		return
	}
	slices.Sort(old)
	d := b.stop(b.req.Allow.Lifecycle)("past_lifecycle", "%s keeps %s, and the engine would drop %s", p.node.Name, days(keep), rangesText(old))
	d.Pos, d.Hint = p.node.Pos(), fmt.Sprintf("begin at %s, or raise its lifecycle; --allow-lifecycle writes them all the same", today-bizdate.Date(keep))
}

// stop gives an error, or a warning where the override is given.
func (b *build) stop(allowed bool) func(code, format string, args ...any) *diag.Diagnostic {
	if allowed {
		return b.warnf
	}
	return b.errorf
}

// holdsRows tells of a node's dates whether any of its tables holds rows.
func (b *build) holdsRows(p *picked) func(bizdate.Date) bool {
	known := map[bizdate.Date]bool{}
	return func(d bizdate.Date) bool {
		v, ok := known[d]
		if !ok {
			for _, m := range p.node.Table.Nodes {
				v = v || slices.ContainsFunc(b.on(m.Name, d), func(r *Built) bool { return r.Rows > 0 })
			}
			known[d] = v
		}
		return v
	}
}

func ascending(set map[bizdate.Date]bool) []bizdate.Date {
	out := make([]bizdate.Date, 0, len(set))
	for d := range set {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// someNames joins names, the first few of them.
func someNames(names []string) string {
	const most = 3
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

func holdText(names []string) string {
	if len(names) == 1 {
		return names[0] + " holds"
	}
	return someNames(names) + " hold"
}
