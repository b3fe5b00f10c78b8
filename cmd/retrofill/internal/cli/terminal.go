package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/diag"
)

// terminal tells whether a stream is a terminal that can be redrawn.
func (e *Env) terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && e.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// colour tells whether a stream gets colours: only terminals, and not with
// NO_COLOR set to anything (https://no-color.org).
func (e *Env) colour(stream any) bool { return e.Getenv("NO_COLOR") == "" && e.terminal(stream) }

// width gives the present number of columns of a terminal, 80 when it cannot
// be known.
func (e *Env) width(stream io.Writer) int {
	if f, ok := stream.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return view.DefaultWidth
}

// height gives the present number of lines of a terminal, 24 when it cannot be
// known.
func (e *Env) height(stream io.Writer) int {
	if f, ok := stream.(*os.File); ok {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 0 {
			return h
		}
	}
	return 24
}

// interactive tells whether a question can be asked: it is read from standard
// input and shown on standard error.
func (e *Env) interactive() bool {
	if e.Interactive != nil {
		return e.Interactive()
	}
	f, ok := e.Stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && e.terminal(e.Stderr)
}

// diagnostics writes diagnostics for people on standard error.
func (e *Env) diagnostics(l diag.List) { view.Styled(e.Stderr, l, e.colour(e.Stderr)) }
