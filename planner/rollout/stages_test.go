package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

func TestStepsOfTheStagesOfLiveAndX0Y(t *testing.T) {
	deployment := func(p plan.Plan) plan.Plan {
		p.Target.Kind, p.ControllerReplicas, p.Rollout.From.ControllerReplicas, p.Rollout.ControllerReplicas = plan.Deployment, 0, 0, 0
		return p
	}
	bare := func(replicas int, shards map[string]int) observed.State {
		return but(fit(replicas, 0, shards), func(s *observed.State) { s.Workload.ControllerReplicas = nil })
	}
	back := func(p *plan.Plan) { wave(p, shards{"b": 1}, shards{"b": 2}) }
	was := func(p *plan.Plan) { p.Rollout.Was = shards{"b": 1} }
	restart := start.Format(time.RFC3339)
	for name, test := range map[string]struct {
		plan plan.Plan
		seen observed.State
		want Agenda
	}{
		"live: the env alone is set first": {
			plan: during(plan.Count{Replicas: 2, ControllerReplicas: 2}, three, plan.Scaling, old, nil), seen: fit(2, 2, old),
			want: Agenda{Steps: []Step{PatchWorkload{ControllerReplicas: ptr(16), Why: Rolling}}},
		},
		"live: growing writes the replicas alone": {
			plan: growing(plan.Scaling, nil), seen: fit(2, 16, old), want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(3), Why: Rolling}}},
		},
		"live: people's replicas are not written": {
			plan: growing(plan.Scaling, func(p *plan.Plan) { p.FreeReplicas = true }), seen: fit(2, 16, old),
		},
		"live: a wave moves its clusters": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, old), want: Agenda{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}}},
		},
		"live: a workload that somebody changed during a wave has drifted": {
			plan: growing(plan.Moving, moved), seen: fit(2, 16, grown), want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(3), Why: Drifted}}},
		},
		"live: a workload at 0 is brought back in every stage": {
			plan: growing(plan.Verifying, nil), seen: none(0, 16, old), want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(3), Why: Stopped}}},
		},
		"live: a plan of 0 replicas still runs one": {
			plan: growing(plan.Moving, func(p *plan.Plan) { p.Replicas = 0 }), seen: none(0, 16, shards{"a": 0}), want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(1), Why: Stopped}}},
		},
		"live: a wave's way back is between replicas that stay, whatever the counts": {
			plan: growing(plan.Reverting, func(p *plan.Plan) {
				p.Clusters = rows(shards{"a": 0, "b": 2, "c": 1})
				wave(p, shards{"b": 2}, shards{"b": 0})
			}),
			seen: fit(3, 16, shards{"a": 0, "b": 0, "c": 1}), want: Agenda{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "0", Why: Moved}}},
		},
		"live: replicas that were left go": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(3, 16, shrunken),
			want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(2), Why: Rolling}}},
		},
		"live: they do not go while a Secret carries one": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(3, 16, before),
			want: Agenda{
				Steps: []Step{PatchShard{Secret: "c", Shard: 0, Was: "2", Why: Drifted}},
				Held:  []Held{{Reason: HeldStillCarried, Shard: 2, By: "c"}},
			},
		},
		"live: a shrinking Deployment restarts, since its pods read the number once": {
			plan: deployment(shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 })), seen: bare(3, shrunken),
			want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(2), RestartedAt: restart, Why: Rolling}}},
		},
		"live: a wave's way back restarts no Deployment": {
			plan: deployment(growing(plan.Reverting, back)), seen: bare(3, grown), want: Agenda{Steps: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Moved}}},
		},
		"live: a wave restarts no Deployment": {plan: deployment(growing(plan.Moving, moved)), seen: bare(3, grown)},
		"x0y: draining stops every replica, and leaves the env": {
			plan: stopped(plan.Draining, old, nil), seen: fit(2, 2, old), want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(0), Why: Rolling}}},
		},
		"x0y: a replica that somebody started while none may run goes": {
			plan: stopped(plan.Assigning, grown, was), seen: fit(1, 2, shards{"a": 0, "b": 0, "c": 1}),
			want: Agenda{
				Steps: []Step{PatchWorkload{Replicas: ptr(0), Why: Drifted}},
				Held:  []Held{{Secret: "b", Reason: HeldBeyondReach, Shard: 2}},
			},
		},
		"x0y: while none runs, shards of the new count are written": {
			plan: stopped(plan.Assigning, grown, was), seen: none(0, 2, old), want: Agenda{Steps: []Step{PatchShard{Secret: "b", Shard: 2, Was: "1", Why: Moved}}},
		},
		"x0y: they are not while pods still run": {
			plan: stopped(plan.Assigning, grown, was), seen: none(1, 2, old), want: Agenda{Held: []Held{{Secret: "b", Reason: HeldBeyondReach, Shard: 2}}},
		},
		"x0y: replicas and env come in one write": {
			plan: stopped(plan.Restoring, grown, func(p *plan.Plan) { p.Replicas, p.ControllerReplicas = 3, 3 }), seen: none(0, 2, grown),
			want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(3), ControllerReplicas: ptr(3), Why: Rolling}}},
		},
		"x0y: what it stopped is brought back though the replicas are people's now": {
			plan: stopped(plan.Reverting, old, func(p *plan.Plan) { p.Replicas, p.FreeReplicas = 2, true }), seen: none(0, 2, old),
			want: Agenda{Steps: []Step{PatchWorkload{Replicas: ptr(2), Why: Rolling}}},
		},
		"x0y: its way back to fewer waits until nobody carries what goes": {
			plan: stopped(plan.Reverting, old, func(p *plan.Plan) { p.Replicas = 2; was(p) }), seen: fit(3, 3, grown),
			want: Agenda{
				Steps: []Step{PatchShard{Secret: "b", Shard: 1, Was: "2", Why: Moved}},
				Held:  []Held{{Reason: HeldStillCarried, Shard: 2, By: "b"}},
			},
		},
		"x0y: its way back to more stamps nothing above the smaller count": {
			plan: stopped(plan.Reverting, before, func(p *plan.Plan) {
				p.Rollout.From, p.Rollout.Replicas, p.Rollout.ControllerReplicas = plan.Count{Replicas: 3, ControllerReplicas: 3}, 2, 2
				p.Replicas, p.ControllerReplicas = 3, 3
			}), seen: fit(3, 3, shrunken),
			want: Agenda{Held: []Held{{Secret: "c", Reason: HeldBeyondReach, Shard: 2}}},
		},
		"x0y: but once all pods are of one count": {
			plan: stopped(plan.Reverting, before, func(p *plan.Plan) {
				p.Rollout.From, p.Rollout.Replicas, p.Rollout.ControllerReplicas = plan.Count{Replicas: 3, ControllerReplicas: 3}, 2, 2
				p.Replicas, p.ControllerReplicas, p.Rollout.Moves = 3, 3, shards{"c": 2}
			}), seen: fit(3, 3, shrunken),
			want: Agenda{Steps: []Step{PatchShard{Secret: "c", Shard: 2, Was: "0", Why: Moved}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Steps(plan.NewView(test.plan, nil), test.seen, StepOptions{})); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOrderOfWhatIsSeenChangesNothingInAnyMode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJourney(t)
		mode := rapid.SampledFrom([]string{plan.ModeLive, plan.ModeX0Y}).Draw(t, "mode")
		j.free = j.free && mode == plan.ModeLive
		r := j.begin(t, mode)
		r.chaos, r.stopping = true, mode == plan.ModeX0Y
		for range rapid.IntRange(0, 20).Draw(t, "loops") {
			r.loop()
		}
		seen := r.fleet.seen()
		shuffled := seen
		shuffled.Secrets, shuffled.Pods = rapid.Permutation(seen.Secrets).Draw(t, "secrets"), rapid.Permutation(seen.Pods).Draw(t, "pods")
		v, before := plan.NewView(r.plan, r.pins), r.plan.Clone()
		a, pa := Advance(v, seen, r.target, r.o, r.now)
		b, pb := Advance(v, shuffled, r.target, r.o, r.now)
		o := StepOptions{Nudge: true}
		if diff := cmp.Diff(a, b) + cmp.Diff(pa, pb) + cmp.Diff(Steps(v, seen, o), Steps(v, shuffled, o)); diff != "" {
			t.Fatalf("the order of what is seen changes the answer:\n%s", diff)
		}
		if diff := cmp.Diff(before, r.plan); diff != "" {
			t.Fatalf("the plan in force was changed in place:\n%s", diff)
		}
	})
}
