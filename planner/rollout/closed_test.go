package rollout

import (
	"testing"

	"ballast/planner/plan"
)

func TestAReplicaThatIsUnwellOrCordonedReceivesNothing(t *testing.T) {
	closed := func(replica int) map[int]bool { return map[int]bool{replica: true} }
	for name, c := range map[string]liveCase{
		"no wave goes there": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: grown, closed: closed(2),
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: replica 2 is unwell or cordoned",
		},
		"others receive": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: shards{"a": 1, "b": 2, "c": 1}, closed: closed(2),
			want: "Advanced: Moving 1/2 3/16 rows [a1 b1 c1] moves [a1] was [a0]; wave 1 of 2 moves 1 of 3 clusters",
		},
		"it may be emptied": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), target: grown, closed: closed(1),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"a pin is a person's word": {
			plan: growing(plan.Moving, nil), seen: fit(3, 16, old), pins: plan.Pins{"c": 2}, target: old, closed: closed(2),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c2] moves [c2] was [c1]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"what must leave its replica goes elsewhere": {
			plan: shrinking(plan.Moving, before, nil), seen: fit(3, 16, before), target: shrunken, closed: closed(0),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c1] moves [c1] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
		"and so it does where nobody decided whereto": {
			plan: shrinking(plan.Moving, before, nil), seen: fit(3, 16, before), closed: closed(0),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b1 c1] moves [c1] was [c2]; wave 1 of 1 moves 1 of 3 clusters",
		},
	} {
		t.Run(name, c.run)
	}
}
