package ledger

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/failover/health"
	"ballast/planner/plan"
)

// TestWhatReplicasMayDieOf is what failovers moved twice within a day, and what a replica had received that fell ill within the hour: when it
// fell ill counts, and not when it was seen.
func TestWhatReplicasMayDieOf(t *testing.T) {
	type look struct {
		hour  float64
		moves []string // by a failover
		back  bool     // a wave that goes back
		ill   float64  // replica 1, since that hour; negative: it is well
		stage plan.Stage
	}
	const well = -1
	moved := look{0, []string{"a", "b"}, false, well, ""}
	for name, test := range map[string]struct {
		looks []look
		want  []string
	}{
		"once":                            {[]look{moved}, nil},
		"twice within a day":              {[]look{moved, {23, []string{"b", "c"}, false, well, ""}}, []string{"b"}},
		"twice, a day apart":              {[]look{moved, {24, []string{"b", "c"}, false, well, ""}}, nil},
		"a wave that went back":           {[]look{moved, {0.2, []string{"a", "b"}, true, well, ""}}, nil},
		"and is tried again":              {[]look{moved, {0.2, []string{"a", "b"}, true, well, ""}, {1, []string{"a"}, false, well, ""}}, []string{"a"}},
		"its replica fell ill soon":       {[]look{moved, {0.9, nil, false, 0.8, ""}}, []string{"a"}},
		"which was seen late":             {[]look{moved, {5, nil, false, 0.9, ""}}, []string{"a"}},
		"it fell ill after an hour":       {[]look{moved, {1.2, nil, false, 1, ""}}, nil},
		"it was ill before":               {[]look{moved, {0.2, nil, false, -0.1, ""}}, nil},
		"it is well again":                {[]look{moved, {0.9, nil, false, 0.8, ""}, {3, nil, false, well, ""}}, []string{"a"}},
		"a day later it is moved anew":    {[]look{moved, {0.9, nil, false, 0.8, ""}, {24, []string{"c"}, false, well, ""}}, nil},
		"within that day it stays so":     {[]look{moved, {0.9, nil, false, 0.8, ""}, {20, []string{"a"}, false, well, ""}, {40, []string{"c"}, false, well, ""}}, []string{"a"}},
		"rows say where clusters are yet": {[]look{moved, {0.5, nil, false, 0.4, plan.Assigning}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := Ledger{Draft: &outcome.Draft{}}
			for _, look := range test.looks {
				l.In = input.Inputs{Now: epoch.Add(time.Duration(look.hour * float64(time.Hour)))}
				l.noteFailed(slices.Values(look.moves), look.back)
				next := plan.Plan{Clusters: map[string]plan.Row{"a": {Replica: 1}, "b": {Replica: 2}, "c": {Replica: 1}}}
				if look.stage != "" {
					next.Rollout = &plan.Rollout{Stage: look.stage}
				}
				if look.ill != well {
					l.Suspect([]health.Sick{{Replica: 1, Since: epoch.Add(time.Duration(look.ill * float64(time.Hour)))}}, next)
				}
			}
			got := slices.Sorted(maps.Keys(l.Out.Memory.Changes.Suspect))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
