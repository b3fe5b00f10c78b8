// Package view renders values for people (text) — the same values that -o
// json prints. It computes nothing.
package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Diagnostics writes diagnostics as text, one after another.
func Diagnostics(w io.Writer, l diag.List) { Styled(w, l, false) }

// Styled writes diagnostics as text, with colours if asked for. Writing is
// best effort: nobody can be told that standard error is gone.
func Styled(w io.Writer, l diag.List, colour bool) {
	for _, d := range l {
		text := d.String()
		if colour {
			head := fmt.Sprintf("%s[%s]", d.Severity, d.Code)
			code := "31;1" // red
			if d.Severity == diag.Warning {
				code = "33;1" // yellow
			}
			if rest, ok := strings.CutPrefix(text, head); ok {
				text = "\x1b[" + code + "m" + head + "\x1b[0m" + rest
			}
		}
		fmt.Fprintln(w, text)
	}
}
