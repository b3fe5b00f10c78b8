package sqlast

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Change is what differs between two versions of a definition (cases, changes).
type Change struct {
	ChangedFields []string `json:"changed_fields,omitempty"`
	AddedFields   []string `json:"added_fields,omitempty"`
	RemovedFields []string `json:"removed_fields,omitempty"`
	RowSetChanged bool     `json:"row_set_changed,omitempty"`
	SourceChanged bool     `json:"source_changed,omitempty"`
	KeyChanged    bool     `json:"key_changed,omitempty"`
	Reasons       []Reason `json:"reasons,omitempty"`
}

// Reason shows one difference: canonical texts of the old and new version.
type Reason struct {
	What string `json:"what"` // field NAME, row set, sources, key
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Unchanged tells whether nothing differs.
func (c Change) Unchanged() bool {
	return len(c.ChangedFields)+len(c.AddedFields)+len(c.RemovedFields) == 0 && !c.RowSetChanged && !c.SourceChanged && !c.KeyChanged
}

// Compare tells what changed between two analyses of one table. Both must be
// of the same FormatVersion: analyse an older one again from its Definition
// and SchemaSnapshot first.
func Compare(old, cur *Analysis) Change {
	var c Change
	reason := func(what, o, n string) { c.Reasons = append(c.Reasons, Reason{what, o, n}) }
	whole := old.Unsplittable != nil || cur.Unsplittable != nil
	for i := range cur.Fields {
		f := &cur.Fields[i]
		o, ok := old.Field(f.Name)
		switch {
		case !ok:
			c.AddedFields = append(c.AddedFields, strings.ToLower(f.Name))
		case !whole && o.Fingerprint != f.Fingerprint:
			c.ChangedFields = append(c.ChangedFields, strings.ToLower(f.Name))
			reason("field "+f.Name, o.Canonical, f.Canonical)
		}
	}
	for _, f := range old.Fields {
		if _, ok := cur.Field(f.Name); !ok {
			c.RemovedFields = append(c.RemovedFields, strings.ToLower(f.Name))
		}
	}
	sort.Strings(c.ChangedFields)
	sort.Strings(c.AddedFields)
	sort.Strings(c.RemovedFields)
	if whole {
		c.KeyChanged = !slices.Equal(old.RowSet.Key, cur.RowSet.Key)
	} else {
		c.KeyChanged = old.RowSet.KeyFingerprint != cur.RowSet.KeyFingerprint
	}
	if c.KeyChanged {
		reason("key", old.RowSet.KeyCanonical, cur.RowSet.KeyCanonical)
	}
	if !sameNames(old.RowSet.Sources, cur.RowSet.Sources) {
		c.SourceChanged = true
		reason("sources", strings.Join(old.RowSet.Sources, ", "), strings.Join(cur.RowSet.Sources, ", "))
	}
	if old.RowSet.Fingerprint != cur.RowSet.Fingerprint {
		c.RowSetChanged = true
		reason("row set", old.RowSet.Canonical, cur.RowSet.Canonical)
	}
	c.RowSetChanged = c.RowSetChanged || c.KeyChanged || c.SourceChanged
	return c
}

func sameNames(a, b []string) bool {
	return slices.EqualFunc(a, b, strings.EqualFold)
}

// CacheKey names the analysis of a definition over the tables it may read: it
// changes whenever the outcome may. Pass the snapshot of the tables that the
// definition names, or of all tables if they are not known yet.
func CacheKey(d Definition, s SchemaSnapshot) (string, error) {
	tables := append(SchemaSnapshot(nil), s...)
	sort.Slice(tables, func(i, j int) bool { return tables[i].Name < tables[j].Name })
	b, err := json.Marshal(struct {
		Version    int
		Definition Definition
		Schema     SchemaSnapshot
	}{FormatVersion, d, tables})
	if err != nil {
		return "", fmt.Errorf("sqlast: encode definition %s: %w", d.File, err)
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%d:%s", FormatVersion, hex.EncodeToString(sum[:])), nil
}
