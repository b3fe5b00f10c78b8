package view

import (
	"strings"
	"unicode"
)

// DefaultWidth is the number of columns where the terminal does not say.
const DefaultWidth = 80

// Columns writes a head and a text beside it, wrapped at DefaultWidth, that
// starts at column indent (counted from 0), or on the next line where the
// head is too long. It ends with a line break.
func Columns(head string, indent int, text string) string {
	pad := strings.Repeat(" ", indent)
	body := strings.ReplaceAll(Wrap(text, indent), "\n", "\n"+pad)
	if Width(head)+2 > indent {
		return head + "\n" + pad + body + "\n"
	}
	return head + strings.Repeat(" ", indent-Width(head)) + body + "\n"
}

// Wrap breaks a text at blanks so that it fits DefaultWidth columns behind an
// indent; lines that start with blanks are left as they are.
func Wrap(text string, indent int) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, " ") {
			out = append(out, line)
			continue
		}
		cur := ""
		for _, word := range strings.Fields(line) {
			switch {
			case cur == "":
				cur = word
			case Width(cur)+1+Width(word)+indent > DefaultWidth-1:
				out = append(out, cur)
				cur = word
			default:
				cur += " " + word
			}
		}
		out = append(out, cur)
	}
	return strings.Join(out, "\n")
}

// Width gives the number of terminal columns of a text: wide East Asian
// characters and emoji take two, combining marks none.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case r <= 0x115f, 0x2e80 <= r && r <= 0xa4cf, 0xac00 <= r && r <= 0xd7a3, 0xf900 <= r && r <= 0xfaff,
		0xfe30 <= r && r <= 0xfe6f, 0xff00 <= r && r <= 0xff60, 0xffe0 <= r && r <= 0xffe6,
		0x1f300 <= r && r <= 0x1faff, 0x20000 <= r && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Fit shortens a text in its middle so that it takes at most width columns.
func Fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if Width(s) <= width {
		return s
	}
	if width == 1 {
		return "…"
	}
	runes := []rune(s)
	front, back := (width-1+1)/2, (width-1)/2
	i, j := 0, len(runes)
	for w := 0; i < len(runes) && w+runeWidth(runes[i]) <= front; i++ {
		w += runeWidth(runes[i])
	}
	for w := 0; j > i && w+runeWidth(runes[j-1]) <= back; j-- {
		w += runeWidth(runes[j-1])
	}
	return string(runes[:i]) + "…" + string(runes[j:])
}

// Clean makes a text safe for one line of a terminal: control characters
// (line breaks and escape sequences among them) become blanks, and characters
// that turn the writing direction disappear.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u200e' || r == '\u200f' || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069:
			return -1
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		}
		return r
	}, s)
}
