package lineage

import (
	"fmt"

	"github.com/retrofill/retrofill/planner/selector"
)

// Graph gives the selection graph of the model's nodes, in the order of
// Model.Nodes. paused tells of pauses that are not written in the project;
// nil = none.
func (m *Model) Graph(paused func(node string) bool) (*selector.Graph, error) {
	nodes := make([]selector.Node, len(m.Nodes))
	var edges [][2]int
	for i, n := range m.Nodes {
		s := selector.Node{Name: n.Name, Project: m.Project.Name, Kind: string(n.Kind), ID: n.Name, Path: n.File(), Cycle: string(n.Schedule.Cycle)}
		if t := n.Table; t != nil {
			s.Owner, s.Tags, s.Paused, s.Config = t.Owner, t.Tags, t.Paused, t.Config
			s.Outputs, s.Fields = []string{t.Name}, n.ReadableNames()
			for _, x := range t.Nodes {
				s.Outputs = append(s.Outputs, x.Name)
			}
		} else {
			s.Owner, s.Tags, s.Paused, s.Config = n.Task.Owner, n.Task.Tags, n.Task.Paused, n.Task.Config
			for _, o := range n.Task.Outputs {
				s.Outputs = append(s.Outputs, o.Table)
			}
		}
		if s.Cycle == "" {
			s.Cycle = "daily"
		}
		if paused != nil && paused(n.Name) {
			s.Paused = true
		}
		nodes[i] = s
		for _, in := range n.Inputs {
			if in.Node >= 0 && in.Node != i {
				edges = append(edges, [2]int{in.Node, i})
			}
		}
	}
	g, err := selector.New(nodes, edges)
	if err != nil {
		return nil, fmt.Errorf("lineage: make selection graph: %w", err)
	}
	return g, nil
}
