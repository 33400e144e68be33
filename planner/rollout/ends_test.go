package rollout

import (
	"testing"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// TestARolloutThatIsToEndEndsWhereItMay: never in a wave, and never so that a replica goes.
func TestARolloutThatIsToEndEndsWhereItMay(t *testing.T) {
	const frozen = "a person froze it"
	from := plan.Count{Replicas: 2, ControllerReplicas: 2}
	for name, c := range map[string]liveCase{
		"no wave is begun": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: grown,
			want: "Finished: 3/16 rows [a0 b1 c1]; a person froze it: where the other clusters go is decided anew",
		},
		"the wave under way goes on": {
			plan: growing(plan.Moving, moved), seen: but(fit(3, 16, grown), func(s *observed.State) { s.Owned["b"] = observed.Owned{} }), target: grown,
			want: `Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; waiting: cluster "b" is owned by nobody instead of replica 2`,
		},
		"after the last wave nothing is left to end": {
			plan: growing(plan.Moving, moved), seen: fit(3, 16, grown), target: grown,
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica",
		},
		"no replica goes": {
			plan: shrinking(plan.Verifying, shrunken, nil), seen: fit(3, 16, shrunken),
			want: "Finished: 3/16 rows [a0 b1 c0]; every cluster has its one owner; the workload stays at 3 replicas: a person froze it",
		},
		"replicas that go already are gone first": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }), seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Workload.Current = 3 }),
			want: "Waiting: Shrinking 2/16 rows [a0 b1 c0]; waiting: the workload still asks for 3 replicas",
		},
		"what the env has no number for keeps no replica": {
			plan: shrinking(plan.Shrinking, shrunken, func(p *plan.Plan) { p.Replicas = 2 }),
			seen: but(fit(4, 2, shrunken), func(s *observed.State) {
				s.Workload.Current = 4
				s.Secrets = append(s.Secrets, observed.Secret{Name: "z", Shard: 3, Valid: true, Immutable: true})
			}),
			want: "Waiting: Shrinking 2/16 rows [a0 b1 c0]; waiting: the workload still asks for 4 replicas",
		},
		"after the env's restart no replica comes": {
			plan: during(from, three, plan.Scaling, old, nil), seen: fit(2, 16, old),
			want: "Finished: 2/16 rows [a0 b1 c1]; of 2 replicas 2 are updated and 2 ready; the workload stays at 2 replicas: a person froze it",
		},
	} {
		c.ends = frozen
		t.Run(name, c.run)
	}
}
