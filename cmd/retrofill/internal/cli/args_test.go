package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

func TestParse(t *testing.T) {
	t.Parallel()
	all := []*cli.Command{
		{Name: "plan", Flags: []cli.Flag{
			&cli.StringFlag{Name: "start-date"}, &cli.StringFlag{Name: "date", Aliases: []string{"bizdate"}},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}}, &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}},
			&cli.IntFlag{Name: "groups"}, &cli.StringSliceFlag{Name: "param"}, &cli.StringFlag{Name: "secret", Hidden: true},
			&cli.StringFlag{Name: "dir", Aliases: []string{"C"}},
		}},
		{Name: "status"},
	}
	for _, c := range []struct{ in, want string }{
		{"plan t --start-date d", "plan --start-date=d -- t"},
		{"plan --start-date d t", "plan --start-date=d -- t"},
		{"--start-date d plan t", "plan --start-date=d -- t"},
		{"-C plan plan t", "plan --dir=plan -- t"},
		{"plan a -y b -o=json c", "plan --yes --output=json -- a b c"},
		{"plan -yes t", "plan --yes -- t"},
		{"plan --yes=false t", "plan --yes=false -- t"},
		{"plan --bizdate d", "plan --date=d"},
		{"plan --groups -1 t", "plan --groups=-1 -- t"},
		{"plan -5 t", "plan -- -5 t"},
		{"plan t -- --yes -o json", "plan -- t --yes -o json"},
		{"plan --param a=b --param c=d=e", "plan --param=a=b --param=c=d=e"},
		{"plan --param -", "plan --param=-"},
		{"plan - t", "plan -- - t"},
		{"plan --param -x", "plan --param=-x"},
		{"plan --start-date=", "plan --start-date="},
		{"plan --start-date --yes", "missing_value: --start-date"},
		{"plan --start-date", "missing_value: --start-date"},
		{"plan -o", "missing_value: -o"},
		{"plan --start-dat d", `unknown_flag: did you mean "--start-date"?`},
		{"plan --secre d", "unknown_flag: `retrofill help plan` lists its flags"},
		{"plan -ojson", "unknown_flag: write -o json"},
		{"plan --groups x", "bad_value: --groups"},
		{"plan --yes=maybe", "bad_value: --yes"},
		{"plam", `unknown_command: did you mean "plan"?`},
		{"-- plan t", "plan -- t"},
		{"status x --help", "help status"},
		{"--help", "help"},
		{"-h plan", "help plan"},
		{"plan --a --b", "unknown_flag: `retrofill help plan` lists its flags"},
	} {
		p := parse(all, strings.Fields(c.in))
		got := ""
		switch {
		case p.help && p.command != nil:
			got = "help " + p.command.Name
		case p.help:
			got = "help"
		case p.diags != nil:
			d := p.diags[0]
			got = d.Code + ": " + d.Hint
			if want := c.want; !strings.HasSuffix(want, d.Hint) && strings.Contains(d.Summary, want[strings.Index(want, ":")+2:]) {
				got = want
			}
		default:
			got = strings.Join(p.argv()[1:], " ")
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// Every flag of every command must be read the same way before the command's
// arguments, behind them and before the command itself.
func TestFlagsOnEitherSide(t *testing.T) {
	t.Parallel()
	all := newApp(&Env{}).Commands
	for _, c := range all {
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				words := []string{dashed(name)}
				switch {
				case bare(f):
				case f.Names()[0] == "groups" || isInt(f):
					words = append(words, "7")
				default:
					words = append(words, "some value")
				}
				var got [][]string
				for _, args := range [][]string{
					slices.Concat([]string{c.Name}, words, []string{"one", "two"}),
					slices.Concat([]string{c.Name, "one"}, words, []string{"two"}),
					slices.Concat([]string{c.Name, "one", "two"}, words),
					slices.Concat(words, []string{c.Name, "one", "two"}),
				} {
					p := parse(all, args)
					if p.diags != nil {
						t.Errorf("%q: %v", args, p.diags)
					}
					got = append(got, p.argv())
				}
				for _, other := range got[1:] {
					if d := cmp.Diff(got[0], other); d != "" {
						t.Errorf("%s %s: %s", c.Name, dashed(name), d)
					}
				}
			}
		}
	}
}

func isInt(f cli.Flag) bool {
	_, ok := f.(*cli.IntFlag)
	return ok
}

// A node may have the name of a command or of a flag.
func TestNamesOfNodesAreNoCommands(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"help", "h", "plan", "output", "status"} {
		r := invoke(t, t.TempDir(), "status", name, "-o", "json")
		if doc := document[struct{ Diagnostics []told }](t, r); r.Code != exitRefused || doc.Diagnostics[0].Code != "no_project" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestJSONWanted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"dates -o json": true, "dates -o=json": true, "dates --output json": true, "-o json dates": true, "dates -output=json": true,
		"dates -o text": false, "dates json": false, "dates -- -o json": false, "dates -o json -o text": false, "dates -o": false, "": false,
	} {
		if got := jsonWanted(strings.Fields(in)); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}
