package standing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

func TestHomesSayWhereArgoCDHasAClusterWithoutARow(t *testing.T) {
	shard := func(n int) discover.ShardValue { return discover.ShardValue{State: discover.ShardValid, N: n} }
	secret := func(name string, v discover.ShardValue) discover.Secret {
		return discover.Secret{UID: name, Name: name, Cluster: name, Server: "https://" + name, Shard: v, HasData: true}
	}
	lab := secret("lab", shard(2))
	lab.Unmanaged = true
	skipped := lab
	skipped.SkipReconcile = true
	other := secret("lab-too", shard(1))
	other.Server = lab.Server
	four := "4"
	w := discover.Workload{Kind: plan.StatefulSet, Replicas: 4, EnvReplicas: &four}
	type where struct {
		At      []int
		Unknown bool
	}
	for name, test := range map[string]struct {
		in   discover.Input
		want map[string]where
	}{
		"an opted-out Secret is where its shard says": {discover.Input{Secrets: []discover.Secret{lab}}, map[string]where{"lab": {At: []int{2}}}},
		"a shard beyond the replicas is shard 0":      {discover.Input{Secrets: []discover.Secret{secret("lab", shard(4))}}, map[string]where{"lab": {At: []int{0}}}},
		"without a shard the algorithm says":          {discover.Input{Secrets: []discover.Secret{secret("lab", discover.ShardValue{})}, Algorithm: "round-robin"}, map[string]where{"lab": {At: []int{0}}}},
		"which may weigh Applications":                {discover.Input{Secrets: []discover.Secret{secret("lab", discover.ShardValue{})}, Algorithm: "consistent-hashing"}, map[string]where{"lab": {Unknown: true}}},
		"a shard counts there, too":                   {discover.Input{Secrets: []discover.Secret{lab}, Algorithm: "consistent-hashing"}, map[string]where{"lab": {At: []int{2}}}},
		"a negative shard is nobody's":                {discover.Input{Secrets: []discover.Secret{secret("lab", discover.ShardValue{State: discover.ShardNegative})}}, map[string]where{"lab": {}}},
		"what Argo CD skips is nobody's":              {discover.Input{Secrets: []discover.Secret{skipped}}, map[string]where{"lab": {}}},
		"two Secrets of one server may both count":    {discover.Input{Secrets: []discover.Secret{lab, other}}, map[string]where{"lab": {At: []int{1, 2}}, "lab-too": {At: []int{1, 2}}}},
		"an implicit in-cluster is on replica 0":      {discover.Input{InClusterEnabled: true}, map[string]where{"in-cluster": {At: []int{0}}}},
		"or where the ring has it":                    {discover.Input{InClusterEnabled: true, Algorithm: "consistent-hashing"}, map[string]where{"in-cluster": {At: []int{sharding.InClusterOwner(sharding.ConsistentHashing, 4)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]where{}
			for _, h := range Homes(test.in, w) {
				got[h.Cluster.Shard.ID] = where{h.At, h.Unknown}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
