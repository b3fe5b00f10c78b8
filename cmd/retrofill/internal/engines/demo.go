package engines

import (
	"context"
	"fmt"

	"github.com/retrofill/retrofill/cmd/retrofill/internal/cli"
	"github.com/retrofill/retrofill/fixtures"
)

var _ cli.Demo = Demo{}

// Demo is the example warehouse on DuckDB.
type Demo struct{}

// Create writes the project and fills its sources.
func (Demo) Create(ctx context.Context, dir string) error {
	if err := fixtures.WriteFlights(dir); err != nil {
		return err
	}
	_, err := fixtures.CreateWarehouse(ctx, dir)
	return err
}

// Edit applies one of fixtures.Edits.
func (Demo) Edit(dir, name string) (string, error) {
	for _, e := range fixtures.Edits() {
		if e.Name == name {
			return e.Description, fixtures.ApplyEdit(dir, name)
		}
	}
	return "", fmt.Errorf("engines: edit the example: there is no edit %q", name)
}
