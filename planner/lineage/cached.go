package lineage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// remembering is a Parser that parses each text once.
type remembering struct {
	parser sqlast.Parser
	trees  map[string]sqlast.ParseResult
}

// ParseSelects parses the texts that were not parsed before in one call.
func (r *remembering) ParseSelects(ctx context.Context, sqls []string) ([]sqlast.ParseResult, error) {
	var open []string
	for _, s := range sqls {
		if _, ok := r.trees[s]; !ok && !slices.Contains(open, s) {
			open = append(open, s)
		}
	}
	if len(open) > 0 {
		got, err := r.parser.ParseSelects(ctx, open)
		if err != nil {
			return nil, err
		}
		if len(got) != len(open) {
			return nil, fmt.Errorf("lineage: parse: %d trees for %d texts", len(got), len(open))
		}
		for i, s := range open {
			r.trees[s] = got[i]
		}
	}
	out := make([]sqlast.ParseResult, len(sqls))
	for i, s := range sqls {
		out[i] = r.trees[s]
	}
	return out, nil
}

// joinNames puts names into one text; no name holds a line end.
func joinNames(names []string) []byte { return []byte(strings.Join(names, "\n")) }

func splitNames(v []byte) []string {
	if len(v) == 0 {
		return nil
	}
	return strings.Split(string(v), "\n")
}

func tablesKey(d sqlast.Definition) string {
	return "reads-" + digest(fmt.Sprint(sqlast.FormatVersion), strings.Join(d.Verbatim, ","), d.SQL)
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// analysisKey identifies everything that the analysis of a node depends on:
// its definition and the tables that it reads, in the order of its text.
func (b *builder) analysisKey(i int) string {
	d := b.defs[i]
	d.File = ""
	text := sqlast.AppendDefinition(nil, d)
	for _, name := range b.tables[i] {
		k := strings.ToLower(name)
		t, ok := b.schema[k]
		if !ok {
			continue
		}
		sum, ok := b.sums[k]
		if !ok {
			h := sha256.Sum256(sqlast.AppendTable(nil, t))
			sum = h[:]
			b.sums[k] = sum
		}
		text = append(text, sum...)
	}
	h := sha256.Sum256(text)
	return fmt.Sprintf("analysis-%d.%d-%s", analysisFormat, sqlast.FormatVersion, hex.EncodeToString(h[:16]))
}

// analysisFormat is the version of the cache's entries, which rises with the
// encoding of an analysis.
const analysisFormat = 2

// put makes a table known to its readers.
func (b *builder) put(name string, t sqlast.Table) {
	k := strings.ToLower(name)
	b.schema[k] = t
	delete(b.sums, k)
}
