package selector

import (
	"iter"
	"math/bits"
)

// Set is a set of node indexes of one Graph, one bit each. The zero value is
// an empty set of a graph without nodes; use Graph.Empty to make one.
type Set struct {
	words []uint64
}

func newSet(n int) Set { return Set{make([]uint64, (n+63)/64)} }

// Has tells whether node i is in the set; false outside the graph.
func (s Set) Has(i int) bool {
	return i >= 0 && i>>6 < len(s.words) && s.words[i>>6]&(1<<(i&63)) != 0
}

// Add puts node i into the set. Indexes outside the graph are ignored.
func (s Set) Add(i int) {
	if i >= 0 && i>>6 < len(s.words) {
		s.words[i>>6] |= 1 << (i & 63)
	}
}

// Remove takes node i out of the set.
func (s Set) Remove(i int) {
	if i >= 0 && i>>6 < len(s.words) {
		s.words[i>>6] &^= 1 << (i & 63)
	}
}

// Len gives the number of nodes in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty tells whether the set has no node.
func (s Set) Empty() bool {
	for _, w := range s.words {
		if w != 0 {
			return false
		}
	}
	return true
}

// All gives the node indexes, ascending.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for k, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(k<<6 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Clone gives an independent copy.
func (s Set) Clone() Set { return Set{append([]uint64(nil), s.words...)} }

// Union adds the nodes of o; both belong to one graph.
func (s Set) Union(o Set) {
	for i, w := range o.words {
		s.words[i] |= w
	}
}

// Intersect keeps only the nodes of o.
func (s Set) Intersect(o Set) {
	for i, w := range o.words {
		s.words[i] &= w
	}
}

// Subtract takes out the nodes of o.
func (s Set) Subtract(o Set) {
	for i, w := range o.words {
		s.words[i] &^= w
	}
}
