//go:build !unix

package run

import (
	"os/exec"
	"time"
)

// ownGroup does nothing where there are no process groups: the command itself
// is killed, its children are not.
func ownGroup(*exec.Cmd, time.Duration) (end func()) { return func() {} }
