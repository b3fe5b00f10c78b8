package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner/plan"
)

// ask puts a yes-or-no question on standard error; anything but y or yes is no.
func ask(env *Env, question string) (bool, error) {
	a, _, err := env.answer(question)
	if err != nil {
		return false, err
	}
	a = strings.ToLower(a)
	return a == "y" || a == "yes", nil
}

// maxAnswer bounds a typed line, in bytes.
const maxAnswer = 64 << 10

// answer puts a question on standard error and reads a line of standard input,
// without the blanks around it. ended tells that there is no further line. It
// reads byte by byte, so that nothing of the next line is lost.
func (e *Env) answer(question string) (line string, ended bool, err error) {
	if _, err := io.WriteString(e.Stderr, question); err != nil {
		return "", false, fmt.Errorf("cli: ask: %w", err)
	}
	var text []byte
	for b := make([]byte, 1); len(text) < maxAnswer; {
		n, err := e.Stdin.Read(b)
		if n > 0 {
			if b[0] == '\n' {
				return strings.TrimSpace(string(text)), false, nil
			}
			text = append(text, b[0])
		}
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(string(text)), true, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("cli: read the answer: %w", err)
		}
	}
	return "", false, errors.New("cli: read the answer: the line is too long")
}

// offer lets the user take recommended fields (semantics §4.4) and gives the
// plan that holds them. Without a user to ask none is taken, and a note says
// so; with --recommended there is nothing to ask.
func (s *session) offer(ctx context.Context, o planOptions, p plan.Plan, diags diag.List) (plan.Plan, diag.List, error) {
	if o.Request.Recommended != "" || len(offered(&p)) == 0 {
		return p, diags, nil
	}
	if o.Yes || !s.env.interactive() {
		_, err := fmt.Fprintf(s.env.Stderr, "note: %s recommended, none is taken; --recommended all or a list takes them\n", view.Count(len(offered(&p)), "field"))
		if err != nil {
			return p, diags, fmt.Errorf("cli: write note: %w", err)
		}
		return p, diags, nil
	}
	taken, err := tick(s.env, offered(&p))
	if err != nil || len(taken) == 0 {
		return p, diags, err
	}
	o.Request.RecommendedNames = taken
	o.Request.Display.Options = maps.Clone(o.Request.Display.Options)
	if o.Request.Display.Options == nil {
		o.Request.Display.Options = map[string]string{}
	}
	o.Request.Display.Options["recommended"] = strings.Join(taken, ",")
	again, diags, err := s.build(ctx, o)
	if err == nil && diags.HasErrors() {
		err = refuse(diags)
	}
	return again, diags, err
}

// offered lists the recommended fields that are not taken.
func offered(p *plan.Plan) []plan.Recommended {
	return slices.DeleteFunc(slices.Clone(p.Recommended), func(r plan.Recommended) bool { return r.Taken })
}

// maxTries is how often an answer that cannot be read is asked for again.
const maxTries = 3

// tick shows the recommended fields as a numbered list and gives those that
// the user takes, as table.field.
func tick(env *Env, list []plan.Recommended) ([]string, error) {
	var b strings.Builder
	b.WriteString("Recommended fields:\n")
	wide := 0
	for _, r := range list {
		wide = max(wide, len([]rune(r.Table+"."+r.Field)))
	}
	for i, r := range list {
		why := strings.ReplaceAll(r.Reason, "_", " ")
		switch {
		case strings.HasPrefix(r.Detail, why):
			why = r.Detail
		case r.Detail != "":
			why += ": " + r.Detail
		}
		if len(r.Dates) > 0 {
			why += ", on " + view.DateRanges(r.Dates)
		}
		fmt.Fprintf(&b, "%4d  %-*s  %s\n", i+1, wide, r.Table+"."+r.Field, why)
	}
	question := b.String() + "Take which? Numbers such as 1,3 or 1-3, all, none [none] "
	for range maxTries {
		line, ended, err := env.answer(question)
		if err != nil {
			return nil, err
		}
		picked, problem := ticked(line, len(list))
		if problem == "" {
			names := make([]string, len(picked))
			for i, k := range picked {
				names[i] = list[k].Table + "." + list[k].Field
			}
			return names, nil
		}
		if ended {
			break
		}
		question = problem + "\nTake which? "
	}
	return nil, refuse(diag.List{diag.Errorf("bad_answer", "no answer about the recommended fields could be read").
		WithHint("answer with numbers from 1 to %d, all or none, or give --recommended", len(list))})
}

// ticked reads an answer to a list of n entries as ascending indexes, or says
// what is wrong with it.
func ticked(line string, n int) (picked []int, problem string) {
	switch strings.ToLower(line) {
	case "", "none", "n":
		return nil, ""
	case "all", "a":
		for i := range n {
			picked = append(picked, i)
		}
		return picked, ""
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		first, last, isRange := strings.Cut(word, "-")
		lo, err := strconv.Atoi(first)
		hi := lo
		if isRange && err == nil {
			hi, err = strconv.Atoi(last)
		}
		if err != nil || lo < 1 || hi > n || lo > hi {
			return nil, fmt.Sprintf("%q is no entry of the list: it has 1 to %d.", word, n)
		}
		for i := lo; i <= hi; i++ {
			picked = append(picked, i-1)
		}
	}
	slices.Sort(picked)
	return slices.Compact(picked), ""
}
