package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/planner"
	"github.com/retrofill/retrofill/planner/selector"
)

// nodeLists reads the lists of descendants to be kept (semantics §5.5). An @
// before the file's name is optional; standard input can be read once.
func nodeLists(c *cli.Context, env *Env, req *planner.Request) error {
	stdin := 0
	for _, l := range c.StringSlice("dates") {
		if l == "-" {
			stdin++
		}
	}
	for _, l := range []struct {
		flag string
		to   *[]string
	}{{"names-file", &req.Names}, {"ids-file", &req.IDs}, {"outputs-file", &req.Outputs}} {
		if !c.IsSet(l.flag) {
			continue
		}
		arg := c.String(l.flag)
		switch {
		case strings.Trim(arg, "@ ") == "":
			return refuse(diag.List{diag.Errorf("usage", "--%s names no file", l.flag).
				WithHint("give a file with one entry a line, or - for standard input")})
		case arg == "-":
			stdin++
		case !strings.HasPrefix(arg, "@"):
			arg = "@" + arg
		}
		if stdin > 1 {
			return refuse(diag.List{diag.Errorf("usage", "--%s: standard input is read for another list already", l.flag).
				WithHint("put one of the lists into a file")})
		}
		text, err := listText(arg, env)
		if err != nil {
			return err
		}
		entries := selector.ParseList(strings.TrimPrefix(text, "\ufeff"))
		if len(entries) == 0 {
			return refuse(diag.List{diag.Errorf("empty_list", "--%s %s has no entries", l.flag, c.String(l.flag)).
				WithHint("write one entry a line, or leave the flag out to keep all descendants")})
		}
		*l.to = entries
	}
	return nil
}
