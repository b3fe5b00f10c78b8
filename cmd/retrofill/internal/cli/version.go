package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/retrofill/retrofill/planner/plan"
)

func versionCommand(env *Env) *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "show the versions of retrofill, Go, the embedded engine and the formats",
		UsageText: "retrofill version [-o json]",
		Flags:     []cli.Flag{outputFlag("text", "json")},
		Action: func(c *cli.Context) error {
			if err := noArgs(c, 0, "version takes no argument"); err != nil {
				return err
			}
			out, err := outputOf(c, "text", "json")
			if err != nil {
				return err
			}
			return runVersion(c.Context, out, env)
		},
	}
}

// versionDocument is the JSON of `version`.
type versionDocument struct {
	Version  string         `json:"version"`
	Revision string         `json:"revision"` // of the source, "" unknown
	Go       string         `json:"go"`
	Platform string         `json:"platform"`
	Engines  []string       `json:"engines"`
	Formats  map[string]int `json:"formats"`
}

func runVersion(ctx context.Context, output string, env *Env) error {
	doc := versionDocument{
		Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Engines: []string{}, Formats: map[string]int{"plan": plan.FormatVersion},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			doc.Version = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				doc.Revision = s.Value
			}
		}
	}
	if env.EngineVersion != nil {
		v, err := env.EngineVersion(ctx)
		if err != nil {
			return err
		}
		doc.Engines = append(doc.Engines, v)
	}
	if output == "json" {
		return writeJSON(env.Stdout, doc)
	}
	text := fmt.Sprintf("retrofill %s\n", doc.Version)
	if doc.Revision != "" {
		text = fmt.Sprintf("retrofill %s (%.12s)\n", doc.Version, doc.Revision)
	}
	text += fmt.Sprintf("%s %s\n", doc.Go, doc.Platform)
	for _, e := range doc.Engines {
		text += e + "\n"
	}
	return writeText(env.Stdout, text+fmt.Sprintf("plan format %d\n", plan.FormatVersion))
}
