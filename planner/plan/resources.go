package plan

// ResourceGroup is a named pool of engine connections as it was when the plan
// was made (semantics §6.5).
type ResourceGroup struct {
	Name        string `json:"name"`
	Connections int    `json:"connections"`
	// Settings of the engine during the run, by lower-case name.
	Settings map[string]string `json:"settings,omitempty"`
}

// Parallel gives the number of connections and of instances at once: those of
// the resource group, else one for each group of dates, at least 1.
func (p *Plan) Parallel() int {
	if p.ResourceGroup != nil {
		return max(1, p.ResourceGroup.Connections)
	}
	return max(1, len(p.Groups))
}

// EngineSettings gives the settings that the engine is opened with for the
// run, besides its own.
func (p *Plan) EngineSettings() map[string]string {
	if p.ResourceGroup == nil {
		return nil
	}
	return p.ResourceGroup.Settings
}
