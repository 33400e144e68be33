package standing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/sim"
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

// TestPrometheusDealsNoClusterThatItsSecretGives: whoever writes there places those alone that no Secret places, and no pod speaks of.
func TestPrometheusDealsNoClusterThatItsSecretGives(t *testing.T) {
	scrapedBy := func(in *input.Inputs) { scraped(1, "given")(in); scraped(1, "free")(in) }
	told := func(quoted bool) func(*input.Inputs) {
		return func(in *input.Inputs) {
			in.Observed.Reported = ownership.Observation{Pods: []ownership.PodObservation{{Replica: 1, Answered: true, Quoted: quoted}},
				Clusters: map[string]ownership.ClusterObservation{"given": {Owners: []int{1}}, "free": {Owners: []int{1}}}}
		}
	}
	for name, test := range map[string]struct {
		change func(*input.Inputs)
		want   []int // of free and given
	}{
		"nobody says anything":    {func(*input.Inputs) {}, []int{0, 2}},
		"Prometheus says it":      {scrapedBy, []int{1, 2}},
		"Prometheus for the pod":  {told(true), []int{1, 2}},
		"the pod says it":         {told(false), []int{1, 1}},
		"a shard beyond says not": {func(in *input.Inputs) { scrapedBy(in); stamp("given", "7")(in) }, []int{1, 1}},
	} {
		in := input.Inputs{Now: sim.Epoch, Workload: sim.Workload(), Discovered: discover.Input{Algorithm: "round-robin"}}
		in.Discovered.Secrets = []discover.Secret{sim.Secret("free"), sim.Secret("given")}
		stamp("given", "2")(&in)
		test.change(&in)
		if diff := cmp.Diff(test.want, Owners(in, discover.All(in.Discovered, in.Now))); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", name, diff)
		}
	}
}
