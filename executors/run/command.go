package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/retrofill/retrofill/executors/ledger"
	"github.com/retrofill/retrofill/modeling/param"
	"github.com/retrofill/retrofill/planner/status"
)

// OutputVariable names the environment variable that holds the path of the
// file in which a command leaves its outputs, one name=value a line
// (semantics §2.6).
const OutputVariable = "RETROFILL_OUTPUT"

// killGrace is the time between asking a command to end and killing it.
const killGrace = time.Second

// command runs an external command: argv without a shell, in a process group
// of its own, its output in the instance's log.
func (j *job) command(ctx context.Context, o *ledger.Outcome) {
	fail := func(reason string, err error) {
		o.Status, o.Reason, o.Error = status.Failed, reason, err.Error()
	}
	argv, env, err := j.argv(ctx)
	if err != nil {
		fail("the command cannot be written", err)
		return
	}
	dir, err := os.MkdirTemp("", "retrofill-output-")
	if err != nil {
		fail("the command cannot be started", err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }() // only a leftover temporary file
	outputs := filepath.Join(dir, "outputs")
	log := j.newLog(ctx, o.Attempt)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = j.deps.Dir
	cmd.Env = append(append(os.Environ(), env...), OutputVariable+"="+outputs)
	cmd.Stdout, cmd.Stderr = log, log
	// A grandchild may keep the pipe open after its parent has gone.
	cmd.WaitDelay = killGrace + time.Second
	endGroup := ownGroup(cmd, killGrace)
	err = cmd.Run()
	endGroup()
	logged := log.close()
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		err = nil // it ended well; a child of it had kept its output open
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		fail(fmt.Sprintf("timed out after %d s", j.step.TimeoutSec), ctx.Err())
	case ctx.Err() != nil:
		o.Status, o.Reason = status.Stopped, context.Cause(ctx).Error()
	case errors.As(err, &exit):
		fail(fmt.Sprintf("exit status %d", exit.ExitCode()), fmt.Errorf("%s: %w", argv[0], err))
	case err != nil:
		fail("the command did not run to its end", err)
	case logged != nil:
		fail("the command's output cannot be kept", logged)
	default:
		values, err := readOutputs(outputs)
		if err == nil {
			values, err = declared(j.step.Sets, values)
		}
		if err != nil {
			fail("the command's outputs cannot be read", err)
			return
		}
		j.succeed(o, nil)
		o.Values, o.Marked = values, false
	}
}

// argv renders the command's words and its own environment.
func (j *job) argv(ctx context.Context) (argv, env []string, err error) {
	c, err := j.compile()
	if err != nil {
		return nil, nil, err
	}
	if len(c.command) == 0 {
		return nil, nil, fmt.Errorf("run: start %s: the plan holds no command", j.id)
	}
	late, err := j.late(ctx, c.late)
	if err != nil {
		return nil, nil, err
	}
	at := param.At(j.in.Slot)
	render := func(ts []*param.Template) ([]string, error) {
		out := make([]string, len(ts))
		for i, t := range ts {
			text, diags := t.Render(at, late)
			if diags.HasErrors() {
				return nil, fmt.Errorf("run: write command of %s: %w", j.id, diags)
			}
			out[i] = text
		}
		return out, nil
	}
	if argv, err = render(c.command); err != nil {
		return nil, nil, err
	}
	env, err = render(c.env)
	return argv, env, err
}

// readOutputs reads name=value lines; no file means no outputs. Empty lines
// and lines that begin with # are left out, the last of equal names counts.
func readOutputs(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run: read outputs: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	out := map[string]string{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSuffix(s.Text(), "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, fmt.Errorf("run: read outputs: line %d is not name=value: %q", n, line)
		}
		out[name] = value
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("run: read outputs: %w", err)
	}
	return out, nil
}

// maxLog bounds what is kept of one attempt's output, in bytes.
const maxLog = 4 << 20

// log keeps a command's output in the ledger, in chunks, at most half a second
// late.
type log struct {
	j       *job
	ctx     context.Context
	attempt int
	mu      sync.Mutex
	text    []byte
	seq     int
	size    int
	err     error
	stop    chan struct{}
	stopped chan struct{}
}

func (j *job) newLog(ctx context.Context, attempt int) *log {
	l := &log{j: j, ctx: context.WithoutCancel(ctx), attempt: attempt, stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(l.stopped)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.flush()
			case <-l.stop:
				l.flush()
				return
			}
		}
	}()
	return l
}

// Write keeps the text; it never fails, so that a full disk does not kill the
// command by a broken pipe. close gives the error.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.j.deps.Output; w != nil {
		if _, err := w.Write(p); err != nil && l.err == nil {
			l.err = fmt.Errorf("run: show output: %w", err)
		}
	}
	room := maxLog - l.size
	switch {
	case room <= 0:
	case len(p) > room:
		l.text = append(append(l.text, p[:room]...), "\n… the rest of the output is not kept\n"...)
	default:
		l.text = append(l.text, p...)
	}
	l.size += len(p)
	return len(p), nil
}

func (l *log) flush() {
	l.mu.Lock()
	text, seq := l.text, l.seq
	l.text = nil
	if len(text) > 0 {
		l.seq++
	}
	l.mu.Unlock()
	logger, can := l.j.deps.Ledger.(Logger)
	if len(text) == 0 || !can {
		return
	}
	if err := logger.Log(l.ctx, l.j.key, l.attempt, seq, strings.ToValidUTF8(string(text), "\uFFFD")); err != nil {
		l.mu.Lock()
		l.err = errors.Join(l.err, err)
		l.mu.Unlock()
	}
}

func (l *log) close() error {
	close(l.stop)
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
