package sharding

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"ballast/planner/discover"
	"ballast/planner/plan"

	"github.com/google/go-cmp/cmp"
)

// vector is a fleet with Argo CD's own answers; e2e/argocd/vectors writes them.
type vector struct {
	Seed    uint64 `json:"seed"`
	Secrets []struct {
		UID, Name, Server string
		Shard             *string
		Skip              bool
	} `json:"secrets"`
	Implicit bool                  `json:"implicit"`
	Apps     map[string]int        `json:"apps"`
	Owners   map[Algorithm][][]int `json:"owners"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	file, err := os.Open("testdata/owners.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.NewDecoder(unzipped).Decode(&vs); err != nil {
		t.Fatal(err)
	}
	if len(vs) != 21 {
		t.Fatalf("%d fleets, want 21", len(vs))
	}
	return vs
}

func (v vector) fleet(t *testing.T) []discover.Cluster {
	in := discover.Input{InClusterEnabled: v.Implicit}
	for _, s := range v.Secrets {
		if s.Server == plan.InClusterServer || s.Server == plan.InClusterServer+"/" {
			in.InClusterEnabled = true
		}
		secret := discover.Secret{UID: s.UID, Name: s.Name, Cluster: s.Name, Server: s.Server, HasData: true, SkipReconcile: s.Skip}
		if s.Shard != nil {
			secret.Shard = discover.ParseShard([]byte(*s.Shard))
		}
		in.Secrets = append(in.Secrets, secret)
	}
	fleet, _, err := discover.Discover(in, discover.Known{}, discover.Options{MaxShrink: 0.5}, time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Clusters
}

// want are Argo CD's answers by Secret name; that skip-reconcile leaves a cluster to nobody is newer than the vectors.
func (v vector) want(owners []int) map[string]int {
	want := map[string]int{}
	for i, s := range v.Secrets {
		want[s.Name] = max(owners[i], plan.NoReplica)
		if s.Skip {
			want[s.Name] = plan.NoReplica
		}
	}
	if v.Implicit {
		want[discover.ImplicitID] = owners[len(v.Secrets)]
	}
	return want
}

func cluster(name string, edit ...func(*discover.Cluster)) discover.Cluster {
	c := discover.Cluster{Shard: plan.Shard{UID: "uid-" + name, ID: name, Server: "https://" + name}}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func TestOwnersAreArgoCDsOwn(t *testing.T) {
	for _, v := range vectors(t) {
		clusters := v.fleet(t)
		for _, algorithm := range []Algorithm{Legacy, RoundRobin, ConsistentHashing} {
			if len(v.Owners[algorithm]) != 9 {
				t.Fatalf("fleet %d: %s is answered for %d counts of replicas, want 9", v.Seed, algorithm, len(v.Owners[algorithm]))
			}
			for i, owners := range v.Owners[algorithm] {
				got := map[string]int{}
				for c, owner := range Owners(clusters, algorithm, i+1, v.Apps) {
					got[clusters[c].Shard.ID] = owner
				}
				if diff := cmp.Diff(v.want(owners), got); diff != "" {
					t.Fatalf("fleet %d of %d Secrets, %s, %d replicas (-want +got):\n%s", v.Seed, len(v.Secrets), algorithm, i+1, diff)
				}
				if v.Implicit {
					if got := InClusterOwner(algorithm, i+1); got != owners[len(v.Secrets)] {
						t.Errorf("fleet %d, %s, %d replicas: implicit in-cluster on %d, want %d", v.Seed, algorithm, i+1, got, owners[len(v.Secrets)])
					}
				}
			}
		}
	}
}

// As measured on running controllers: facts/argocd.md, ownership 6.
func TestTheImplicitInClusterUnderConsistentHashing(t *testing.T) {
	want := map[int]int{1: 0, 2: 1, 3: 1, 4: 3, 5: 3, 6: 3, 7: 3, 8: 3}
	got := map[int]int{}
	for replicas := 1; replicas <= 8; replicas++ {
		got[replicas] = InClusterOwner(ConsistentHashing, replicas)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOwnersOfWhatNoVectorHolds(t *testing.T) {
	shared := []discover.Cluster{cluster("a"), cluster("b", func(c *discover.Cluster) { c.Shard.Server = "https://a" })}
	skipped := []discover.Cluster{cluster("a", func(c *discover.Cluster) {
		c.Skip, c.Explicit = true, discover.ShardValue{State: discover.ShardValid, N: 1}
	}), cluster("b")}
	tests := map[string]struct {
		clusters []discover.Cluster
		replicas int
		want     []int
	}{
		"one URL has one owner, and takes one rank":  {clusters: append(shared, cluster("c")), replicas: 2, want: []int{0, 0, 1}},
		"skip-reconcile is nobody's, with its rank":  {clusters: skipped, replicas: 2, want: []int{plan.NoReplica, 1}},
		"no replicas at all are one that owns all":   {clusters: []discover.Cluster{cluster("a"), cluster("b")}, replicas: 0, want: []int{0, 0}},
		"an empty fleet has no owners":               {replicas: 3, want: []int{}},
		"a negative shard is nobody's, alone or not": {clusters: []discover.Cluster{cluster("a", func(c *discover.Cluster) { c.Explicit.State = discover.ShardNegative })}, replicas: 1, want: []int{plan.NoReplica}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Owners(test.clusters, RoundRobin, test.replicas, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAlgorithmOf(t *testing.T) {
	for name, want := range map[string]Algorithm{"": Legacy, "legacy": Legacy, "round-robin": RoundRobin, "consistent-hashing": ConsistentHashing, "magic": Legacy} {
		if got := AlgorithmOf(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}

func BenchmarkOwners(b *testing.B) {
	clusters := make([]discover.Cluster, 10_000)
	for i := range clusters {
		clusters[i] = cluster(fmt.Sprintf("c%05d", i))
	}
	for _, a := range []Algorithm{Legacy, RoundRobin, ConsistentHashing} {
		b.Run(string(a), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Owners(clusters, a, 16, nil)
			}
		})
	}
}
