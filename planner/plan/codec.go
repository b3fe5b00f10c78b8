package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/retrofill/retrofill/modeling/bizdate"
	"github.com/retrofill/retrofill/modeling/diag"
)

// VersionError says that a plan document has a format this code does not
// know.
type VersionError struct{ Found int }

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("plan: decode: format version %d is not known (this retrofill writes %d); make the plan again with this version, or use the version that wrote it", e.Found, FormatVersion)
}

// Encode gives the plan's JSON document, one line, deterministic: the same
// plan gives the same bytes. Lists that are never left out are written as []
// when empty. The plan's FormatVersion is written as it is, 0 as the current
// one.
func Encode(p Plan) ([]byte, error) {
	p = normalise(p)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("plan: encode %s: %w", p.Backfill, err)
	}
	return b.Bytes(), nil
}

// Decode reads a document that Encode wrote. Unknown keys, trailing text and
// unknown format versions (*VersionError) are refused. It does not Validate.
func Decode(doc []byte) (Plan, error) {
	var head struct {
		FormatVersion *int `json:"format_version"`
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		return Plan{}, fmt.Errorf("plan: decode: %w", err)
	}
	if head.FormatVersion == nil {
		return Plan{}, fmt.Errorf("plan: decode: not a plan document: it has no format_version")
	}
	if *head.FormatVersion != FormatVersion {
		return Plan{}, &VersionError{Found: *head.FormatVersion}
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	var p Plan
	if err := dec.Decode(&p); err != nil {
		return Plan{}, fmt.Errorf("plan: decode: %w", err)
	}
	return normalise(p), nil
}

// Digest identifies a plan: hex sha256 of a version byte and the document.
func Digest(p Plan) (string, error) {
	doc, err := Encode(p)
	if err != nil {
		return "", err
	}
	return DigestOf(doc), nil
}

// Seal gives the document with its own digest in it, for apply.
func Seal(p Plan) ([]byte, error) {
	p.Digest = ""
	d, err := Digest(p)
	if err != nil {
		return nil, err
	}
	p.Digest = d
	return Encode(p)
}

// Unseal checks the digest that Seal has put into a plan and takes it out. The
// error says that the plan is not as it was made: what was reviewed would not
// be what the ledger remembers. The layout of the JSON does not count.
func Unseal(p *Plan) error {
	found := p.Digest
	p.Digest = ""
	d, err := Digest(*p)
	switch {
	case err != nil:
		return err
	case found == "":
		return fmt.Errorf("plan: unseal: the plan has no digest")
	case found != d:
		return fmt.Errorf("plan: unseal: the plan was changed after it was made: digest %s, content %s", found, d)
	}
	return nil
}

// DigestOf is Digest of a document that Encode wrote.
func DigestOf(doc []byte) string {
	h := sha256.New()
	h.Write([]byte{FormatVersion})
	h.Write(doc)
	return hex.EncodeToString(h.Sum(nil))
}

// normalise gives a copy whose lists without omitempty are never nil, so that
// readers of the JSON see [] and never null. Nothing shared is changed.
func normalise(p Plan) Plan {
	if p.FormatVersion == 0 {
		p.FormatVersion = FormatVersion
	}
	p.Request.Nodes = list(p.Request.Nodes)
	p.Dates = list(p.Dates)
	p.Groups = slices.Clone(list(p.Groups))
	for i := range p.Groups {
		p.Groups[i] = list(p.Groups[i])
	}
	p.Recommended = list(p.Recommended)
	if p.Diagnostics == nil {
		p.Diagnostics = diag.List{}
	}
	p.SlotMaps = slices.Clone(p.SlotMaps)
	for i := range p.SlotMaps {
		p.SlotMaps[i].Runs = list(p.SlotMaps[i].Runs)
	}
	if p.Definitions != nil {
		defs := make(map[string]Definition, len(p.Definitions))
		for id, d := range p.Definitions {
			if d.Fields == nil {
				d.Fields = map[string]string{}
			}
			defs[id] = d
		}
		p.Definitions = defs
	}
	p.Nodes = slices.Clone(list(p.Nodes))
	for i := range p.Nodes {
		normaliseNode(&p.Nodes[i])
	}
	return p
}

func normaliseNode(n *Node) {
	n.Fields = slices.Clone(list(n.Fields))
	for i := range n.Fields {
		n.Fields[i].Nodes = list(n.Fields[i].Nodes)
		n.Fields[i].Reasons = list(n.Fields[i].Reasons)
	}
	n.Writes = slices.Clone(n.Writes)
	for i := range n.Writes {
		n.Writes[i].Fields = list(n.Writes[i].Fields)
	}
	n.Steps = slices.Clone(list(n.Steps))
	for i := range n.Steps {
		n.Steps[i].Dates = list(n.Steps[i].Dates)
		n.Steps[i].Writes = slices.Clone(n.Steps[i].Writes)
		for k := range n.Steps[i].Writes {
			n.Steps[i].Writes[k].Fields = list(n.Steps[i].Writes[k].Fields)
		}
	}
}

// list gives an empty list for nil.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func sortedDates(dates []bizdate.Date) []bizdate.Date {
	s := slices.Clone(dates)
	slices.Sort(s)
	return s
}
