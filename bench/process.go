package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build compiles the command retrofill into dir with the Go tool and gives
// its path.
func Build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "retrofill")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/retrofill/retrofill/cmd/retrofill").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("bench: build retrofill: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return file, nil
}

// ended is a process that has ended well.
type ended struct {
	seconds, cpu float64
	peakMB       float64
	out          []byte
}

// process runs the command in a folder, from its start to its end.
func (r *runner) process(ctx context.Context, dir string, args ...string) (ended, error) {
	cmd := exec.CommandContext(ctx, r.cfg.Binary, args...)
	cmd.Dir = dir
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	seconds, err := r.seconds(cmd.Run)
	if err != nil {
		return ended{}, fmt.Errorf("retrofill %s: %w: %s", strings.Join(args, " "), err, tail(complaints.String()))
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return ended{seconds: seconds, cpu: cpu.Seconds(), peakMB: peakMB(cmd.ProcessState), out: out.Bytes()}, nil
}

// tail gives the end of a long text.
func tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
