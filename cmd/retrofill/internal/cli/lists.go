package cli

import (
	"maps"
	"slices"
	"strings"
)

// hasFold tells whether a list holds a text, without letter case.
func hasFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

// sortedKeys gives a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
