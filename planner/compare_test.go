package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// compared is a fleet of three that stands as its plan says, for a test to change.
func compared() (discover.Input, discover.Workload, plan.Document) {
	w := newWorld(3, 2, 1)
	w.in.Config.Mode = plan.Hold
	w.cycle()
	for i, name := range []string{"c000", "c001", "c002"} {
		row := w.in.InForce.Clusters[name]
		row.Replica, row.Load = i, []string{"0.5", "0.333", "0.167"}[i]
		w.in.InForce.Clusters[name] = row
		w.secret(name).Shard = discover.ShardValue{State: discover.ShardValid, N: i}
	}
	return w.in.Discovered, w.in.Workload, plan.Document{Plan: w.in.InForce}
}

// carried is each replica's load with its clusters, as people read it.
func carried(replicas []plan.Replica) map[int][]string {
	got := map[int][]string{}
	for _, r := range replicas {
		got[r.ID] = []string{r.TotalLoadDisplay}
		for _, l := range r.LoadIndexes {
			got[r.ID] = append(got[r.ID], l.Shard.ID)
		}
	}
	return got
}

func TestCompareSaysWhatDiffersFromThePlan(t *testing.T) {
	as := map[int][]string{0: {"0.5", "c000"}, 1: {"0.333", "c001"}, 2: {"0.167", "c002"}}
	for name, test := range map[string]struct {
		change   func(*discover.Input, *discover.Workload, *plan.Document)
		carried  map[int][]string
		steps    []string
		problems []string
	}{
		"nothing": {func(*discover.Input, *discover.Workload, *plan.Document) {}, as, nil, nil},
		"a Secret that drifted": {func(in *discover.Input, _ *discover.Workload, _ *plan.Document) { in.Secrets[0].Shard.N = 2 },
			as, []string{"shard of c000: 2 -> 0 (Drifted)"}, nil},
		"a workload that was scaled": {func(_ *discover.Input, w *discover.Workload, _ *plan.Document) { w.Replicas = 5 },
			as, []string{"workload: replicas=3 (Drifted)"}, nil},
		"a pin of the plan ConfigMap": {func(_ *discover.Input, _ *discover.Workload, d *plan.Document) { d.Pins = plan.Pins{"c000": 1} },
			map[int][]string{0: {"0"}, 1: {"0.833", "c000", "c001"}, 2: {"0.167", "c002"}}, []string{"shard of c000: 0 -> 1 (Pinned)"}, nil},
		"a pin of a Secret": {func(in *discover.Input, _ *discover.Workload, _ *plan.Document) { in.Secrets[0].Pin = "2" },
			map[int][]string{0: {"0"}, 1: {"0.333", "c001"}, 2: {"0.667", "c000", "c002"}}, []string{"shard of c000: 0 -> 2 (Pinned)"}, nil},
		"a Secret without a server": {func(in *discover.Input, _ *discover.Workload, _ *plan.Document) { in.Secrets[2].Server = "" },
			map[int][]string{0: {"0.5", "c000"}, 1: {"0.333", "c001"}, 2: {"0"}}, nil, []string{"discover/MissingServer/c002"}},
		"break-glass": {func(in *discover.Input, _ *discover.Workload, d *plan.Document) {
			in.Secrets[0].Shard.N, d.BreakGlass = 2, true
		},
			as, nil, nil},
		"no plan": {func(_ *discover.Input, _ *discover.Workload, d *plan.Document) { d.Plan = nil }, map[int][]string{}, nil, nil},
		"a load that cannot be read counts as nothing": {func(_ *discover.Input, _ *discover.Workload, d *plan.Document) {
			row := d.Plan.Clusters["c000"]
			row.Load = "much"
			d.Plan.Clusters["c000"] = row
		}, map[int][]string{0: {"0", "c000"}, 1: {"0.333", "c001"}, 2: {"0.167", "c002"}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in, w, doc := compared()
			test.change(&in, &w, &doc)
			got := Compare(in, w, doc)
			if diff := cmp.Diff(test.carried, carried(got.Replicas)); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.steps, stepsOf(got.Agenda)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems(Outcome{Problems: got.Problems})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func stepsOf(a rollout.Agenda) []string {
	var steps []string
	for _, s := range a.Steps {
		steps = append(steps, s.String())
	}
	return steps
}
