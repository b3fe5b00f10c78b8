package metric

import (
	"regexp"
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/sqlast"
)

// unfit tells why a text cannot stand inside an expression, "" if it can.
func unfit(text string) string {
	var open []byte
	any := false
	for _, t := range sqlast.Tokenize(text) {
		w := text[t.Start:t.End]
		switch t.Kind {
		case sqlast.Blank:
			continue
		case sqlast.Comment:
			return "holds a comment"
		case sqlast.String, sqlast.Quoted:
			if w[0] != '\'' && w[0] != '"' {
				return "holds a text that is not in plain quotes"
			}
			if strings.Count(w, w[:1])%2 > 0 { // a quote inside is doubled
				return "holds a quote without its end"
			}
		case sqlast.Word:
			if strings.EqualFold(w, "select") {
				return "holds a subquery"
			}
		case sqlast.Punct:
			switch w {
			case ";":
				return "holds a semicolon"
			case "(", "[":
				open = append(open, w[0])
			case ")", "]":
				if len(open) == 0 || (w == ")") != (open[len(open)-1] == '(') {
					return "has brackets that do not match"
				}
				open = open[:len(open)-1]
			}
		}
		any = true
	}
	switch {
	case !any:
		return "is empty"
	case len(open) > 0:
		return "has brackets that do not match"
	}
	return ""
}

// oneCall tells whether a text is one function call, from its name to its
// closing bracket.
func oneCall(text string) bool {
	depth, n := 0, 0
	toks := solid(text)
	if len(toks) < 3 || toks[0].Kind != sqlast.Word || text[toks[1].Start:toks[1].End] != "(" {
		return false
	}
	for i, t := range toks {
		switch text[t.Start:t.End] {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				n = i
				if i < len(toks)-1 {
					return false
				}
			}
		}
	}
	return n == len(toks)-1
}

// solid gives the tokens without blanks.
func solid(text string) []sqlast.Token {
	return slices.DeleteFunc(sqlast.Tokenize(text), func(t sqlast.Token) bool { return t.Kind == sqlast.Blank })
}

// flat writes a text on one line: runs of blanks between tokens become
// one, those inside a bracket's ends none.
func flat(text string) string {
	var b strings.Builder
	toks := sqlast.Tokenize(text)
	for i, t := range toks {
		switch {
		case t.Kind != sqlast.Blank:
			b.WriteString(text[t.Start:t.End])
		case t.Start > 0 && text[t.Start-1] == '(' || t.End < len(text) && text[t.End] == ')':
		case i > 0 && i < len(toks)-1:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// bracketed puts an expression of more than one word into brackets.
func bracketed(text string) string {
	if len(solid(text)) == 1 {
		return text
	}
	return "(" + text + ")"
}

// metricWord is a name in a composite's expression that stands for a metric.
type metricWord struct {
	name       string
	start, end int
	divisor    bool // stands behind a division sign
}

// words finds the names of a composite's expression that stand for metrics:
// all but keywords, functions, parameters, numbers and the types of casts.
func (s *Set) words(text string) []metricWord {
	var out []metricWord
	toks := solid(text)
	at := func(i int) string {
		if i < 0 || i >= len(toks) {
			return ""
		}
		return text[toks[i].Start:toks[i].End]
	}
	dividing := false
	for i, t := range toks {
		w := at(i)
		switch {
		case t.Kind == sqlast.Punct:
			switch w {
			case "/":
				dividing = at(i-1) != "/" || dividing
			case "(":
			default:
				dividing = false
			}
			continue
		case t.Kind == sqlast.Quoted && len(w) > 1:
			w = strings.ReplaceAll(w[1:len(w)-1], `""`, `"`)
		case t.Kind != sqlast.Word:
			dividing = false
			continue
		case at(i+1) == "(" && !s.known(w):
			continue // a function; a division goes on inside
		case strings.Contains(w, "${") || w[0] >= '0' && w[0] <= '9':
			dividing = false
			continue
		case strings.EqualFold(at(i-1), "as") || at(i-1) == ":" && at(i-2) == ":":
			continue // the type of a cast
		case expressionWords[strings.ToLower(w)] && !s.known(w):
			continue
		}
		out = append(out, metricWord{name: w, start: t.Start, end: t.End, divisor: dividing})
		dividing = false
	}
	return out
}

// expressionWords are the words of SQL expressions that are no names.
var expressionWords = wordSet(`and or not is null true false case when then else end in between like ilike
	cast as distinct from interval date timestamp time double precision integer bigint decimal varchar`)

// reservedWords must be quoted where they are names.
var reservedWords = wordSet(`all analyse analyze and any array as asc asymmetric both case cast check collate
	column constraint create cross current_date current_time current_timestamp current_user default deferrable
	desc describe distinct do else end except exists extract false fetch for foreign from full grant group
	grouping having in initially inner intersect into is join lambda lateral leading left like limit localtime
	localtimestamp natural normalize not null offset on only or order outer pivot pivot_longer pivot_wider
	placing primary qualify references returning right select session_user show some summarize symmetric table
	then to trailing true union unique unnest unpivot user using values variadic when where window with`)

func wordSet(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// ident writes a name, quoted where it must be.
func ident(name string) string {
	if plainName.MatchString(name) && !reservedWords[name] {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
