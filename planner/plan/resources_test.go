package plan_test

import (
	"strings"
	"testing"

	"github.com/retrofill/retrofill/planner/plan"
)

func TestParallel(t *testing.T) {
	t.Parallel()
	p := sample()
	if p.Parallel() != 2 || p.EngineSettings() != nil {
		t.Error(p.Parallel(), p.EngineSettings())
	}
	p.ResourceGroup = &plan.ResourceGroup{Name: "g", Connections: 7, Settings: map[string]string{"threads": "2"}}
	if p.Parallel() != 7 || p.EngineSettings()["threads"] != "2" || plan.Validate(&p) != nil {
		t.Error(p.Parallel(), p.EngineSettings(), plan.Validate(&p))
	}
	p.ResourceGroup.Connections = 0
	if err := plan.Validate(&p); err == nil || !strings.Contains(err.Error(), "resource group") {
		t.Error(err)
	}
	if (&plan.Plan{}).Parallel() != 1 {
		t.Error("a plan without groups runs one instance at once")
	}
}
