package cli

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// cacheMagic begins the cache file; the digit is its format's version.
const cacheMagic = "retrofill-cache-1\n"

// fileCache keeps analyses by the key of their content in one file. It is
// read whole and written whole, through a temporary file; a file that is
// broken or cannot be read counts as empty, because losing it costs time only.
type fileCache struct {
	path string

	mu    sync.Mutex
	old   map[string][]byte // as read
	used  map[string][]byte // asked for or put by this process
	dirty bool
}

// openCache reads the cache file, if there is one.
func openCache(path string) *fileCache {
	c := &fileCache{path: path, old: map[string][]byte{}, used: map[string][]byte{}}
	b, err := os.ReadFile(path)
	if err != nil {
		return c
	}
	rest, ok := bytes.CutPrefix(b, []byte(cacheMagic))
	for ok && len(rest) > 0 {
		var key, value []byte
		if key, rest, ok = cutField(rest); !ok {
			break
		}
		if value, rest, ok = cutField(rest); ok {
			c.old[string(key)] = value
		}
	}
	return c
}

// cutField reads a length and so many bytes.
func cutField(b []byte) (field, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}

// Get implements lineage.Cache.
func (c *fileCache) Get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.used[key]; ok {
		return v, true
	}
	v, ok := c.old[key]
	if ok {
		c.used[key] = v
	}
	return v, ok
}

// Put implements lineage.Cache.
func (c *fileCache) Put(key string, value []byte) {
	if key == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[key] = value
	c.dirty = true
}

// maxStale is how many bytes of entries that nobody asked for are kept for
// other commands and branches, or a quarter of what is used. Small ones stay
// first: the types of a table that this command did not need are a few bytes
// and cost a question to the engine.
const maxStale = 8 << 20

// keepStale takes over what is kept of the entries that were not used.
func (c *fileCache) keepStale() {
	used := 0
	for _, v := range c.used {
		used += len(v)
	}
	var stale []string
	for k := range c.old {
		if _, ok := c.used[k]; !ok {
			stale = append(stale, k)
		}
	}
	slices.SortFunc(stale, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(c.old[a]), len(c.old[b])), cmp.Compare(a, b))
	})
	room := max(maxStale, used/4)
	for _, k := range stale {
		if room -= len(k) + len(c.old[k]); room < 0 {
			return
		}
		c.used[k] = c.old[k]
	}
}

// save writes the cache if it has changed.
func (c *fileCache) save() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return nil
	}
	c.keepStale()
	var b bytes.Buffer
	b.WriteString(cacheMagic)
	var n [binary.MaxVarintLen64]byte
	put := func(field []byte) {
		b.Write(n[:binary.PutUvarint(n[:], uint64(len(field)))])
		b.Write(field)
	}
	for k, v := range c.used {
		put([]byte(k))
		put(v)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return fmt.Errorf("cli: save cache: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), "cache-*")
	if err != nil {
		return fmt.Errorf("cli: save cache: %w", err)
	}
	_, err = f.Write(b.Bytes())
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		if rm := os.Remove(f.Name()); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		return fmt.Errorf("cli: save cache: %w", err)
	}
	c.dirty = false
	return nil
}
