package load

import (
	"encoding/json"
	"fmt"
)

// Schemas gives the JSON Schemas (draft 2020-12) of the project's YAML files
// by file name: retrofill.schema.json, table.schema.json, task.schema.json,
// metrics.schema.json.
// They are made from the key tables that Load itself uses. They describe
// single files: what depends on several keys or files (an unknown table, a
// schedule whose keys do not go together) only Load can tell.
func Schemas() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, s := range []struct {
		name, title string
		schema      map[string]any
	}{
		{"retrofill.schema.json", "retrofill project file", projectFile().schema()},
		{"table.schema.json", "retrofill logical table", tableFile().schema()},
		{"task.schema.json", "retrofill task", taskFile().schema()},
		{"metrics.schema.json", "retrofill metrics", metricFile().schema()},
	} {
		s.schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		s.schema["$id"] = s.name
		s.schema["title"] = s.title
		text, err := json.MarshalIndent(s.schema, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("load: encode schema %s: %w", s.name, err)
		}
		out[s.name] = append(text, '\n')
	}
	return out, nil
}
