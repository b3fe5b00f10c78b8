package cli

import "github.com/urfave/cli/v2"

// commands lists every command. Where help shows one is said in sections.
func commands(env *Env) []*cli.Command {
	return []*cli.Command{
		demoCommand(env), initCommand(env), schemaCommand(env), paramsCommand(env),
		datesCommand(env), validateCommand(env), lsCommand(env), showCommand(env), fieldsCommand(env), diffCommand(env),
		planCommand(env), backfillCommand(env), applyCommand(env), resumeCommand(env),
		stopCommand(env), pauseCommand(env), unpauseCommand(env), rerunCommand(env), forceRerunCommand(env),
		setSuccessCommand(env), removeDependencyCommand(env),
		statusCommand(env), logsCommand(env), codeCommand(env), historyCommand(env),
		completionCommand(env), versionCommand(env), helpCommand(env),
	}
}

// section is a part of the help's list of commands.
type section struct {
	Title    string
	Commands []string
}

// sections is the order of commands in help and docs. A command that is not
// listed here is shown under the last title.
func sections() []section {
	return []section{
		{"Start", []string{"demo", "init"}},
		{"Look at a project", []string{"validate", "ls", "show", "fields", "diff", "params", "dates", "schema"}},
		{"Plan and run", []string{"plan", "backfill", "apply", "resume"}},
		{"Steer a backfill, from any process", []string{"stop", "pause", "unpause", "rerun", "force-rerun", "set-success", "remove-dependency"}},
		{"See what happened", []string{"status", "logs", "code", "history"}},
		{"More", []string{"completion", "version", "help"}},
	}
}
