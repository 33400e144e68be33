package diff

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
)

func TestStepsOfTheStagesOfLiveAndX0Y(t *testing.T) {
	deployment := func(p plan.Plan) plan.Plan {
		p.Target.Kind, p.ControllerReplicas, p.Rollout.From.ControllerReplicas, p.Rollout.ControllerReplicas = plan.Deployment, 0, 0, 0
		return p
	}
	bare := func(replicas int, shards fixture.Shards) observed.State {
		return fixture.But(fixture.Fit(replicas, 0, shards), func(s *observed.State) { s.Workload.ControllerReplicas = nil })
	}
	back := func(p *plan.Plan) { fixture.Wave(p, fixture.Shards{"b": 1}, fixture.Shards{"b": 2}) }
	was := func(p *plan.Plan) { p.Rollout.Was = fixture.Shards{"b": 1} }
	restart := fixture.Start.Format(time.RFC3339)
	for name, test := range map[string]struct {
		plan plan.Plan
		seen observed.State
		want Result
	}{
		"live: the env alone is set first": {
			plan: fixture.During(plan.Count{Replicas: 2, ControllerReplicas: 2}, fixture.Three, plan.Scaling, fixture.Old, nil), seen: fixture.Fit(2, 2, fixture.Old),
			want: Result{Steps: []Step{PatchWorkload{ControllerReplicas: fixture.Ptr(16), Why: Rolling}}},
		},
		"live: growing writes the replicas alone": {
			plan: fixture.Growing(plan.Scaling, nil), seen: fixture.Fit(2, 16, fixture.Old), want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), Why: Rolling}}},
		},
		"live: people's replicas are not written": {
			plan: fixture.Growing(plan.Scaling, func(p *plan.Plan) { p.FreeReplicas = true }), seen: fixture.Fit(2, 16, fixture.Old),
		},
		"live: a wave moves its clusters": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.Fit(3, 16, fixture.Old), want: Result{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}}},
		},
		"live: a workload that somebody changed during a wave has drifted": {
			plan: fixture.Growing(plan.Moving, fixture.Moved), seen: fixture.Fit(2, 16, fixture.Grown), want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), Why: Drifted}}},
		},
		"live: a workload at 0 is brought back in every stage": {
			plan: fixture.Growing(plan.Verifying, nil), seen: fixture.None(0, 16, fixture.Old), want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), Why: Stopped}}},
		},
		"live: a plan of 0 replicas still runs one": {
			plan: fixture.Growing(plan.Moving, func(p *plan.Plan) { p.Replicas = 0 }), seen: fixture.None(0, 16, fixture.Shards{"a": 0}), want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(1), Why: Stopped}}},
		},
		"live: a wave's way back is between replicas that stay, whatever the counts": {
			plan: fixture.Growing(plan.Reverting, func(p *plan.Plan) {
				p.Clusters = fixture.Rows(fixture.Shards{"a": 0, "b": 2, "c": 1})
				fixture.Wave(p, fixture.Shards{"b": 2}, fixture.Shards{"b": 0})
			}),
			seen: fixture.Fit(3, 16, fixture.Shards{"a": 0, "b": 0, "c": 1}), want: Result{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "0", Why: Moved}}},
		},
		"live: replicas that were left go": {
			plan: fixture.Shrinking(plan.Shrinking, fixture.Shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: fixture.Fit(3, 16, fixture.Shrunken),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(2), Why: Rolling}}},
		},
		"live: they do not go while a Secret carries one": {
			plan: fixture.Shrinking(plan.Shrinking, fixture.Shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: fixture.Fit(3, 16, fixture.Before),
			want: Result{
				Steps: []Step{PatchShard{Secret: "c", Shard: 0, Was: "2", Why: Drifted}},
				Held:  []Held{{Reason: HeldStillCarried, Shard: 2, By: "c"}},
			},
		},
		"live: a shrinking Deployment restarts, since its pods read the number once": {
			plan: deployment(fixture.Shrinking(plan.Shrinking, fixture.Shrunken, func(p *plan.Plan) { p.Replicas = 2 })), seen: bare(3, fixture.Shrunken),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(2), RestartedAt: restart, Why: Rolling}}},
		},
		"live: a wave's way back restarts no Deployment": {
			plan: deployment(fixture.Growing(plan.Reverting, back)), seen: bare(3, fixture.Grown), want: Result{Steps: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Moved}}},
		},
		"live: a wave restarts no Deployment": {plan: deployment(fixture.Growing(plan.Moving, fixture.Moved)), seen: bare(3, fixture.Grown)},
		"x0y: draining stops every replica, and leaves the env": {
			plan: fixture.Stopped(plan.Draining, fixture.Old, nil), seen: fixture.Fit(2, 2, fixture.Old), want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(0), Why: Rolling}}},
		},
		"x0y: a replica that somebody started while none may run goes": {
			plan: fixture.Stopped(plan.Assigning, fixture.Grown, was), seen: fixture.Fit(1, 2, fixture.Shards{"a": 0, "b": 0, "c": 1}),
			want: Result{
				Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(0), Why: Drifted}},
				Held:  []Held{{Secret: "b", Reason: HeldBeyondReach, Shard: 2}},
			},
		},
		"x0y: while none runs, shards of the new count are written": {
			plan: fixture.Stopped(plan.Assigning, fixture.Grown, was), seen: fixture.None(0, 2, fixture.Old), want: Result{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}}},
		},
		"x0y: they are not while pods still run": {
			plan: fixture.Stopped(plan.Assigning, fixture.Grown, was), seen: fixture.None(1, 2, fixture.Old), want: Result{Held: []Held{{Secret: "b", Reason: HeldBeyondReach, Shard: 2}}},
		},
		"x0y: replicas and env come in one write": {
			plan: fixture.Stopped(plan.Restoring, fixture.Grown, func(p *plan.Plan) { p.Replicas, p.ControllerReplicas = 3, 3 }), seen: fixture.None(0, 2, fixture.Grown),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(3), ControllerReplicas: fixture.Ptr(3), Why: Rolling}}},
		},
		"x0y: what it stopped is brought back though the replicas are people's now": {
			plan: fixture.Stopped(plan.Reverting, fixture.Old, func(p *plan.Plan) { p.Replicas, p.FreeReplicas = 2, true }), seen: fixture.None(0, 2, fixture.Old),
			want: Result{Steps: []Step{PatchWorkload{Replicas: fixture.Ptr(2), Why: Rolling}}},
		},
		"x0y: its way back to fewer waits until nobody carries what goes": {
			plan: fixture.Stopped(plan.Reverting, fixture.Old, func(p *plan.Plan) { p.Replicas = 2; was(p) }), seen: fixture.Fit(3, 3, fixture.Grown),
			want: Result{
				Steps: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Moved}},
				Held:  []Held{{Reason: HeldStillCarried, Shard: 2, By: "b"}},
			},
		},
		"x0y: its way back to more stamps nothing above the smaller count": {
			plan: fixture.Stopped(plan.Reverting, fixture.Before, func(p *plan.Plan) {
				p.Rollout.From, p.Rollout.Replicas, p.Rollout.ControllerReplicas = plan.Count{Replicas: 3, ControllerReplicas: 3}, 2, 2
				p.Replicas, p.ControllerReplicas = 3, 3
			}), seen: fixture.Fit(3, 3, fixture.Shrunken),
			want: Result{Held: []Held{{Secret: "c", Reason: HeldBeyondReach, Shard: 2}}},
		},
		"x0y: but once all pods are of one count": {
			plan: fixture.Stopped(plan.Reverting, fixture.Before, func(p *plan.Plan) {
				p.Rollout.From, p.Rollout.Replicas, p.Rollout.ControllerReplicas = plan.Count{Replicas: 3, ControllerReplicas: 3}, 2, 2
				p.Replicas, p.ControllerReplicas, p.Rollout.Moves = 3, 3, fixture.Shards{"c": 2}
			}), seen: fixture.Fit(3, 3, fixture.Shrunken),
			want: Result{Steps: []Step{PatchShard{Secret: "c", Shard: 2, Was: "0", Why: Moved}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Between(plan.NewView(test.plan, nil), test.seen, Options{})); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
