package rollout

import (
	"fmt"
	"testing"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

func TestLiveScaling(t *testing.T) {
	unready := but(fit(3, 16, old), func(s *observed.State) { s.Workload.Ready = 2 })
	renewing := during(plan.Count{Replicas: 2, ControllerReplicas: 2}, three, plan.Scaling, old, nil)
	for name, c := range map[string]liveCase{
		"waits for the pods": {
			plan: growing(plan.Scaling, nil), seen: unready, target: grown,
			want: "Waiting: Scaling 3/16 rows [a0 b1 c1]; waiting: of 3 replicas 3 are updated and 2 ready",
		},
		"goes on to moving when they are ready": {
			plan: growing(plan.Scaling, nil), seen: fit(3, 16, old), target: grown,
			want: "Advanced: Moving 3/16 rows [a0 b1 c1]; of 3 replicas 3 are updated and 3 ready",
		},
		"turns back at its deadline, and nobody moved": {
			plan: growing(plan.Scaling, nil), seen: unready, target: grown, late: true,
			want: "TurnedBack: Reverting 2/16 rows [a0 b1 c1]; not done after 10m0s: of 3 replicas 3 are updated and 2 ready",
		},
		"the way back waits until the replicas are gone": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(3, 16, old),
			want: "Waiting: Reverting 2/16 rows [a0 b1 c1]; waiting: the workload still asks for 3 replicas",
		},
		"the way back ends": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(2, 16, old),
			want: "Reverted: 2/16 rows [a0 b1 c1]; of 2 replicas 2 are updated and 2 ready",
		},
		"the way back ends at its deadline, whatever stands": {
			plan: growing(plan.Reverting, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(3, 16, old), late: true,
			want: "Reverted: 2/16 rows [a0 b1 c1]; not done after 10m0s: the workload still asks for 3 replicas",
		},
		"the env's restart comes before the replicas": {
			plan: renewing, seen: but(fit(2, 16, old), func(s *observed.State) { s.Workload.Updated = 1 }),
			want: "Waiting: Scaling 2/16 rows [a0 b1 c1]; waiting: of 2 replicas 1 are updated and 2 ready",
		},
		"after the env's restart the replicas come": {
			plan: renewing, seen: fit(2, 16, old),
			want: "Advanced: Scaling 3/16 rows [a0 b1 c1]; of 2 replicas 2 are updated and 2 ready",
		},
		"an env's restart that never ends goes back to the old env": {
			plan: renewing, seen: but(fit(2, 16, old), func(s *observed.State) { s.Workload.Ready = 1 }), late: true,
			want: "TurnedBack: Reverting 2/2 rows [a0 b1 c1]; not done after 10m0s: of 2 replicas 2 are updated and 1 ready",
		},
		"after the env's restart nothing is left to do but to verify": {
			plan: during(plan.Count{Replicas: 2, ControllerReplicas: 2}, two, plan.Scaling, old, nil), seen: fit(2, 16, old),
			want: "Advanced: Moving 2/16 rows [a0 b1 c1]; of 2 replicas 2 are updated and 2 ready",
		},
		"people's replicas are waited for": {
			plan: growing(plan.Scaling, func(p *plan.Plan) { p.FreeReplicas = true }), seen: unready,
			want: "Waiting: Scaling 3/16 rows [a0 b1 c1]; waiting: of 3 replicas 3 are updated and 2 ready",
		},
		"people's replicas have no way back": {
			plan: growing(plan.Scaling, func(p *plan.Plan) { p.FreeReplicas = true }), seen: unready, late: true,
			want: "GaveUp: 2/16 rows [a0 b1 c1]; not done after 10m0s: of 3 replicas 3 are updated and 2 ready",
		},
		"the env's restart takes people's replicas as they are": {
			plan: during(plan.Count{Replicas: 2, ControllerReplicas: 2}, three, plan.Scaling, old, func(p *plan.Plan) { p.FreeReplicas = true }), seen: fit(3, 16, old),
			want: "Advanced: Scaling 3/16 rows [a0 b1 c1]; of 3 replicas 3 are updated and 3 ready",
		},
		"a stage that live does not have ends": {
			plan: growing(plan.Assigning, nil), seen: fit(3, 16, old),
			want: `GaveUp: 3/16 rows [a0 b1 c1]; this version knows no rollout in mode "live" with stage "Assigning"`,
		},
		"holding stops it where it is": {
			plan: growing(plan.Scaling, func(p *plan.Plan) { p.Mode = plan.Hold }), seen: fit(3, 16, old),
			want: "Waiting: Scaling 3/16 rows [a0 b1 c1]; the mode is Hold, so the rollout stays where it is",
		},
	} {
		t.Run(name, c.run)
	}
}

func TestLiveVerifyingAndShrinking(t *testing.T) {
	stray := func(s *observed.State) {
		s.Secrets = append(s.Secrets, observed.Secret{Name: "z", Shard: 2, Valid: true, Unmanaged: true})
	}
	for name, c := range map[string]liveCase{
		"what is on a replica that goes moves first": {
			plan: shrinking(plan.Moving, before, nil), seen: fit(3, 16, before), target: shards{"a": 0, "b": 1, "c": 1},
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c1] moves [c1] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"a leader that forgot gives it to the lightest": {
			plan: shrinking(plan.Moving, before, func(p *plan.Plan) {
				p.Clusters["a"] = plan.Row{Replica: 0, Load: "2", Server: plan.ServerHash("https://a")}
			}), seen: fit(3, 16, before),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c1] moves [c1] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"a decision beyond the replicas that stay counts as none": {
			plan: shrinking(plan.Moving, before, nil), seen: fit(3, 16, before), target: before,
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c0] moves [c0] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"the lightest that may receive": {
			plan: shrinking(plan.Moving, before, nil), seen: but(fit(3, 16, before), func(s *observed.State) { s.Pods[0].Ready = false }),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c1] moves [c1] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"without a budget it ends where it was": {
			plan: shrinking(plan.Moving, before, nil), seen: fit(3, 16, before), budget: -1, late: true,
			want: "Finished: 3/16 rows [a0 b1 c2]; the budget of moves is used up after 10m0s: where the other clusters go is decided anew",
		},
		"every cluster has its owner, and the replicas go": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: fit(3, 16, shrunken),
			want: "Advanced: Shrinking 2/16 rows [a0 b1 c0]; every cluster has its one owner",
		},
		"a row whose Secret is gone follows": {
			plan: shrinking(plan.Verifying, before, nil), seen: fit(3, 16, shards{"a": 0, "b": 1}),
			want: "Advanced: Shrinking 2/16 rows [a0 b1 c0]; every cluster has its one owner",
		},
		"a cluster that came to a replica that goes moves": {
			plan: shrinking(plan.Verifying, before, nil), seen: fit(3, 16, before),
			want: "Advanced: Moving 3/16 rows [a0 b1 c2]; a cluster came to a replica that is to go",
		},
		"a Secret that is not ballast's keeps its replica": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), stray),
			want: `Waiting: Verifying 3/16 rows [a0 b1 c0]; waiting: 1 Secrets carry a replica that is to go, the first is "z"`,
		},
		"and so the replicas stay": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), stray), late: true,
			want: `GaveUp: 3/16 rows [a0 b1 c0]; the workload stays at 3 replicas after 10m0s: 1 Secrets carry a replica that is to go, the first is "z"`,
		},
		"a replica that still owns a cluster stays": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Owned["c"] = observed.Owned{Owners: []int{0, 2}} }), late: true,
			want: `GaveUp: 3/16 rows [a0 b1 c0]; the workload stays at 3 replicas after 10m0s: cluster "c" is owned by replica 2, which is to go`,
		},
		"no replica goes while owners are not known": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.OwnersKnown = false }), late: true,
			want: "GaveUp: 3/16 rows [a0 b1 c0]; the workload stays at 3 replicas after 10m0s: not every pod says which clusters it owns",
		},
		"a cluster without an owner elsewhere is waited for": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Owned["b"] = observed.Owned{} }),
			want: `Waiting: Verifying 3/16 rows [a0 b1 c0]; waiting: cluster "b" is owned by nobody instead of replica 1`,
		},
		"a cluster without an owner elsewhere keeps no replica": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Owned["b"] = observed.Owned{} }), late: true,
			want: `Advanced: Shrinking 2/16 rows [a0 b1 c0]; going on after 10m0s, though cluster "b" is owned by nobody instead of replica 1`,
		},
		"a cluster that Argo CD is told to leave alone has no owner": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Owned["b"], s.Secrets[1].Skip = observed.Owned{}, true }),
			want: "Advanced: Shrinking 2/16 rows [a0 b1 c0]; every cluster has its one owner",
		},
		"a cluster that people's own Secret of its server gives away keeps no replica": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: but(fit(3, 16, shrunken), func(s *observed.State) {
				s.Owned["b"], s.Doubled, s.Secrets[1].Disputed = observed.Owned{Owners: []int{0, 1}, Live: []int{0}}, []string{"b"}, true
			}),
			want: "Advanced: Shrinking 2/16 rows [a0 b1 c0]; every cluster has its one owner",
		},
		"nor its wave": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) {
				s.Owned["b"], s.Doubled, s.Secrets[1].Disputed = observed.Owned{Owners: []int{1, 2}, Live: []int{1}}, []string{"b"}, true
			}), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"nor another's": {
			plan: growing(plan.Moving, nil), seen: but(fit(3, 16, old), func(s *observed.State) {
				s.Owned["c"], s.Doubled, s.Secrets[2].Disputed = observed.Owned{Owners: []int{1, 2}}, []string{"c"}, true
			}), target: grown,
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"but without an owner it is waited for": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) {
				s.Owned["b"], s.Secrets[1].Disputed = observed.Owned{}, true
			}), target: grown,
			want: `Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: cluster "b" is owned by nobody instead of replica 2`,
		},
		"an immutable Secret is owned as it says": {
			plan: growing(plan.Verifying, nil), seen: but(fit(3, 16, shards{"a": 0, "b": 1, "c": 0}), func(s *observed.State) { s.Secrets[2].Immutable = true }),
			want: "Finished: 3/16 rows [a0 b1 c1]; every cluster has its one owner",
		},
		"what grew is finished": {
			plan: growing(plan.Verifying, nil), seen: fit(3, 16, old),
			want: "Finished: 3/16 rows [a0 b1 c1]; every cluster has its one owner",
		},
		"what grew waits for Secrets that somebody changed": {
			plan: growing(plan.Verifying, nil), seen: fit(3, 16, shards{"a": 0, "b": 0, "c": 1}),
			want: `Waiting: Verifying 3/16 rows [a0 b1 c1]; waiting: 1 Secrets do not carry their replica yet, the first is "b"`,
		},
		"what grew and cannot be verified is finished all the same": {
			plan: growing(plan.Verifying, nil), seen: but(fit(3, 16, old), func(s *observed.State) { s.OwnersKnown = false }), late: true,
			want: "Finished: 3/16 rows [a0 b1 c1]; going on after 10m0s, though not every pod says which clusters it owns",
		},
		"shrinking waits until they are gone": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(3, 16, shrunken),
			want: "Waiting: Shrinking 2/16 rows [a0 b1 c0]; waiting: the workload still asks for 3 replicas",
		},
		"shrinking is finished": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: fit(2, 16, shrunken),
			want: "Finished: 2/16 rows [a0 b1 c0]; of 2 replicas 2 are updated and 2 ready",
		},
		"a workload that could not be made smaller stays": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: but(fit(3, 16, shrunken), stray), late: true,
			want: `GaveUp: 3/16 rows [a0 b1 c0]; not done after 10m0s: the workload is not made smaller while 1 Secrets carry a replica that is to go, the first is "z"`,
		},
		"one of a fleet that is mostly not seen, too": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) {
				p.Replicas = 2
				for i := range 4 {
					p.Clusters[fmt.Sprint("gone-", i)] = plan.Row{}
				}
			}),
			seen: fit(3, 16, shrunken), late: true,
			want: "GaveUp: 3/16 rows [a0 b1 c0 gone-00 gone-10 gone-20 gone-30]; not done after 10m0s: the workload is not made smaller while most of the plan's Secrets are not seen",
		},
		"and one that a person took out": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Workload.Unmanaged = true }), late: true,
			want: "GaveUp: 3/16 rows [a0 b1 c0]; not done after 10m0s: the workload is annotated as unmanaged, and stays at 3 replicas",
		},
		"a pod that does not go does not bring the others back": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: but(fit(2, 16, shrunken), func(s *observed.State) { s.Workload.Current = 3 }), late: true,
			want: "GaveUp: 2/16 rows [a0 b1 c0]; not done after 10m0s: of 2 replicas 2 are updated and 2 ready; still there and to go: 1",
		},
		"people's replicas went already": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas, p.FreeReplicas = 2, true }), seen: fit(2, 16, shrunken),
			want: "Finished: 2/16 rows [a0 b1 c0]; of 2 replicas 2 are updated and 2 ready",
		},
	} {
		t.Run(name, c.run)
	}
}
