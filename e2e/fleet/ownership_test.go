package fleet

import (
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

// What facts/argocd.md says was measured on real controllers.
func TestOwns(t *testing.T) {
	tests := map[string]struct {
		pod      string
		replicas int
		shard    string
		want     bool
	}{
		"the pod of the explicit shard":        {"c-2", 3, "2", true},
		"another pod":                          {"c-1", 3, "2", false},
		"a shard beyond the replicas is 0":     {"c-0", 3, "3", true},
		"and not the pod of that ordinal":      {"c-3", 3, "3", false},
		"a negative shard is nobody's":         {"c-0", 3, "-1", false},
		"not even with one replica":            {"c-0", 1, "-1", false},
		"one replica owns everything":          {"c-0", 1, "2", true},
		"every pod that believes to be alone":  {"c-1", 1, "2", true},
		"a pod far beyond is a second shard 0": {"c-4", 3, "0", true},
		"a pod just beyond is idle":            {"c-3", 3, "0", false},
		"a shard in words is none: the hash":   {"c-0", 2, "zero", legacyHash("u")%2 == 0},
		"a shard with a space is none":         {"c-1", 2, " 0", legacyHash("u")%2 == 1},
		"a shard with a sign is a number":      {"c-1", 2, "+1", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := owns(tt.pod, tt.replicas, Secret{UID: "u", Shard: tt.shard}); got != tt.want {
				t.Errorf("owns is %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTheImplicitInClusterIsShard0(t *testing.T) {
	if got := shardOf(Secret{Server: InClusterServer}, 5); got != 0 {
		t.Errorf("shard %d, want 0", got)
	}
}

// Two implementations, one of them proven against Argo CD's own code, must agree.
func TestShardOfAgreesWithBallast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Secret{
			UID: rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(t, "uid"), Name: "c", Server: "https://c",
			Shard: rapid.SampledFrom([]string{"", "0", "1", "2", "7", "-1", "+1", "abc", " 1", "0x1"}).Draw(t, "shard"),
			Skip:  rapid.Bool().Draw(t, "skip"),
		}
		replicas := rapid.IntRange(1, 6).Draw(t, "replicas")
		theirs := sharding.Owners([]discover.Cluster{{
			Shard:    plan.Shard{UID: s.UID, ID: s.Name, Server: s.Server},
			Explicit: discover.ParseShard([]byte(s.Shard)), Skip: s.Skip,
		}}, sharding.Legacy, replicas, nil)
		if got := shardOf(s, replicas); got != theirs[0] {
			t.Errorf("shard %d here, %d in ballast, for %+v and %d replicas", got, theirs[0], s, replicas)
		}
	})
}
