package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
)

// call is a command line taken apart. The flag parser of urfave/cli stops at
// the first positional and silently ignores what follows, so the arguments are
// read here and handed on in a form that it cannot misread: every flag as
// --name=value, then --, then the positionals.
type call struct {
	command *cli.Command // nil: no command was named
	flags   []string     // --name=value, canonical names, in their order
	args    []string     // positionals
	help    bool
	diags   diag.List
}

// argv gives the arguments for urfave/cli.
func (c call) argv() []string {
	if c.command == nil {
		return []string{"retrofill"}
	}
	out := append([]string{"retrofill", c.command.Name}, c.flags...)
	if len(c.args) > 0 {
		out = append(append(out, "--"), c.args...)
	}
	return out
}

// parse takes a command line apart. Flags may stand before the command and
// before, between and behind its positionals; everything behind "--" is
// positional. Diagnostics: unknown_command, unknown_flag, missing_value,
// bad_value.
func parse(commands []*cli.Command, args []string) call {
	var c call
	at := commandWord(commands, args)
	if at < 0 {
		c.readFlags(flagsOfAll(commands), args)
		return c
	}
	name := args[at]
	if i := slices.IndexFunc(commands, func(k *cli.Command) bool { return k.HasName(name) }); i >= 0 {
		c.command = commands[i]
	} else {
		c.diags = append(c.diags, unknownCommand(commands, name))
		return c
	}
	rest := append(slices.Clone(args[:at]), args[at+1:]...)
	c.readFlags(c.command.Flags, rest)
	return c
}

func unknownCommand(commands []*cli.Command, name string) diag.Diagnostic {
	var names []string
	for _, k := range commands {
		if !k.Hidden {
			names = append(names, k.Name)
		}
	}
	return diag.Errorf("unknown_command", "unknown command %q", name).
		WithHint("%s", diag.DidYouMean(name, names, "`retrofill help` lists the commands"))
}

// commandWord gives the index of the first positional, −1 when there is none.
// Which flags in front of it take a value is read from all commands together.
func commandWord(commands []*cli.Command, args []string) int {
	all := flagsOfAll(commands)
	for i := 0; i < len(args); i++ {
		if !isFlag(args[i]) {
			return i
		}
		if args[i] == "--" {
			if i+1 < len(args) {
				return i + 1
			}
			return -1
		}
		name, _, glued := cutFlag(args[i])
		if f := flagNamed(all, name); f != nil && !glued && !bare(f) {
			i++
		}
	}
	return -1
}

func flagsOfAll(commands []*cli.Command) []cli.Flag {
	var all []cli.Flag
	for _, k := range commands {
		all = append(all, k.Flags...)
	}
	return all
}

// readFlags sorts the arguments of a command into flags and positionals.
func (c *call) readFlags(flags []cli.Flag, args []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			c.args = append(c.args, args[i+1:]...)
			return
		}
		if !isFlag(a) {
			c.args = append(c.args, a)
			continue
		}
		name, value, glued := cutFlag(a)
		f := flagNamed(flags, name)
		switch {
		case f == nil && (name == "help" || name == "h"):
			c.help = true
			continue
		case f == nil:
			c.unknownFlag(flags, a, name)
			continue
		case bare(f):
			if !glued {
				c.flags = append(c.flags, "--"+f.Names()[0])
				continue
			}
		case !glued:
			if i+1 >= len(args) || startsKnownFlag(flags, args[i+1]) {
				c.diags = append(c.diags, diag.Errorf("missing_value", "the flag %s needs a value", dashed(name)).
					WithHint("write %s VALUE, or %s=VALUE if the value looks like a flag", dashed(name), dashed(name)))
				continue
			}
			i++
			value = args[i]
		}
		if d, ok := checkValue(f, name, value); !ok {
			c.diags = append(c.diags, d)
			continue
		}
		c.flags = append(c.flags, "--"+f.Names()[0]+"="+value)
	}
}

func (c *call) unknownFlag(flags []cli.Flag, arg, name string) {
	var names []string
	for _, f := range flags {
		for _, n := range f.Names() {
			if v, ok := f.(cli.VisibleFlag); len(n) > 1 && (!ok || v.IsVisible()) {
				names = append(names, dashed(n))
			}
		}
	}
	of, help := "", "`retrofill help` lists the commands and their flags"
	if c.command != nil {
		of = " of " + c.command.Name
		help = "`retrofill help " + c.command.Name + "` lists its flags"
	}
	// -ojson: a short flag with its value glued to it.
	if short := flagNamed(flags, name[:min(1, len(name))]); short != nil && !strings.HasPrefix(arg, "--") && !bare(short) {
		help = "write -" + name[:1] + " " + name[1:]
	}
	c.diags = append(c.diags, diag.Errorf("unknown_flag", "unknown flag %s%s", dashed(name), of).
		WithHint("%s", diag.DidYouMean(dashed(name), names, help)))
}

// checkValue finds values that the flag parser would refuse in its own words.
func checkValue(f cli.Flag, name, value string) (diag.Diagnostic, bool) {
	switch g := f.(type) {
	case *cli.IntFlag:
		if _, err := strconv.Atoi(value); err != nil {
			return diag.Errorf("bad_value", "%s %q is not a whole number", dashed(name), value).
				WithHint("write a whole number, such as %s %d", dashed(name), max(g.Value, 1)), false
		}
	case *cli.BoolFlag:
		if _, err := strconv.ParseBool(value); err != nil {
			return diag.Errorf("bad_value", "%s=%s is neither true nor false", dashed(name), value).
				WithHint("the flag takes no value: write %s alone", dashed(name)), false
		}
	}
	return diag.Diagnostic{}, true
}

// isFlag tells whether an argument is written as a flag: not "-" (standard
// input) and not a negative number.
func isFlag(a string) bool {
	return len(a) > 1 && a[0] == '-' && (a[1] < '0' || a[1] > '9') && a[1] != '.'
}

func cutFlag(a string) (name, value string, glued bool) {
	a = strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-")
	return strings.Cut(a, "=")
}

// startsKnownFlag tells whether an argument is one of the command's own flags
// and so most likely not the value of the flag before it.
func startsKnownFlag(flags []cli.Flag, a string) bool {
	if !isFlag(a) {
		return false
	}
	name, _, _ := cutFlag(a)
	return flagNamed(flags, name) != nil
}

func flagNamed(flags []cli.Flag, name string) cli.Flag {
	if name == "" {
		return nil
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// bare tells whether a flag stands without a value.
func bare(f cli.Flag) bool {
	switch g := f.(type) {
	case *cli.BoolFlag:
		return true
	case *cli.GenericFlag:
		b, ok := g.Value.(interface{ IsBoolFlag() bool })
		return ok && b.IsBoolFlag()
	}
	return false
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// jsonWanted tells whether the arguments ask for JSON output, also when they
// cannot be parsed.
func jsonWanted(args []string) bool {
	wanted := false
	for i, a := range args {
		if a == "--" {
			break
		}
		name, v, glued := cutFlag(a)
		if !isFlag(a) || name != "o" && name != "output" {
			continue
		}
		if !glued && i+1 < len(args) {
			v = args[i+1]
		}
		wanted = v == "json"
	}
	return wanted
}
