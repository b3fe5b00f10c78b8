//go:build unix

package cli

import (
	"errors"
	"os"
	"syscall"

	"github.com/retrofill/retrofill/executors/ledger"
)

// alive tells whether a process of this machine still runs. Of other machines
// only heartbeats are known.
func alive(o ledger.Owner) bool {
	if host, err := os.Hostname(); err != nil || host != o.Host {
		return true
	}
	err := syscall.Kill(o.PID, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
