package duckdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

var _ sqlast.Parser = (*Parser)(nil)

// Parser is DuckDB's own SQL parser behind sqlast.Parser. It works on an
// in-memory database of its own that never loads an extension, and only ever
// parses: no text is bound or run. It may be used by several goroutines.
type Parser struct {
	db *sql.DB
}

// parserSource never tries the network for a missing function.
const parserSource = "?autoinstall_known_extensions=false&autoload_known_extensions=false&threads=2"

// parseBatch bounds the statements of one engine call.
const parseBatch = 500

// NewParser opens the parser's in-memory database. Close it after use.
func NewParser() (*Parser, error) {
	c, err := duck.NewConnector(parserSource, nil)
	if err != nil {
		return nil, fmt.Errorf("duckdb: open parser: %w", err)
	}
	return &Parser{db: sql.OpenDB(c)}, nil
}

// Close releases the in-memory database.
func (p *Parser) Close() error {
	if err := p.db.Close(); err != nil {
		return fmt.Errorf("duckdb: close parser: %w", err)
	}
	return nil
}

// ParseSelects implements sqlast.Parser: many texts cost one engine call.
func (p *Parser) ParseSelects(ctx context.Context, sqls []string) ([]sqlast.ParseResult, error) {
	out := make([]sqlast.ParseResult, 0, len(sqls))
	for len(sqls) > 0 {
		n := min(len(sqls), parseBatch)
		trees, err := p.serialize(ctx, sqls[:n])
		if err != nil && ctx.Err() == nil && n > 1 {
			// One text broke the whole call: find out which, one by one.
			trees = nil
			for _, s := range sqls[:n] {
				one, err := p.serialize(ctx, []string{s})
				if err != nil {
					one = []string{complaint(err)}
				}
				trees = append(trees, one...)
			}
			err = ctx.Err()
		} else if err != nil && ctx.Err() == nil {
			trees, err = []string{complaint(err)}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("duckdb: parse %d statements: %w", n, err)
		}
		for i, t := range trees {
			out = append(out, parseResult(t, sqls[i]))
		}
		sqls = sqls[n:]
	}
	return out, nil
}

// serialize gives DuckDB's tree of each text as JSON. The outer cast to VARCHAR
// matters: without it the driver decodes to a map and rounds the positions.
func (p *Parser) serialize(ctx context.Context, sqls []string) (trees []string, err error) {
	clean := make([]string, len(sqls))
	for i, s := range sqls {
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
			clean[i] = s
		} else {
			clean[i] = "\x01" // a syntax error; parseResult cannot know why
		}
	}
	list, err := json.Marshal(clean)
	if err != nil {
		return nil, fmt.Errorf("duckdb: encode statements: %w", err)
	}
	rows, err := p.db.QueryContext(ctx, `SELECT i, json_serialize_sql(s)::VARCHAR
		FROM (SELECT unnest(l) AS s, unnest(range(len(l))) AS i FROM (SELECT from_json(?::VARCHAR, '["VARCHAR"]') AS l))
		ORDER BY i`, string(list))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var i int64
		var tree sql.NullString
		if err := rows.Scan(&i, &tree); err != nil {
			return nil, err
		}
		trees = append(trees, tree.String)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(trees) != len(sqls) {
		return nil, fmt.Errorf("%d trees for %d texts", len(trees), len(sqls))
	}
	return trees, nil
}

// complaint dresses an engine error as the error document of the tree format.
func complaint(err error) string {
	b, jerr := json.Marshal(map[string]any{"error": true, "error_type": "parser", "error_message": err.Error()})
	if jerr != nil {
		return ""
	}
	return string(b)
}

func parseResult(tree, text string) sqlast.ParseResult {
	if !strings.HasPrefix(tree, `{"error":true`) {
		if tree == "" {
			return sqlast.ParseResult{Message: "the parser gave no tree", Position: -1}
		}
		return sqlast.ParseResult{Tree: json.RawMessage(tree), Position: -1}
	}
	var e struct {
		Type     string `json:"error_type"`
		Message  string `json:"error_message"`
		Position string `json:"position"`
	}
	r := sqlast.ParseResult{Position: -1}
	if err := json.Unmarshal([]byte(tree), &e); err != nil {
		r.Message = "the parser's error cannot be read: " + err.Error()
		return r
	}
	r.Message = e.Message
	// The only thing that does not serialize although it parses.
	r.NotSelect = e.Type == "not implemented" && strings.HasPrefix(e.Message, "Only SELECT statements")
	if n, err := strconv.Atoi(e.Position); err == nil {
		r.Position = byteOffset(text, n)
	}
	return r
}

// byteOffset turns a character offset into a byte offset: the places of errors
// count characters, those in the tree count bytes.
func byteOffset(text string, chars int) int {
	for i := range text {
		if chars == 0 {
			return i
		}
		chars--
	}
	return len(text)
}
