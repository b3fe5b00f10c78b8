package spine

import "context"

// maxRepairs bounds the rewrites of one body.
const maxRepairs = 30

// repaired rewrites the body around faults of the engine, one by one, and
// gives the lateral form of the result.
func (p *prepared) repaired(ctx context.Context) (string, []string, *Refusal) {
	return "", nil, refuse(Unsupported, p.code.src.Pos, "no rewrite is known")
}
