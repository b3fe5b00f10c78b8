package modeling

import (
	"slices"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// ResourceGroup is a named pool of engine connections (semantics §6.5). A
// backfill that names it runs with so many connections and instances at once.
type ResourceGroup struct {
	Name        string `json:"name"`
	Connections int    `json:"connections"`
	// Uses are of ResourceUses: what the pool may be taken for.
	Uses []string `json:"uses"`
	// Settings of the engine while the pool is used, by lower-case name; only
	// those of EngineSettings.
	Settings map[string]string `json:"settings,omitempty"`
	Pos      diag.Pos          `json:"-"`
}

// For tells whether the group may be taken for a use.
func (g *ResourceGroup) For(use string) bool { return slices.Contains(g.Uses, use) }

// UseBatch is the use of backfills.
const UseBatch = "batch"

// ResourceUses lists what a resource group can be for: backfills, regular
// schedules and queries of people.
func ResourceUses() []string { return []string{UseBatch, "schedule", "query"} }

// EngineSettings lists the settings of an engine type that a resource group
// may give: those that bound resources, none that changes a result.
func EngineSettings(engineType string) []string {
	switch engineType {
	case "duckdb":
		return []string{"max_temp_directory_size", "memory_limit", "threads"}
	case "postgres":
		return []string{"lock_timeout", "maintenance_work_mem", "max_parallel_workers_per_gather", "statement_timeout", "temp_buffers", "work_mem"}
	}
	return nil
}

// ResourceGroup gives the group of a name, letter case aside; nil = none.
func (p *Project) ResourceGroup(name string) *ResourceGroup {
	for i := range p.ResourceGroups {
		if strings.EqualFold(p.ResourceGroups[i].Name, name) {
			return &p.ResourceGroups[i]
		}
	}
	return nil
}

// ResourceGroupNames lists the names of the project's resource groups.
func (p *Project) ResourceGroupNames() []string {
	out := make([]string, len(p.ResourceGroups))
	for i, g := range p.ResourceGroups {
		out[i] = g.Name
	}
	return out
}
