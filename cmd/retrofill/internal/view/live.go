package view

import (
	"fmt"
	"io"
	"strings"
)

// Live redraws a block of lines in place on a terminal. It measures what it
// has drawn at the present width, so that a resized terminal stays clean. It
// is not safe for concurrent use.
type Live struct {
	w        io.Writer
	terminal bool
	width    func() int
	drawn    []string
}

// NewLive draws on w; width gives the present number of columns. If terminal
// is false, nothing is drawn.
func NewLive(w io.Writer, terminal bool, width func() int) *Live {
	return &Live{w: w, terminal: terminal, width: width}
}

// Redraws tells whether lines can be drawn in place.
func (l *Live) Redraws() bool { return l.terminal }

// Draw replaces the block. Lines are cut to the terminal's width. Writing is
// best effort: a lost terminal must not end a run.
func (l *Live) Draw(lines []string) {
	if !l.terminal {
		return
	}
	width := max(l.width(), 2)
	fit := make([]string, len(lines))
	for i, s := range lines {
		fit[i] = Fit(Clean(s), width-1)
	}
	// One write: no flicker between erasing and drawing.
	_, _ = io.WriteString(l.w, l.erase(width)+strings.Join(fit, "\n")+"\n")
	l.drawn = fit
}

// Above writes lines that stay, above the block.
func (l *Live) Above(text string) {
	if !l.terminal {
		_, _ = io.WriteString(l.w, text)
		return
	}
	block := ""
	if len(l.drawn) > 0 {
		block = strings.Join(l.drawn, "\n") + "\n"
	}
	_, _ = io.WriteString(l.w, l.erase(max(l.width(), 2))+text+block)
}

// Clear removes the block.
func (l *Live) Clear() {
	if l.terminal && len(l.drawn) > 0 {
		_, _ = io.WriteString(l.w, l.erase(max(l.width(), 2)))
		l.drawn = nil
	}
}

// erase goes to the block's first line and clears from there. A line that is
// now wider than the terminal has been wrapped and takes several.
func (l *Live) erase(width int) string {
	rows := 0
	for _, s := range l.drawn {
		rows += max(1, (Width(s)+width-1)/width)
	}
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", rows)
}
