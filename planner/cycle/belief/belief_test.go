package belief

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
)

// TestTheFirstPlanOfAStoppedFleet has as many replicas as the Secrets say where each has a shard, and else as the env says; the in-cluster
// that has no Secret is where Argo CD has it.
func TestTheFirstPlanOfAStoppedFleet(t *testing.T) {
	shard := func(n int) discover.ShardValue { return discover.ShardValue{State: discover.ShardValid, N: n} }
	for name, test := range map[string]struct {
		shards    []discover.ShardValue
		inCluster bool
		replicas  int
		want      int
	}{
		"all have a shard":               {[]discover.ShardValue{shard(0), shard(3), shard(1)}, false, 0, 4},
		"and an in-cluster":              {[]discover.ShardValue{shard(0), shard(3), shard(1)}, true, 0, 4},
		"one has none":                   {[]discover.ShardValue{shard(0), {}, shard(1)}, true, 0, 16},
		"a shard is beyond the env":      {[]discover.ShardValue{shard(0), shard(40)}, true, 0, 16},
		"no Secret":                      {nil, false, 0, 16},
		"replicas run, whatever is said": {[]discover.ShardValue{shard(0)}, true, 5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			in := input.Inputs{Now: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)}
			in.Workload = discover.Workload{Replicas: test.replicas, EnvReplicas: ptr.To("16")}
			in.Discovered.InClusterEnabled = test.inCluster
			for i, s := range test.shards {
				name := string(rune('a' + i))
				secret := discover.Secret{Name: name, UID: name, Server: "https://" + name, Shard: s, HasData: true}
				in.Discovered.Secrets = append(in.Discovered.Secrets, secret)
			}
			if got := FirstPlan(in).Replicas; got != test.want {
				t.Errorf("%d replicas, want %d", got, test.want)
			}
		})
	}
}
