//go:build unix

package run

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ownGroup gives the command a process group of its own: a Ctrl-C in the
// terminal does not reach it, and ending it ends its children. The returned
// function kills what is left of the group, after the command has ended.
func ownGroup(cmd *exec.Cmd, grace time.Duration) (end func()) {
	var late *time.Timer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		pid := cmd.Process.Pid
		err := syscall.Kill(-pid, syscall.SIGTERM)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		late = time.AfterFunc(grace, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }) // it may ignore the first signal
		return err
	}
	return func() {
		if late != nil {
			late.Stop()
		}
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nothing is left
		}
	}
}
