package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// late gives the values that only the run knows: the node's and the
// instance's id, and cross-node parameters (semantics §2.5, §2.6).
func (j *job) late(ctx context.Context, refs []param.LateRef) (param.Late, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	out := param.Late{}
	for _, ref := range refs {
		if _, done := out[ref.Key]; done {
			continue
		}
		switch ref.Kind {
		case param.LateNodeID:
			out[ref.Key] = j.node.Name
		case param.LateInstanceID:
			out[ref.Key] = j.plan.Backfill + "." + j.id
		case param.LateCross:
			v, err := j.cross(ctx, ref)
			if err != nil {
				return nil, err
			}
			out[ref.Key] = v
		default:
			return nil, fmt.Errorf("run: bind %s of %s: its kind %q is not known", ref.Key, j.id, ref.Kind)
		}
	}
	return out, nil
}

// cross resolves a cross-node parameter for the job's business date.
func (j *job) cross(ctx context.Context, ref param.LateRef) (string, error) {
	valuer, can := j.deps.Ledger.(Valuer)
	if !can {
		return "", fmt.Errorf("run: bind %s of %s: the ledger keeps no parameter values", ref.Key, j.id)
	}
	d := j.in.Slot.Date
	read := param.CrossRead{
		Name: ref.Node + "." + ref.Output, Bizdate: d, Direct: true, Declared: true, // planning has checked both
		InBackfill: param.Absent, Default: ref.Default, Lookback: ref.Days(),
	}
	recorded, err := valuer.Values(ctx, ref.Node, ref.Output, d-bizdate.Date(ref.Days()), d)
	if err != nil {
		return "", fmt.Errorf("run: bind %s of %s: %w", ref.Key, j.id, err)
	}
	for _, v := range recorded {
		read.Records = append(read.Records, param.CrossRecord{Bizdate: v.Date, Finished: v.FinishedAt, Value: &v.Value, Success: true})
	}
	if node, in := j.index[ref.Node]; in {
		if di, planned := j.board.dates[d]; planned {
			read.InBackfill = j.producer(node, di)
		}
	}
	if read.InBackfill == param.Runs {
		for _, v := range recorded {
			if v.Date == d && v.Backfill == j.plan.Backfill {
				read.ThisRun = &v.Value
			}
		}
	}
	v, diags := param.ResolveCross(read)
	if diags.HasErrors() {
		return "", fmt.Errorf("run: bind %s of %s: %w", ref.Key, j.id, diags.Errors())
	}
	for _, w := range diags {
		if !slices.Contains(j.notes, w.Summary) {
			j.notes = append(j.notes, w.Summary)
		}
	}
	return v.Value, nil
}

// producer tells what the producer of a parameter did in this backfill. It
// ends before its readers begin, so its record is complete and its cell is no
// longer written.
func (j *job) producer(node, dateIndex int) param.InBackfill {
	step := j.x.Step(node, j.plan.Dates[dateIndex])
	if step >= 0 && j.plan.Nodes[node].Steps[step].Strategy == plan.DryRun {
		return param.DryRuns
	}
	if j.board.cells[j.board.at(dateIndex, node)] == status.Failed {
		return param.Failed
	}
	return param.Runs
}
