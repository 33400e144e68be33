package diff

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
)

func TestNudgesWakeWhoHasNotTakenItsCluster(t *testing.T) {
	nudge := func(cluster string, shard int) Nudge {
		return Nudge{Cluster: cluster, Server: "https://" + cluster, Name: "name of " + cluster, Shard: shard, Since: fixture.Start}
	}
	named := func(s observed.State) observed.State {
		for i := range s.Secrets {
			s.Secrets[i].Cluster = "name of " + s.Secrets[i].Name
		}
		return s
	}
	repair := func(cluster string, shard int) Nudge {
		n := nudge(cluster, shard)
		n.Since = time.Time{}
		return n
	}
	given := func(cluster string, shard int, looked time.Time) observed.State {
		return fixture.But(fixture.Fit(3, 16, fixture.Old), func(s *observed.State) {
			s.Repaired, s.Looked = map[string]observed.Repair{cluster: {Shard: shard, At: fixture.Start}}, looked
		})
	}
	patch := PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}
	waiting := named(fixture.But(fixture.Fit(3, 16, fixture.Grown), func(s *observed.State) { s.Owned["b"] = observed.Owned{Owners: []int{2}} }))
	for name, test := range map[string]struct {
		plan plan.Plan
		pins plan.Pins
		seen observed.State
		off  bool
		want []Step
	}{
		"with the write that moves it": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: named(fixture.Fit(3, 16, fixture.Old)), want: []Step{patch, nudge("b", 2)},
		},
		"again until it is taken": {plan: fixture.Growing(plan.Moving, fixture.Moved), seen: waiting, want: []Step{nudge("b", 2)}},
		"where nothing is known of owners": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: named(fixture.But(fixture.Fit(3, 16, fixture.Grown), func(s *observed.State) { s.Owned, s.OwnersKnown, s.Pods = nil, false, nil })), want: []Step{nudge("b", 2)},
		},
		"not when it is taken":         {plan: fixture.Growing(plan.Moving, fixture.Moved), seen: named(fixture.Fit(3, 16, fixture.Grown))},
		"not where nudging is off":     {plan: fixture.Growing(plan.Moving, fixture.Moved), seen: waiting, off: true},
		"not outside a wave":           {plan: fixture.Growing(plan.Verifying, nil), seen: named(fixture.Fit(3, 16, fixture.Old))},
		"not a pod that does not hear": {plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.But(waiting, func(s *observed.State) { s.Pods = slices.Clone(s.Pods); s.Pods[2].Ready = false })},
		"not for a cluster without an Application": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.But(waiting, func(s *observed.State) { s.Owned = map[string]observed.Owned{"b": {Idle: true}} }),
		},
		"not for a cluster that Argo CD is told to leave": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.But(waiting, func(s *observed.State) { s.Secrets = slices.Clone(s.Secrets); s.Secrets[1].Skip = true }),
		},
		"not for a Secret that cannot be written": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.But(named(fixture.Fit(3, 16, fixture.Old)), func(s *observed.State) { s.Secrets[1].Immutable = true }),
		},
		"not while its Secret is held back": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.But(named(fixture.Fit(3, 16, fixture.Old)), func(s *observed.State) { s.Workload = fixture.Standing(2, fixture.Ptr(16)) }),
			want: []Step{PatchWorkload{Replicas: fixture.Ptr(3), Why: Drifted}},
		},
		"where a pin says now": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), pins: plan.Pins{"b": 0}, seen: named(fixture.But(fixture.Fit(3, 16, fixture.Shards{"a": 0, "b": 0, "c": 1}), func(s *observed.State) { s.Owned["b"] = observed.Owned{} })),
			want: []Step{nudge("b", 0)},
		},
		"on the way back": {
			plan: fixture.Growing(plan.Reverting, func(p *plan.Plan) { fixture.Wave(p, fixture.Shards{"b": 1}, fixture.Shards{"b": 2}) }), seen: named(fixture.Fit(3, 16, fixture.Grown)),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Moved}, nudge("b", 1)},
		},
		"with the write of a pin": {
			plan: fixture.Plan(3, 16, fixture.Old), pins: plan.Pins{"b": 2}, seen: named(fixture.Fit(3, 16, fixture.Old)),
			want: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Pinned}, repair("b", 2)},
		},
		"with the repair of a drift, which its owner has by the last look": {
			plan: fixture.Plan(3, 16, fixture.Old), seen: named(fixture.But(fixture.Fit(3, 16, fixture.Grown), func(s *observed.State) { s.Owned["b"] = observed.Owned{Owners: []int{1}, Live: []int{1}} })),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Drifted}, repair("b", 1)},
		},
		"with the repair of what is no shard": {
			plan: fixture.Plan(3, 16, fixture.Old), seen: named(fixture.But(fixture.Fit(3, 16, fixture.Old), func(s *observed.State) { s.Secrets[1].Valid = false })),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "invalid", Why: Broken}, repair("b", 1)},
		},
		"not with a stamp, which moves nothing": {
			plan: fixture.Plan(3, 16, fixture.Old), seen: named(fixture.But(fixture.Fit(3, 16, fixture.Old), func(s *observed.State) { s.Secrets[1].Valid, s.Secrets[1].Absent = false, true })),
			want: []Step{PatchShard{Secret: "b", Shard: 1, Was: "-", Why: Unstamped}},
		},
		"after a repair, whatever was seen before it": {
			plan: fixture.Plan(3, 16, fixture.Old), seen: named(given("b", 1, fixture.Start)), want: []Step{nudge("b", 1)},
		},
		"after a repair, while nobody has it": {
			plan: fixture.Plan(3, 16, fixture.Old), seen: named(fixture.But(given("b", 1, fixture.Start.Add(time.Second)), func(s *observed.State) { s.Owned["b"] = observed.Owned{} })), want: []Step{nudge("b", 1)},
		},
		"not after a repair once it is taken":      {plan: fixture.Plan(3, 16, fixture.Old), seen: named(given("b", 1, fixture.Start.Add(time.Second)))},
		"not after a repair that others overruled": {plan: fixture.Plan(3, 16, fixture.Old), seen: named(given("b", 2, fixture.Start))},
		"not after a repair where nudging is off":  {plan: fixture.Plan(3, 16, fixture.Old), seen: named(given("b", 1, fixture.Start)), off: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := Between(plan.NewView(test.plan, test.pins), test.seen, Options{Nudge: !test.off})
			if diff := cmp.Diff(test.want, got.Steps); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
