//go:build !unix

package cli

import "github.com/retrofill/retrofill/executors/ledger"

// alive cannot ask the system here: heartbeats decide.
func alive(ledger.Owner) bool { return true }
