package faultengine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/retrofill/retrofill/executors"
)

// Store is what the in-memory engine has committed. It outlives engines and
// crashes; it is safe for concurrent use. The zero value is empty.
type Store struct {
	mu      sync.Mutex
	markers map[unitKey]record
	commits []executors.Marker
	ddl     []string
}

type unitKey struct{ backfill, instance string }

type record struct {
	newest executors.Marker
	token  int64 // the highest
	count  int
}

// commit stores the marker, or refuses one whose token is older.
func (s *Store) commit(m executors.Marker) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.markers == nil {
		s.markers = map[unitKey]record{}
	}
	k := unitKey{m.Backfill, m.Instance}
	r := s.markers[k]
	if m.Token < r.token {
		return fmt.Errorf("token %d: %w", m.Token, executors.ErrFenced)
	}
	r.token = m.Token
	if r.count == 0 || m.Attempt >= r.newest.Attempt {
		r.newest = m
	}
	r.count++
	s.markers[k] = r
	s.commits = append(s.commits, m)
	return nil
}

// Lookup gives the newest committed attempt.
func (s *Store) Lookup(backfill, instance string) (executors.Marker, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.markers[unitKey{backfill, instance}]
	return r.newest, ok
}

// Commits gives all committed markers in commit order.
func (s *Store) Commits() []executors.Marker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commits)
}

// Count tells how often an instance has been committed: more than once means
// that work was repeated.
func (s *Store) Count(backfill, instance string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.markers[unitKey{backfill, instance}].count
}

// Repeated gives the instances that were committed more than once, sorted.
func (s *Store) Repeated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k, r := range s.markers {
		if r.count > 1 {
			out = append(out, k.instance)
		}
	}
	slices.Sort(out)
	return out
}

// DDL gives the statements that Prepare was given, without repetitions.
func (s *Store) DDL() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ddl)
}

// String lists the committed instances, sorted, a line each:
// "<instance> #<attempts, in commit order>".
func (s *Store) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := map[string]string{}
	for _, m := range s.commits {
		lines[m.Instance] += fmt.Sprintf(" #%d", m.Attempt)
	}
	names := make([]string, 0, len(lines))
	for n := range lines {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		b.WriteString(n + lines[n] + "\n")
	}
	return b.String()
}

// Fake is an in-memory engine: it runs no SQL, but keeps a real engine's
// promises about units, facts, markers and fencing.
type Fake struct {
	Store *Store
	// Facts gives the numbers of a statement; nil gives one affected row for
	// inserts and updates and nothing else, which every Rule accepts.
	Facts func(u executors.Unit, s executors.Statement) executors.Facts
	// Rows, Tables and Columns answer Query, Catalog and Describe.
	Rows    func(sql string) (executors.Rows, error)
	Tables  []executors.TableInfo
	Columns func(sql string) ([]executors.Column, error)
}

var (
	_ executors.Engine    = (*Fake)(nil)
	_ executors.Preparer  = (*Fake)(nil)
	_ executors.Describer = (*Fake)(nil)
	_ executors.Versioner = (*Fake)(nil)
)

// Execute collects facts, asks Accept and stores the marker.
func (f *Fake) Execute(ctx context.Context, u executors.Unit) (executors.Result, error) {
	if err := ctx.Err(); err != nil {
		return executors.Result{}, err
	}
	facts := executors.Facts{}
	for _, s := range u.Statements {
		switch {
		case f.Facts != nil:
			for k, v := range f.Facts(u, s) {
				facts[k] += v
			}
		case s.Role == executors.RoleInsert:
			facts["inserted."+s.Target]++
			facts["rows_affected."+s.Target]++
		case s.Role == executors.RoleUpdate:
			facts["updated."+s.Target]++
			facts["rows_affected."+s.Target]++
		}
	}
	if u.Accept != nil {
		if err := u.Accept(facts); err != nil {
			return executors.Result{}, &executors.RejectedError{Err: err}
		}
	}
	if err := ctx.Err(); err != nil {
		return executors.Result{}, err
	}
	if err := f.Store.commit(u.Marker); err != nil {
		return executors.Result{}, fmt.Errorf("faultengine: write %s: %w", u.Marker.Instance, err)
	}
	return executors.Result{Facts: facts}, nil
}

// Lookup reads the store.
func (f *Fake) Lookup(ctx context.Context, m executors.Marker) (executors.Outcome, executors.Marker, error) {
	if err := ctx.Err(); err != nil {
		return executors.NotCommitted, executors.Marker{}, err
	}
	found, ok := f.Store.Lookup(m.Backfill, m.Instance)
	if !ok {
		return executors.NotCommitted, executors.Marker{}, nil
	}
	return executors.Committed, found, nil
}

// Query answers with Rows, or with nothing.
func (f *Fake) Query(_ context.Context, sql string, limit int) (executors.Rows, error) {
	if f.Rows == nil {
		return executors.Rows{}, nil
	}
	rows, err := f.Rows(sql)
	if limit > 0 && len(rows.Values) > limit {
		rows.Values, rows.Truncated = rows.Values[:limit], true
	}
	return rows, err
}

// Catalog lists Tables of the given schemas.
func (f *Fake) Catalog(_ context.Context, schemas []string) ([]executors.TableInfo, error) {
	if schemas == nil {
		return slices.Clone(f.Tables), nil
	}
	var out []executors.TableInfo
	for _, t := range f.Tables {
		if slices.ContainsFunc(schemas, func(s string) bool { return strings.EqualFold(s, t.Schema) }) {
			out = append(out, t)
		}
	}
	return out, nil
}

// Describe answers with Columns, or with none.
func (f *Fake) Describe(_ context.Context, sql string) ([]executors.Column, error) {
	if f.Columns == nil {
		return nil, nil
	}
	return f.Columns(sql)
}

// Prepare records the statements, each once.
func (f *Fake) Prepare(_ context.Context, ddl []string) error {
	f.Store.mu.Lock()
	defer f.Store.mu.Unlock()
	for _, s := range ddl {
		if !slices.Contains(f.Store.ddl, s) {
			f.Store.ddl = append(f.Store.ddl, s)
		}
	}
	return nil
}

// Version names the fake.
func (f *Fake) Version(context.Context) (string, error) { return "fake 1", nil }

// Classify calls everything permanent: the fake has no errors of its own.
func (f *Fake) Classify(error) executors.Class { return executors.Permanent }

// Close does nothing; the store stays.
func (f *Fake) Close() error { return nil }
