// Package sqlast takes the SELECT that defines a logical table apart: which
// columns, parameters and row-neutral joins each field needs, what decides the
// rows (the row set, semantics §1), and a canonical form of both, so that
// "logic changed" is a comparison of trees and never of texts (semantics §4.5).
//
// The package holds no SQL grammar. A Parser (DuckDB's own, plugged in from
// executors/duckdb) gives the engine's tree; this package resolves every name
// over a Schema and inlines aliases, CTEs and plain projections.
//
// Invariants:
//   - Where a rule cannot be proven the answer is the safe one: an additional
//     read, a row-changing join, or an Unsplittable table. Never a missing read.
//   - A fingerprint is a version digit and the SHA-256 of the canonical text; the
//     canonical text quotes every name and literal, so it reads in one way only.
//   - Byte spans and positions always refer to the author's own text, also where
//     placeholders were replaced before parsing.
package sqlast
