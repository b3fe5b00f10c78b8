package diag

import "strings"

// Suggest gives the candidate nearest to word (edit distance at most a third
// of its length, at least 1), or "" when none is near.
func Suggest(word string, candidates []string) string {
	best, bestD := "", 1<<30
	w := strings.ToLower(word)
	limit := max(1, len([]rune(w))/3)
	for _, c := range candidates {
		if d := distance(w, strings.ToLower(c)); d < bestD || d == bestD && c < best {
			best, bestD = c, d
		}
	}
	if bestD > limit {
		return ""
	}
	return best
}

// DidYouMean gives the hint `did you mean "x"?`, or fallback when no
// candidate is near.
func DidYouMean(word string, candidates []string, fallback string) string {
	if s := Suggest(word, candidates); s != "" {
		return `did you mean "` + s + `"?`
	}
	return fallback
}

// distance is the optimal string alignment distance (insert, delete,
// substitute, swap neighbours), in runes.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	prev2 := make([]int, len(rb)+1)
	prev := make([]int, len(rb)+1)
	cur := make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		cur[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(rb)]
}
