//go:build unix

package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
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
	return (err == nil || errors.Is(err, syscall.EPERM)) && !defunct(o.PID)
}

// defunct tells whether a process has ended but was not yet waited for, where
// the system shows it (Linux): such a process still answers signals.
func defunct(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(b, ')') // the program's name may hold anything
	return i >= 0 && len(b) > i+2 && b[i+2] == 'Z'
}
