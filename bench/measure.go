package bench

import (
	"context"
	"fmt"
	"slices"
)

// sample is one round of one side.
type sample struct {
	seconds          float64
	rows, statements int64
	// sum identifies the rows that were made, in any order.
	sum string
	// peakMB is the greatest memory of a started process, cpu its processor
	// time in seconds.
	peakMB, cpu float64
}

// measured is a case to be measured.
type measured struct {
	name   string
	target float64
	// goal is an absolute floor in seconds; with it there is no floor to run.
	goal float64
	// want is the expected sum where the floor is a goal, "" = the first round's.
	want string
	run  func(ctx context.Context, round int) (sample, error)
	// floor runs after, or in odd rounds before, the case.
	floor func(ctx context.Context, round int) (sample, error)
}

// measure runs the rounds of a case, its sides in turn, and adds the result.
func (r *runner) measure(ctx context.Context, m measured) error {
	c := Case{Suite: r.suite, Name: m.name, Target: m.target, Goal: m.floor == nil, Equal: true, Rounds: r.cfg.Rounds}
	if r.cfg.Short {
		c.Target = 0
	}
	var times, floors, ratios, cpu []float64
	want := m.want
	for round := range r.cfg.Rounds {
		var a, f sample
		sides := []func() error{func() (err error) { a, err = m.run(ctx, round); return err }}
		if m.floor != nil {
			sides = append(sides, func() (err error) { f, err = m.floor(ctx, round); return err })
			if round%2 == 1 {
				slices.Reverse(sides)
			}
		}
		for _, side := range sides {
			if err := side(); err != nil {
				return fmt.Errorf("case %s, round %d: %w", m.name, round+1, err)
			}
		}
		if m.floor == nil {
			if want == "" {
				want = a.sum
			}
			f.sum, f.seconds = want, m.goal
		}
		c.Equal = c.Equal && a.sum == f.sum
		c.Rows, c.Statements, c.PeakMB = a.rows, a.statements, max(c.PeakMB, a.peakMB)
		times, floors, ratios = append(times, a.seconds), append(floors, f.seconds), append(ratios, a.seconds/f.seconds)
		cpu = append(cpu, a.cpu)
	}
	c.Seconds, c.Floor, c.Ratio, c.CPU = median(times), median(floors), median(ratios), median(cpu)
	if c.Seconds > 0 {
		c.Spread = (slices.Max(times) - slices.Min(times)) / c.Seconds
	}
	r.add(c)
	return nil
}

func (r *runner) add(c Case) {
	r.res.Cases = append(r.res.Cases, c)
	if r.cfg.Progress != nil {
		// Progress is for people who wait; its failure stops nothing.
		_, _ = fmt.Fprintf(r.cfg.Progress, "%s/%s: %s s, ratio %.2f\n", c.Suite, c.Name, short(c.Seconds), c.Ratio)
	}
}

// median of at least one number.
func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
