package standing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// TestSeenOwners: a StatefulSet's pods have their replica in their name, a Deployment's in what they claimed.
func TestSeenOwners(t *testing.T) {
	set := discover.Workload{Kind: plan.StatefulSet, Name: "c"}
	deployment := discover.Workload{Kind: plan.Deployment, Name: "c", DynamicDistribution: true}
	pods := []observed.Pod{{Name: "c-7d9-aaaaa", Replica: 1, Claimed: true}, {Name: "c-7d9-bbbbb", Replica: 0}, {Name: "c-7d9-ccccc", Replica: -1}}
	for name, tc := range map[string]struct {
		workload discover.Workload
		keys     []string
		want     map[string]int
	}{
		"ordinals":                            {set, []string{"c-0|https://a/", "c-12|https://b"}, map[string]int{"https://a": 0, "https://b": 12}},
		"of another workload, and of none":    {set, []string{"d-0|https://a", "c-x|https://b", "c-1|", "c-1"}, map[string]int{}},
		"two pods":                            {set, []string{"c-0|https://a", "c-1|https://a", "c-1|https://a"}, map[string]int{}},
		"slots":                               {deployment, []string{"c-7d9-aaaaa|https://a", "c-7d9-bbbbb|https://b"}, map[string]int{"https://a": 1, "https://b": 0}},
		"a pod without a slot, and one gone":  {deployment, []string{"c-7d9-ccccc|https://a", "c-7d9-zzzzz|https://b"}, map[string]int{}},
		"one that owns and one without claim": {deployment, []string{"c-7d9-aaaaa|https://a", "c-7d9-ccccc|https://a"}, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			var fetched poll.Fetched
			for _, key := range tc.keys {
				fetched.Samples = append(fetched.Samples, poll.Sample{Key: key, Value: 1})
			}
			if diff := cmp.Diff(tc.want, seenOwners(fetched, tc.workload, pods)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}
