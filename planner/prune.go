package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// reduced gives the analysis of the part of a table's SELECT that the step
// needs: only the key and the written fields, without the row-neutral joins
// that none of them reads — where sqlast proves the rest equal — else the whole
// SELECT. why says why it is whole.
func (b *build) reduced(ctx context.Context, p *picked) (a *sqlast.Analysis, why string) {
	whole := p.node.Analysis
	if b.deps.Parser == nil {
		return whole, "no parser"
	}
	keep := slices.Clone(p.node.Table.Key)
	for _, w := range p.writes {
		list := w.Fields
		if !w.Column { // a rewritten node holds all its fields
			for _, m := range p.node.Table.Nodes {
				if m.Name == w.Node {
					list = m.Fields
				}
			}
		}
		for _, f := range list {
			if !containsFold(keep, f) {
				keep = append(keep, f)
			}
		}
	}
	if len(keep) >= len(whole.Fields) || len(keep) == 0 {
		return whole, ""
	}
	slices.Sort(keep)
	key := pruneKey(whole, keep)
	var cached prunedText
	if v, ok := b.deps.Typer.Cache.Get(key); ok && json.Unmarshal(v, &cached) == nil {
		if cached.Analysis == nil {
			return whole, cached.Why
		}
		return cached.Analysis, ""
	}
	sql, ok, why := sqlast.Prune(ctx, b.deps.Parser, whole, keep)
	if ok {
		def := whole.Definition
		def.SQL = sql
		less, diags := sqlast.Split(ctx, b.deps.Parser, def, whole.Schema.Schema())
		if less == nil || diags.HasErrors() {
			why = "the shortened SELECT does not split"
		} else {
			cached.Analysis = less
		}
	}
	cached.Why = why
	if v, err := json.Marshal(cached); err == nil {
		b.deps.Typer.Cache.Put(key, v)
	}
	if cached.Analysis == nil {
		return whole, why
	}
	return cached.Analysis, ""
}

// prunedText is what the cache keeps of a pruning.
type prunedText struct {
	Analysis *sqlast.Analysis `json:"analysis,omitempty"`
	Why      string           `json:"why,omitempty"`
}

func pruneKey(a *sqlast.Analysis, keep []string) string {
	h := sha256.New()
	def, err := json.Marshal(a.Definition)
	schema, err2 := json.Marshal(a.Schema)
	if err != nil || err2 != nil {
		return ""
	}
	for _, part := range []string{"1", string(def), string(schema), strings.Join(keep, "\x00")} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return "prune-" + hex.EncodeToString(h.Sum(nil)[:16])
}
