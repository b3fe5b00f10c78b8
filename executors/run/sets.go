package run

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/executors"
	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/plan"
	"github.com/retrofill/retrofill/planner/status"
)

// setValues asks the queries of a committed step for the cross-node parameters
// that it sets (semantics §2.6). The script's work stays where it is: if a
// query fails, the instance has failed and its next attempt runs the script
// again. retry says that the error may pass.
func (j *job) setValues(ctx context.Context, o *ledger.Outcome) (retry bool) {
	if o.Status != status.Succeeded || !slices.ContainsFunc(j.step.Sets, func(s plan.Set) bool { return s.Query != "" }) {
		return false
	}
	// Also when the run is being stopped: the script is committed, and only
	// its values are missing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupPatience)
	defer cancel()
	values, err := j.values(ctx)
	if err != nil {
		o.Status, o.Reason, o.Error, o.Built = status.Failed, "the values that it sets cannot be read", err.Error(), nil
		return j.deps.Engine.Classify(err) == executors.Transient
	}
	o.Values = values
	return false
}

func (j *job) values(ctx context.Context) (map[string]string, error) {
	c, err := j.compile()
	if err != nil {
		return nil, err
	}
	late, err := j.late(ctx, c.late)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i, s := range j.step.Sets {
		if c.sets[i] == nil {
			continue
		}
		text, diags := c.sets[i].Render(param.At(j.in.Slot), late)
		if diags.HasErrors() {
			return nil, fmt.Errorf("run: write query of %s: %w", s.Param, diags)
		}
		rows, err := j.deps.Engine.Query(ctx, text, 2)
		if err != nil {
			return nil, fmt.Errorf("run: query %s: %w", s.Param, err)
		}
		value, isSet, err := single(rows)
		if err != nil {
			return nil, fmt.Errorf("run: query %s: %w", s.Param, err)
		}
		if isSet {
			out[s.Param] = value
		}
	}
	return out, nil
}

// single gives the one value of a query's result; NULL and no row are none.
func single(rows executors.Rows) (value string, isSet bool, err error) {
	switch {
	case len(rows.Columns) != 1:
		return "", false, fmt.Errorf("it gives %d columns, not one", len(rows.Columns))
	case len(rows.Values) > 1 || rows.Truncated:
		return "", false, fmt.Errorf("it gives more than one row")
	case len(rows.Values) == 0:
		return "", false, nil
	}
	switch v := rows.Values[0][0].(type) {
	case nil:
		return "", false, nil
	case string:
		return v, true, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true, nil
	default:
		return fmt.Sprint(v), true, nil
	}
}

// declared keeps the names of a command's outputs as they are declared, and
// refuses others.
func declared(sets []plan.Set, values map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(values))
	for name, v := range values {
		i := slices.IndexFunc(sets, func(s plan.Set) bool { return strings.EqualFold(s.Param, name) })
		if i < 0 {
			return nil, fmt.Errorf("run: read outputs: it sets %q, which is not declared under sets", name)
		}
		out[sets[i].Param] = v
	}
	return out, nil
}
