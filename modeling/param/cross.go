package param

import (
	"time"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// DefaultLookback is how many days a recorded value may be older than the
// business date that reads it (semantics §2.6).
const DefaultLookback = 15

// InBackfill tells what the producer of a cross-node parameter does in the
// backfill, for the business date in question.
type InBackfill string

// The states. A producer that only dry-runs counts as absent.
const (
	Runs    InBackfill = "run"
	DryRuns InBackfill = "dry_run"
	Failed  InBackfill = "failed"
	Absent  InBackfill = "absent"
)

// CrossRecord is one finished run of the producer in the ledger.
type CrossRecord struct {
	Bizdate  bizdate.Date
	Finished time.Time
	// Value is what the run set; nil = nothing.
	Value   *string
	Success bool
}

// CrossRead is one parameter of one upstream node, read for one business date.
type CrossRead struct {
	Name       string // for messages: "node.param"
	Bizdate    bizdate.Date
	Direct     bool // the producer is a direct upstream node
	Declared   bool // it declares the parameter
	InBackfill InBackfill
	// ThisRun is what the producer set in this backfill for Bizdate; nil = nothing.
	ThisRun *string
	Records []CrossRecord
	Default *string
	// Lookback is the number of days N back that count; DefaultLookback unless
	// the project says otherwise, 0 = none.
	Lookback int
}

// CrossSource tells where a cross-node value came from.
type CrossSource string

// The sources, in order of preference.
const (
	FromBackfill CrossSource = "same_backfill"
	FromSameDate CrossSource = "same_date"
	FromRecent   CrossSource = "recent"
	FromDefault  CrossSource = "default"
)

// CrossValue is a resolved cross-node parameter. An empty text is a value.
type CrossValue struct {
	Value  string
	Source CrossSource
	// Bizdate is the business date of the run that set the value; the zero
	// Date with FromDefault.
	Bizdate bizdate.Date
}

// ResolveCross finds the value of a cross-node parameter (semantics §2.6). It
// never takes "the latest run": later business dates do not count. Errors:
// not_direct, undeclared, upstream_failed, no_value; warning: stale.
func ResolveCross(r CrossRead) (CrossValue, diag.List) {
	fail := func(code, summary, hint string) (CrossValue, diag.List) {
		return CrossValue{}, diag.List{diag.Errorf(code, "%s at business date %s: %s", r.Name, r.Bizdate, summary).WithHint("%s", hint)}
	}
	switch {
	case !r.Direct:
		return fail("not_direct", "its node is no direct upstream node", "declare a dependency on the node that sets it")
	case !r.Declared:
		return fail("undeclared", "its node does not declare this parameter", "declare it under `sets:` of that node")
	case r.InBackfill == Failed:
		return fail("upstream_failed", "its node failed in this backfill", "rerun that node")
	case r.InBackfill == Runs && r.ThisRun != nil:
		return CrossValue{Value: *r.ThisRun, Source: FromBackfill, Bizdate: r.Bizdate}, nil
	case r.InBackfill == Runs && r.Default != nil:
		return CrossValue{Value: *r.Default, Source: FromDefault}, nil
	case r.InBackfill == Runs:
		return fail("no_value", "its node ran in this backfill and set nothing, and there is no default", "give it a default")
	}
	if best := newest(r); best != nil {
		v := CrossValue{Value: *best.Value, Source: FromSameDate, Bizdate: best.Bizdate}
		if best.Bizdate == r.Bizdate {
			return v, nil
		}
		v.Source = FromRecent
		return v, diag.List{diag.Warnf("stale", "%s at business date %s: the value of %s is used, %d days older", r.Name, r.Bizdate, best.Bizdate, r.Bizdate-best.Bizdate).
			WithHint("backfill the upstream node too, so that it sets the value of the date itself")}
	}
	if r.Default != nil {
		return CrossValue{Value: *r.Default, Source: FromDefault}, nil
	}
	return fail("no_value", "no recorded value and no default", "give it a default, or backfill the upstream node too")
}

// newest gives the usable record of the nearest business date, the one that
// finished last among those of the same date.
func newest(r CrossRead) *CrossRecord {
	var best *CrossRecord
	for i := range r.Records {
		c := &r.Records[i]
		age := int(r.Bizdate - c.Bizdate)
		if !c.Success || c.Value == nil || age < 0 || age > max(r.Lookback, 0) {
			continue
		}
		if best == nil || c.Bizdate > best.Bizdate || c.Bizdate == best.Bizdate && c.Finished.After(best.Finished) {
			best = c
		}
	}
	return best
}
