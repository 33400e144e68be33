package steer

import (
	"bytes"
	"math"
	"testing"

	"ballast/cmd/ballast/say"
	"ballast/planner/plan"
)

// TestLoadsThatOverflowAreShown: people's commands read the plan without its key, and whoever wrote it may give two rows
// loads of which the sum is no number of 64 bits.
func TestLoadsThatOverflowAreShown(t *testing.T) {
	p := plan.Plan{Clusters: map[string]plan.Row{"a": {Load: "9000000000"}, "b": {Load: "9000000000"}, "c": {Replica: 1, Load: "1"}}}
	list := Carried(p, 2, func(name string) int { return p.Clusters[name].Replica })
	if list[0].TotalLoad != math.MaxInt64 || list[1].TotalLoad != plan.LoadUnit {
		t.Errorf("they carry %d and %d", list[0].TotalLoad, list[1].TotalLoad)
	}
	var b bytes.Buffer
	if err := say.Bars(&b, list); err != nil {
		t.Error(err)
	}
}
