package load

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/retrofill/retrofill/modeling/diag"
)

// maxName is the greatest length of a name, in characters.
const maxName = 200

// fold gives the form under which two names are one: names are compared
// without letter case, as SQL engines do (the same relation as
// strings.EqualFold).
func fold(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return strings.ToLower(strings.ToUpper(s))
		}
	}
	return strings.ToLower(s)
}

// goodName checks a name that was written: not empty, at most 200 characters,
// no control characters. Everything else (quotes, blanks, reserved words,
// other alphabets) is quoted where it goes into SQL. A name that could not be
// read has no place and was reported then.
func (b *builder) goodName(w word, what string) bool {
	if w.Pos.Line == 0 {
		return false
	}
	var why, hint string
	switch n := utf8.RuneCountInString(w.Text); {
	case strings.TrimSpace(w.Text) == "":
		why, hint = "is empty", "write a name"
	case n > maxName:
		why, hint = "is longer than 200 characters", "shorten it"
	case strings.ContainsFunc(w.Text, forbidden):
		why, hint = "holds a control character", "remove line breaks, tabs and other control characters"
	default:
		return true
	}
	b.report(diag.Errorf("bad_name", "the name of the %s %s", what, why).At(w.Pos).
		WithDetail("name: %q", clip(w.Text)).WithHint("%s", hint))
	return false
}

func forbidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError || r == '\ufeff'
}

// names reads a list of names of one kind, reporting bad and repeated ones.
func (b *builder) names(list []word, what string) ([]string, []diag.Pos) {
	seen := make(map[string]bool, len(list))
	out, pos := make([]string, 0, len(list)), make([]diag.Pos, 0, len(list))
	for _, w := range list {
		if !b.goodName(w, what) {
			continue
		}
		if seen[fold(w.Text)] {
			b.report(diag.Errorf("duplicate_value", "%s %q is listed twice", what, clip(w.Text)).At(w.Pos).
				WithHint("remove one of the two (letter case does not count)"))
			continue
		}
		seen[fold(w.Text)] = true
		out, pos = append(out, w.Text), append(pos, w.Pos)
	}
	return out, pos
}

// registry finds names that are given twice in the project: tables, tasks,
// sources and materialization nodes share one space, since all of them are
// tables of the target or nodes of a selection.
type registry map[string]owner

type owner struct {
	what, name string
	pos        diag.Pos
}

func (b *builder) claim(reg registry, what, name string, pos diag.Pos) {
	if name == "" {
		return
	}
	k := fold(name)
	first, taken := reg[k]
	if !taken {
		reg[k] = owner{what: what, name: name, pos: pos}
		return
	}
	hint := "rename one of the two (letter case does not count)"
	if what == nodeWord && first.what == tableWord {
		hint = "give the node another name, such as " + name + "__main: a table's own name is the view that outside readers use"
	}
	b.report(diag.Errorf("duplicate_name", "%s %q is named like %s %q", what, clip(name), first.what, clip(first.name)).At(pos).
		WithDetail("the other one is at %s", first.pos).WithHint("%s", hint))
}

const (
	tableWord  = "logical table"
	nodeWord   = "materialization node"
	taskWord   = "task"
	sourceWord = "source"
)
