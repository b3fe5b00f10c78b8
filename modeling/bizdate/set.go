package bizdate

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
)

// Range is the dates First..Last, both included.
type Range struct {
	First, Last Date
}

// ParseRange reads "2013-01-01..2013-01-31" or one date.
func ParseRange(s string) (Range, error) {
	a, b, two := strings.Cut(s, "..")
	if !two {
		b = a
	}
	first, err := Parse(a)
	if err != nil {
		return Range{}, err
	}
	last, err := Parse(b)
	if err != nil {
		return Range{}, err
	}
	if last < first {
		return Range{}, fmt.Errorf("bizdate: range %q ends before it starts", s)
	}
	return Range{First: first, Last: last}, nil
}

// String gives "2013-01-01..2013-01-31", or one date.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + ".." + r.Last.String()
}

// Len gives the number of dates.
func (r Range) Len() int { return int(r.Last-r.First) + 1 }

// Set is an immutable, ascending set of dates kept as runs of ranges, so that
// years of dates cost as little as the holes between them. The zero value is
// the empty set.
type Set struct {
	runs   []Range
	before []int // before[i] = number of dates in runs[:i]
}

// SetOf makes a set of dates in any order, repeats allowed.
func SetOf(dates ...Date) Set {
	if !slices.IsSorted(dates) {
		dates = slices.Clone(dates)
		slices.Sort(dates)
	}
	var runs []Range
	for _, d := range dates {
		if n := len(runs); n > 0 && d <= runs[n-1].Last+1 {
			runs[n-1].Last = max(runs[n-1].Last, d)
			continue
		}
		runs = append(runs, Range{First: d, Last: d})
	}
	return counted(runs)
}

// SetOfRanges makes a set of ranges in any order, overlaps allowed; a range
// that ends before it starts is empty.
func SetOfRanges(ranges ...Range) Set {
	sorted := slices.DeleteFunc(slices.Clone(ranges), func(r Range) bool { return r.Last < r.First })
	slices.SortFunc(sorted, func(a, b Range) int { return int(a.First) - int(b.First) })
	var runs []Range
	for _, r := range sorted {
		if n := len(runs); n > 0 && r.First <= runs[n-1].Last+1 {
			runs[n-1].Last = max(runs[n-1].Last, r.Last)
			continue
		}
		runs = append(runs, r)
	}
	return counted(runs)
}

func counted(runs []Range) Set {
	if len(runs) == 0 {
		return Set{}
	}
	before := make([]int, len(runs))
	for i := 1; i < len(runs); i++ {
		before[i] = before[i-1] + runs[i-1].Len()
	}
	return Set{runs: runs, before: before}
}

// Len gives the number of dates.
func (s Set) Len() int {
	if n := len(s.runs); n > 0 {
		return s.before[n-1] + s.runs[n-1].Len()
	}
	return 0
}

// Ranges gives the runs, ascending, disjoint and not adjacent.
func (s Set) Ranges() []Range { return slices.Clone(s.runs) }

// run gives the first run that does not end before d.
func (s Set) run(d Date) int {
	return sort.Search(len(s.runs), func(i int) bool { return s.runs[i].Last >= d })
}

// Contains tells whether d is in the set, in O(log ranges).
func (s Set) Contains(d Date) bool {
	i := s.run(d)
	return i < len(s.runs) && s.runs[i].First <= d
}

// Index gives the position of d in ascending order, counted from 0, or -1.
func (s Set) Index(d Date) int {
	i := s.run(d)
	if i == len(s.runs) || s.runs[i].First > d {
		return -1
	}
	return s.before[i] + int(d-s.runs[i].First)
}

// At gives the date at position i in ascending order; ok is false outside
// 0..Len()-1.
func (s Set) At(i int) (d Date, ok bool) {
	if i < 0 || i >= s.Len() {
		return 0, false
	}
	r := sort.SearchInts(s.before, i+1) - 1
	return s.runs[r].First + Date(i-s.before[r]), true
}

// All yields the dates in ascending order.
func (s Set) All() iter.Seq[Date] {
	return func(yield func(Date) bool) {
		for _, r := range s.runs {
			for d := r.First; d <= r.Last; d++ {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// Backward yields the dates in descending order.
func (s Set) Backward() iter.Seq[Date] {
	return func(yield func(Date) bool) {
		for _, r := range slices.Backward(s.runs) {
			for d := r.Last; d >= r.First; d-- {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// Dates gives all dates, ascending.
func (s Set) Dates() []Date { return slices.AppendSeq(make([]Date, 0, s.Len()), s.All()) }

// Union gives the dates of either set.
func (s Set) Union(t Set) Set { return SetOfRanges(slices.Concat(s.runs, t.runs)...) }

// Intersect gives the dates of both sets.
func (s Set) Intersect(t Set) Set {
	var runs []Range
	for i, j := 0, 0; i < len(s.runs) && j < len(t.runs); {
		a, b := s.runs[i], t.runs[j]
		if first, last := max(a.First, b.First), min(a.Last, b.Last); first <= last {
			runs = append(runs, Range{First: first, Last: last})
		}
		if a.Last < b.Last {
			i++
		} else {
			j++
		}
	}
	return counted(runs)
}

// Minus gives the dates of s that are not in t.
func (s Set) Minus(t Set) Set {
	var runs []Range
	j := 0
	for _, r := range s.runs {
		for j < len(t.runs) && t.runs[j].Last < r.First {
			j++
		}
		for k := j; k < len(t.runs) && t.runs[k].First <= r.Last; k++ {
			if r.First < t.runs[k].First {
				runs = append(runs, Range{First: r.First, Last: t.runs[k].First - 1})
			}
			r.First = t.runs[k].Last + 1
		}
		if r.First <= r.Last {
			runs = append(runs, r)
		}
	}
	return counted(runs)
}

// Equal tells whether both sets hold the same dates.
func (s Set) Equal(t Set) bool { return slices.Equal(s.runs, t.runs) }

// String gives the ranges separated by commas.
func (s Set) String() string { return strings.Join(s.texts(), ",") }

func (s Set) texts() []string {
	out := make([]string, len(s.runs))
	for i, r := range s.runs {
		out[i] = r.String()
	}
	return out
}

// MarshalJSON gives ["2013-01-01..2013-01-31","2013-02-05"].
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.texts()) }

// UnmarshalJSON reads what MarshalJSON writes, in any order.
func (s *Set) UnmarshalJSON(b []byte) error {
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil {
		return fmt.Errorf("bizdate: read date set: %w", err)
	}
	ranges := make([]Range, 0, len(texts))
	for _, t := range texts {
		r, err := ParseRange(t)
		if err != nil {
			return err
		}
		ranges = append(ranges, r)
	}
	*s = SetOfRanges(ranges...)
	return nil
}
