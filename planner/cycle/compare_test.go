package cycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	"ballast/planner/cycle/compare"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

// compared is a fleet of three that stands as its plan says, for a test to change.
func compared() (discover.Input, discover.Workload, configmap.Document) {
	w := newWorld(3, 2, 1)
	w.in.Config.Mode = plan.Hold
	w.cycle()
	for i, name := range []string{"c000", "c001", "c002"} {
		row := w.in.InForce.Clusters[name]
		row.Replica, row.Load = i, []string{"0.5", "0.333", "0.167"}[i]
		w.in.InForce.Clusters[name] = row
		w.secret(name).Shard = discover.ShardValue{State: discover.ShardValid, N: i}
	}
	return w.in.Discovered, w.in.Workload, configmap.Document{Plan: w.in.InForce}
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
	fewer := func(w *discover.Workload, d *configmap.Document) {
		w.Replicas, w.EnvReplicas = 5, ptr.To("5")
		for i := range 5 {
			d.Plan.Clusters[fmt.Sprintf("gone-%d", i)] = plan.Row{}
		}
	}
	as := map[int][]string{0: {"0.5", "c000"}, 1: {"0.333", "c001"}, 2: {"0.167", "c002"}}
	for name, test := range map[string]struct {
		change   func(*discover.Input, *discover.Workload, *configmap.Document)
		carried  map[int][]string
		steps    []string
		problems []string
	}{
		"nothing": {func(*discover.Input, *discover.Workload, *configmap.Document) {}, as, nil, nil},
		"a Secret that drifted": {func(in *discover.Input, _ *discover.Workload, _ *configmap.Document) { in.Secrets[0].Shard.N = 2 },
			as, []string{"shard of c000: 2 -> 0 (Drifted)"}, nil},
		"a workload that was scaled": {func(_ *discover.Input, w *discover.Workload, _ *configmap.Document) { w.Replicas = 5 },
			as, []string{"workload: replicas=3 (Drifted)"}, nil},
		"a pin of the plan ConfigMap": {func(_ *discover.Input, _ *discover.Workload, d *configmap.Document) { d.Pins = plan.Pins{"c000": 1} },
			map[int][]string{0: {"0"}, 1: {"0.833", "c000", "c001"}, 2: {"0.167", "c002"}}, []string{"shard of c000: 0 -> 1 (Pinned)"}, nil},
		"a pin of a Secret": {func(in *discover.Input, _ *discover.Workload, _ *configmap.Document) { in.Secrets[0].Pin = "2" },
			map[int][]string{0: {"0"}, 1: {"0.333", "c001"}, 2: {"0.667", "c000", "c002"}}, []string{"shard of c000: 0 -> 2 (Pinned)"}, nil},
		"a Secret without a server": {func(in *discover.Input, _ *discover.Workload, _ *configmap.Document) { in.Secrets[2].Server = "" },
			map[int][]string{0: {"0.5", "c000"}, 1: {"0.333", "c001"}, 2: {"0"}}, nil, []string{"discover/MissingServer/c002"}},
		"break-glass": {func(in *discover.Input, _ *discover.Workload, d *configmap.Document) {
			in.Secrets[0].Shard.N, d.BreakGlass = 2, true
		},
			as, nil, nil},
		"no plan": {func(_ *discover.Input, _ *discover.Workload, d *configmap.Document) { d.Plan = nil }, map[int][]string{}, nil, nil},
		"most of the fleet went, so that no replica goes": {func(_ *discover.Input, w *discover.Workload, d *configmap.Document) { fewer(w, d) },
			as, nil, nil},
		"so it did, and a person says that it is right": {func(in *discover.Input, w *discover.Workload, d *configmap.Document) {
			fewer(w, d)
			in.AcceptDiscovery = ptr.To(3)
		}, as, []string{"workload: replicas=3 ARGOCD_CONTROLLER_REPLICAS=3 (Drifted)"}, nil},
		"a load that cannot be read counts as nothing": {func(_ *discover.Input, _ *discover.Workload, d *configmap.Document) {
			row := d.Plan.Clusters["c000"]
			row.Load = "much"
			d.Plan.Clusters["c000"] = row
		}, map[int][]string{0: {"0", "c000"}, 1: {"0.333", "c001"}, 2: {"0.167", "c002"}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in, w, doc := compared()
			test.change(&in, &w, &doc)
			got := compare.InForce(inputsOf(in, w, doc))
			if diff := cmp.Diff(test.carried, carried(got.Replicas)); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.steps, stepsOf(got.Diff)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems(outcome.Outcome{Problems: got.Problems})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichClustersGoWhere(t *testing.T) {
	under := func(mode string, stage plan.Stage, moves, was map[string]int) *plan.Rollout {
		return &plan.Rollout{Mode: mode, Stage: stage, Since: epoch, From: plan.Count{Replicas: 3, ControllerReplicas: 3}, Replicas: 3, ControllerReplicas: 3, Moves: moves, Was: was}
	}
	to := func(pairs ...any) map[string]int {
		m := map[string]int{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1].(int)
		}
		return m
	}
	for name, test := range map[string]struct {
		rollout *plan.Rollout
		want    []outcome.Move
	}{
		"a wave, whose rows are the new ones": {under(plan.ModeLive, plan.Moving, to("c001", 1), to("c001", 0)), []outcome.Move{{Cluster: "c001", From: 0, To: 1}}},
		"a wave that goes back":               {under(plan.ModeLive, plan.Reverting, to("c001", 1), to("c001", 2)), []outcome.Move{{Cluster: "c001", From: 2, To: 1}}},
		"before the first wave":               {under(plan.ModeLive, plan.Scaling, nil, nil), nil},
		"x0y, while pods stop":                {under(plan.ModeX0Y, plan.Draining, to("c001", 2, "c000", 1), nil), []outcome.Move{{Cluster: "c000", From: 0, To: 1}, {Cluster: "c001", From: 1, To: 2}}},
		"x0y, whose rows are the new ones":    {under(plan.ModeX0Y, plan.Assigning, nil, to("c001", 2, "c002", 2)), []outcome.Move{{Cluster: "c001", From: 2, To: 1}}},
		"x0y, on its way back":                {under(plan.ModeX0Y, plan.Reverting, nil, to("c001", 0, "c002", 2)), []outcome.Move{{Cluster: "c001", From: 1, To: 0}}},
		"default, before it assigns":          {under(plan.ModeDefault, plan.Scaling, to("c001", 2), nil), []outcome.Move{{Cluster: "c001", From: 1, To: 2}}},
		"default, whose rows are the new":     {under(plan.ModeDefault, plan.Assigning, to("c001", 1), nil), []outcome.Move{{Cluster: "c001", From: plan.NoReplica, To: 1}}},
		"a cluster that is not planned yet":   {under(plan.ModeDefault, plan.Scaling, to("new", 2), nil), []outcome.Move{{Cluster: "new", From: plan.NoReplica, To: 2}}},
		"one that is gone":                    {under(plan.ModeX0Y, plan.Assigning, nil, to("gone", 2)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, doc := compared() // c000 on replica 0, c001 on 1, c002 on 2
			doc.Plan.Rollout = test.rollout
			if diff := cmp.Diff(test.want, compare.MovesUnderWay(plan.NewView(*doc.Plan, nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompareShowsWhoIsToHaveWhatWhileX0YHasStoppedAll(t *testing.T) {
	in, w, doc := compared()
	doc.Plan.Replicas = 0
	want := map[int][]string{0: {"0.5", "c000"}, 1: {"0.333", "c001"}, 2: {"0.167", "c002"}}
	if diff := cmp.Diff(want, carried(compare.InForce(inputsOf(in, w, doc)).Replicas)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func stepsOf(a diff.Result) []string {
	var steps []string
	for _, s := range a.Steps {
		steps = append(steps, s.String())
	}
	return steps
}

func inputsOf(in discover.Input, w discover.Workload, doc configmap.Document) input.Inputs {
	return input.Inputs{Now: epoch, Discovered: in, Workload: w, InForce: doc.Plan, Pins: doc.Pins, BreakGlass: doc.BreakGlass}
}

// TestCompareKnowsWhoHadTheServer: the pin of an older Secret that came to a server later counts for nothing, as in the leader's cycle.
func TestCompareKnowsWhoHadTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		planned bool
		want    plan.Pins
	}{
		"no plan":                         {false, plan.Pins{"c900": 2}},
		"the plan has the server's first": {true, plan.Pins{}},
	} {
		t.Run(name, func(t *testing.T) {
			in, w, doc := compared()
			older := in.Secrets[0]
			older.Name, older.Created, older.Pin = "c900", epoch.Add(-100*time.Hour), "2"
			in.Secrets[0].Created = epoch.Add(-50 * time.Hour)
			in.Secrets = append(in.Secrets, older)
			now := inputsOf(in, w, doc)
			if !test.planned {
				now.InForce = nil
			}
			if diff := cmp.Diff(test.want, compare.InForce(now).Pins, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("pins (-want +got):\n%s", diff)
			}
		})
	}
}
