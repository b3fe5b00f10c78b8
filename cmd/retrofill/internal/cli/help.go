package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/view"
	"github.com/retrofill/retrofill/modeling/diag"
)

func helpCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "show the commands, or the flags of one command",
		UsageText: "retrofill help [COMMAND]",
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one command"); err != nil {
				return err
			}
			if !c.Args().Present() {
				return runHelp(c.App.Commands, nil, env)
			}
			i := slices.IndexFunc(c.App.Commands, func(k *cli.Command) bool { return k.HasName(c.Args().First()) })
			if i < 0 {
				return refuse(diag.List{unknownCommand(c.App.Commands, c.Args().First())})
			}
			return runHelp(c.App.Commands, c.App.Commands[i], env)
		},
	}
}

// runHelp prints the help of one command, or of the whole program.
func runHelp(all []*cli.Command, one *cli.Command, env *Env) error {
	if one != nil {
		return writeText(env.Stdout, commandHelp(one))
	}
	return writeText(env.Stdout, programHelp(all))
}

const summary = "retrofill plans and runs modeling-aware backfills on SQL engines."

func programHelp(all []*cli.Command) string {
	var b strings.Builder
	b.WriteString(summary + "\n\nUsage: retrofill COMMAND [arguments] [flags]\n")
	for _, s := range listed(all) {
		fmt.Fprintf(&b, "\n%s\n", s.title)
		for _, c := range s.commands {
			b.WriteString(view.Columns("  "+c.Name, 14, c.Usage))
		}
	}
	b.WriteString("\nExit codes\n" + exitHelp())
	b.WriteString("\n`retrofill help COMMAND` shows a command's flags; docs/cli.md has them all.\n")
	return b.String()
}

type listedSection struct {
	title    string
	commands []*cli.Command
}

// listed sorts the visible commands into their sections.
func listed(all []*cli.Command) []listedSection {
	var out []listedSection
	left := map[string]*cli.Command{}
	for _, c := range all {
		if !c.Hidden {
			left[c.Name] = c
		}
	}
	for _, s := range sections() {
		l := listedSection{title: s.Title}
		for _, name := range s.Commands {
			if c := left[name]; c != nil {
				l.commands = append(l.commands, c)
				delete(left, name)
			}
		}
		out = append(out, l)
	}
	for _, c := range all {
		if left[c.Name] != nil {
			out[len(out)-1].commands = append(out[len(out)-1].commands, c)
		}
	}
	return slices.DeleteFunc(out, func(l listedSection) bool { return len(l.commands) == 0 })
}

func commandHelp(c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage\n", view.Wrap(sentence(c.Usage), 0))
	for _, u := range usages(c) {
		b.WriteString("  " + u + "\n")
	}
	if c.Description != "" {
		b.WriteString("\n" + view.Wrap(c.Description, 0) + "\n")
	}
	if flags := shown(c.Flags); len(flags) > 0 {
		b.WriteString("\nFlags\n")
		for _, f := range flags {
			b.WriteString(view.Columns("  "+f.head(), 26, f.text()))
		}
	}
	return b.String()
}

// usages gives the forms of a command, one a line.
func usages(c *cli.Command) []string {
	text := c.UsageText
	if text == "" {
		text = "retrofill " + c.Name + " [flags]"
	}
	var out []string
	for l := range strings.Lines(text) {
		out = append(out, strings.TrimSpace(l))
	}
	return out
}

// flagHelp is a flag as help and docs show it.
type flagHelp struct {
	Names   []string // with dashes, the long one first
	Value   string   // placeholder, "" = none
	Usage   string
	Default string
}

func (f flagHelp) head() string {
	s := strings.Join(f.Names, ", ")
	if f.Value != "" {
		s += " " + f.Value
	}
	return s
}

func (f flagHelp) text() string {
	if f.Default != "" {
		return f.Usage + " (default " + f.Default + ")"
	}
	return f.Usage
}

// shown gives the visible flags.
func shown(flags []cli.Flag) []flagHelp {
	var out []flagHelp
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		h := flagHelp{}
		for _, n := range f.Names() {
			h.Names = append(h.Names, dashed(n))
		}
		d, ok := f.(cli.DocGenerationFlag)
		if !ok {
			out = append(out, h)
			continue
		}
		h.Usage = d.GetUsage()
		if before, rest, found := strings.Cut(h.Usage, "`"); found {
			if value, after, closed := strings.Cut(rest, "`"); closed {
				h.Value, h.Usage = value, before+value+after
			}
		}
		switch g := f.(type) {
		case *cli.StringFlag:
			h.Default = g.Value
			h.Value = orValue(h.Value)
		case *cli.IntFlag:
			h.Value = orValue(h.Value)
			if g.Value != 0 {
				h.Default = fmt.Sprint(g.Value)
			}
		case *cli.StringSliceFlag:
			h.Value = orValue(h.Value)
		}
		out = append(out, h)
	}
	return out
}

func orValue(s string) string {
	if s == "" {
		return "VALUE"
	}
	return s
}

// sentence makes a usage text a sentence of its own.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func exitHelp() string {
	var b strings.Builder
	for _, e := range exitTable() {
		b.WriteString(view.Columns(fmt.Sprintf("%5d", e.Code), 9, e.Meaning))
	}
	return b.String()
}

// manual gives docs/cli.md.
func manual(all []*cli.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" + summary + `

This page is made from the code (` + "`go test ./cmd/retrofill/internal/cli -run TestManual -rewrite`" + `).

Flags may stand before and after arguments; everything behind ` + "`--`" + ` is an argument. ` + "`--name VALUE`" + ` and
` + "`--name=VALUE`" + ` are the same. Data goes to standard output, progress and diagnostics to standard error. With
` + "`-o json`" + ` a failure prints its ` + "`diagnostics`" + ` as JSON on standard output, too. ` + "`NO_COLOR`" + ` is respected.

## Exit codes

| code | meaning |
|---:|---|
`)
	for _, e := range exitTable() {
		fmt.Fprintf(&b, "| %d | %s |\n", e.Code, e.Meaning)
	}
	b.WriteString(`
## Diagnostics

A diagnostic in JSON is ` + "`{\"severity\", \"code\", \"summary\", \"detail\", \"file\", \"line\", \"column\", \"hint\"}`" + `. ` + "`code`" + ` is
stable, the wording is not. Lines and columns count from 1; 0 means unknown.
`)
	for _, s := range listed(all) {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, c := range s.commands {
			manualCommand(&b, c)
		}
	}
	return b.String()
}

func manualCommand(b *strings.Builder, c *cli.Command) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n```\n%s\n```\n", c.Name, sentence(c.Usage), strings.Join(usages(c), "\n"))
	if c.Description != "" {
		b.WriteString("\n" + paragraphs(c.Description) + "\n")
	}
	flags := shown(c.Flags)
	if len(flags) == 0 {
		return
	}
	b.WriteString("\n| flag | meaning |\n|---|---|\n")
	for _, f := range flags {
		names := make([]string, len(f.Names))
		for i, n := range f.Names {
			names[i] = "`" + n + "`"
		}
		head := strings.Join(names, ", ")
		if f.Value != "" {
			head += " *" + strings.ReplaceAll(f.Value, "|", `\|`) + "*"
		}
		fmt.Fprintf(b, "| %s | %s |\n", head, strings.ReplaceAll(f.text(), "|", `\|`))
	}
}

// paragraphs makes the indented lines of a description a block of code.
func paragraphs(text string) string {
	var out []string
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if in := strings.HasPrefix(line, "  "); in != code {
			code = in
			fence := "```"
			if in {
				fence = "\n```"
			}
			out = append(out, fence)
		}
		out = append(out, strings.TrimPrefix(line, "  "))
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}
