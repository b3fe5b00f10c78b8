package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/modeling/diag"
	"github.com/retrofill/retrofill/modeling/load"
)

// completeWord is the hidden first argument with which the shells' scripts ask
// for candidates.
const completeWord = "__complete"

func completionCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		UsageText: "retrofill completion bash|zsh|fish",
		Description: "Completes commands, flags, tables and tasks of the project, and names of backfills. Try it in the present shell:\n" +
			"  bash  source <(retrofill completion bash)\n" +
			"  zsh   source <(retrofill completion zsh)\n" +
			"  fish  retrofill completion fish | source",
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 1, "name one shell: bash, zsh or fish"); err != nil {
				return err
			}
			return runCompletion(c.Context, c.Args().First(), env)
		},
	}
}

func runCompletion(_ context.Context, shell string, env *Env) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
	if script == "" {
		summary := fmt.Sprintf("there is no completion for the shell %q", shell)
		if shell == "" {
			summary = "completion needs the name of a shell"
		}
		return refuse(diag.List{diag.Errorf("usage", "%s", summary).
			WithHint("%s", diag.DidYouMean(shell, []string{"bash", "zsh", "fish"}, "there are bash, zsh and fish"))})
	}
	return writeText(env.Stdout, script)
}

const bashScript = `# retrofill completion for bash: source <(retrofill completion bash)
_retrofill() {
  local IFS=$'\n'
  COMPREPLY=($(retrofill __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [ "${#COMPREPLY[@]}" -eq 0 ]; then
    compopt -o default 2>/dev/null
  fi
}
complete -F _retrofill retrofill
`

const zshScript = `#compdef retrofill
# retrofill completion for zsh: source <(retrofill completion zsh)
_retrofill() {
  local -a found
  found=("${(@f)$(retrofill __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then
    compadd -- "${found[@]}"
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_retrofill" ]; then
  _retrofill "$@"
else
  compdef _retrofill retrofill
fi
`

const fishScript = `# retrofill completion for fish: retrofill completion fish | source
function __retrofill_complete
  set -l words (commandline -opc) (commandline -ct)
  retrofill __complete $words[2..-1] 2>/dev/null
end
complete -c retrofill -f -a '(__retrofill_complete)'
complete -c retrofill -l dir -s C -r -F
`

// takesNodes and takesBackfills tell what a command's arguments name.
func takesNodes(command string) bool {
	return slices.Contains([]string{"plan", "backfill", "show", "fields", "diff", "params", "ls"}, command)
}

func takesBackfills(command string) bool {
	return slices.Contains([]string{"status", "logs", "code", "history", "resume", "stop", "pause", "unpause", "rerun", "force-rerun", "set-success", "remove-dependency"}, command)
}

// runComplete prints the candidates for the last of the words, one a line.
// Whatever goes wrong, it prints nothing: a shell is waiting.
func runComplete(all []*cli.Command, words []string, env *Env) error {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
		words = words[:len(words)-1]
	}
	var out []string
	for _, c := range candidates(all, words, last, env) {
		if strings.HasPrefix(c, last) {
			out = append(out, c+"\n")
		}
	}
	return writeText(env.Stdout, strings.Join(out, ""))
}

func candidates(all []*cli.Command, words []string, last string, env *Env) []string {
	at := commandWord(all, words)
	var command *cli.Command
	if at >= 0 {
		for _, c := range all {
			if c.HasName(words[at]) {
				command = c
			}
		}
	}
	names := visibleNames(all)
	if at < 0 {
		return names
	}
	if command == nil {
		return nil
	}
	if n := len(words); n > 0 && n-1 > at && isFlag(words[n-1]) {
		name, _, glued := cutFlag(words[n-1])
		if f := flagNamed(command.Flags, name); f != nil && !glued && !bare(f) {
			return valuesOf(f, env)
		}
	}
	if strings.HasPrefix(last, "-") {
		var out []string
		for _, f := range shown(command.Flags) {
			for _, n := range f.Names {
				if len(n) > 2 {
					out = append(out, n)
				}
			}
		}
		return append(out, "--help")
	}
	switch {
	case command.Name == "help":
		return names
	case command.Name == "completion":
		return []string{"bash", "fish", "zsh"}
	case command.Name == "schema":
		return []string{"project", "table", "task", "metrics"}
	case takesNodes(command.Name):
		return nodeNames(env)
	case takesBackfills(command.Name):
		return backfillNames(env)
	}
	return nil
}

func visibleNames(all []*cli.Command) []string {
	var names []string
	for _, c := range all {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// valuesOf gives the values of flags that have a known set of them.
func valuesOf(f cli.Flag, env *Env) []string {
	switch name := f.Names()[0]; name {
	case "output":
		usage := f.(*cli.StringFlag).Usage
		_, list, _ := strings.Cut(usage, ": ")
		return strings.Split(list, ", ")
	case "order":
		return []string{"asc", "desc"}
	case "dialect":
		return []string{"dataphin", "dataworks"}
	case "weekdays":
		return []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	case "env":
		dir, err := findProject("", env)
		if err != nil {
			return nil
		}
		p, _ := load.Dir(dir) // as far as it can be read
		var out []string
		for _, e := range p.Environments {
			out = append(out, e.Name)
		}
		return out
	}
	return nil
}

// nodeNames gives the tables and tasks of the project around the working
// folder, as far as it can be read.
func nodeNames(env *Env) []string {
	dir, err := findProject("", env)
	if err != nil {
		return nil
	}
	p, _ := load.Dir(dir)
	var out []string
	for _, t := range p.Tables {
		out = append(out, t.Name)
	}
	for _, t := range p.Tasks {
		out = append(out, t.Name)
	}
	slices.Sort(out)
	return out
}

// maxCompleted is how many backfills are offered.
const maxCompleted = 100

func backfillNames(env *Env) []string {
	ctx := context.Background()
	w, err := openRecords(projectOptions{}, env)
	if err != nil {
		return nil
	}
	l, err := w.readLedger(ctx)
	if err != nil || l == nil {
		return nil
	}
	defer func() { _ = l.Close() }() // only read
	found, err := l.Backfills(ctx, "", maxCompleted)
	if err != nil {
		return nil
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = found[i].Name
	}
	return names
}
