package partition_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// seed is argocd-autoscaler's rule as facts/peer.md tells it, flaws included: the yardstick. Capacity is the heaviest
// load, the comparison is strict, equal loads come in any order, every replica is looked at for every cluster.
// inCluster, where it is found, is on replica 0 before all others.
func seed(loads map[string]plan.Load, inCluster string) map[string]int {
	var names []string
	var capacity plan.Load
	for name, l := range loads {
		names = append(names, name)
		capacity = max(capacity, l)
	}
	of := make(map[string]int, len(loads))
	var replicas []plan.Load
	if at, found := slices.BinarySearch(names, inCluster); found {
		of[inCluster], replicas = 0, append(replicas, loads[inCluster])
		names = slices.Delete(names, at, at+1)
	}
	sort.Slice(names, func(i, j int) bool { return loads[names[i]] > loads[names[j]] })
	for _, name := range names {
		best := -1
		for r, l := range replicas {
			if l+loads[name] < capacity && (best < 0 || l < replicas[best]) {
				best = r
			}
		}
		if best < 0 {
			best, replicas = len(replicas), append(replicas, 0)
		}
		replicas[best] += loads[name]
		of[name] = best
	}
	return of
}

// seedCapped is the same with at most so many clusters a replica, and in-cluster on replica 0 always, as it was meant: the seed finds
// it by a search of an unsorted list.
func seedCapped(loads map[string]plan.Load, inCluster string, most int) map[string]int {
	var names []string
	var capacity plan.Load
	for name, l := range loads {
		names, capacity = append(names, name), max(capacity, l)
	}
	sort.Slice(names, func(i, j int) bool {
		return names[j] != inCluster && (names[i] == inCluster || loads[names[i]] > loads[names[j]])
	})
	of := make(map[string]int, len(loads))
	var replicas []plan.Load
	var clusters []int
	for _, name := range names {
		best := -1
		for r, l := range replicas {
			fits := l+loads[name] < capacity && (most == 0 || clusters[r] < most)
			if fits && (best < 0 || l < replicas[best]) {
				best = r
			}
		}
		if best < 0 {
			best, replicas, clusters = len(replicas), append(replicas, 0), append(clusters, 0)
		}
		replicas[best], clusters[best], of[name] = replicas[best]+loads[name], clusters[best]+1, best
	}
	return of
}

func count(of map[string]int) int {
	n := 0
	for _, r := range of {
		n = max(n, r+1)
	}
	return n
}

// items are free clusters of these loads, named in their order.
func items(loads ...plan.Load) []partition.Item {
	out := make([]partition.Item, len(loads))
	for i, l := range loads {
		out[i] = partition.Item{ID: fmt.Sprintf("c%05d", i), Load: l, Clusters: 1, Replica: partition.Free}
	}
	return out
}

func byName(in []partition.Item) map[string]plan.Load {
	out := make(map[string]plan.Load, len(in))
	for _, it := range in {
		out[it.ID] = it.Load
	}
	return out
}

func placed(p partition.Partition, in []partition.Item) map[string]int {
	out := make(map[string]int, len(in))
	for i, it := range in {
		out[it.ID] = p.Of[i]
	}
	return out
}

func lpt(t testing.TB, in []partition.Item, b partition.Bounds) partition.Partition {
	t.Helper()
	p, err := partition.LPT(in, b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var unbounded = partition.Bounds{MaxReplicas: 1 << 20}

// Loads of 50 random bits: no two sums of them are equal, short of a miracle.
func TestWithoutTiesThePlanIsTheSeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		sigma := rapid.SampledFrom([]float64{0.1, 1, 2}).Draw(t, "sigma")
		loads := make([]plan.Load, rapid.IntRange(1, 200).Draw(t, "clusters"))
		for i := range loads {
			loads[i] = plan.Load(math.Exp(sigma*r.NormFloat64())*float64(1<<45)) + plan.Load(r.Int64N(1<<40))
		}
		in := items(loads...)
		p, err := partition.LPT(in, unbounded)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(seed(byName(in), ""), placed(p, in)); d != "" {
			t.Fatalf("(-seed +ours)\n%s", d)
		}
	})
}

// With in-cluster on replica 0, and a cap of clusters, too: cluster for cluster the seed's.
func TestWithInClusterAndACapThePlanIsTheSeeds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2026))
		sigma, most := []float64{0.1, 1, 2}[seed%3], []int{0, 1, 3, 8}[seed%4]
		loads := make([]plan.Load, 1+r.IntN(200))
		for i := range loads {
			loads[i] = plan.Load(math.Exp(sigma*r.NormFloat64())*float64(1<<45)) + plan.Load(r.Int64N(1<<40))
		}
		in, inCluster := items(loads...), ""
		if seed%5 > 0 {
			own := r.IntN(len(in))
			inCluster, in[own].Replica = in[own].ID, 0
		}
		b := unbounded
		b.MaxClusters = most
		p := lpt(t, in, b)
		if d := cmp.Diff(seedCapped(byName(in), inCluster, most), placed(p, in)); d != "" {
			t.Fatalf("seed %d, at most %d clusters, in-cluster %q (-seed +ours)\n%s", seed, most, inCluster, d)
		}
	}
}

func TestNeverMoreReplicasThanTheSeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{3, 12, 40, 1 << 40}).Draw(t, "largest")
		loads := rapid.SliceOfN(rapid.Int64Range(0, most), 1, 60).Draw(t, "loads")
		in := items(toLoads(loads)...)
		p, err := partition.LPT(in, unbounded)
		if err != nil {
			t.Fatal(err)
		}
		if s := count(seed(byName(in), "")); p.Replicas > s {
			t.Fatalf("%d replicas where the seed takes %d", p.Replicas, s)
		}
	})
}

// Packing in descending order has anomalies: a little more capacity (`<=` for `<`) can take one replica more. This
// instance is the one found in 1.5 million with exact fits.
func TestAnExactFitThatCostsAReplicaIsNotTaken(t *testing.T) {
	in := items(22, 6, 17, 5, 11, 28, 9, 5, 23, 31, 6, 3, 5, 8, 22, 23, 31, 32, 15, 1)
	if s := count(seed(byName(in), "")); s != 10 {
		t.Fatalf("the seed takes %d replicas, want 10: the instance is another", s)
	}
	if p := lpt(t, in, unbounded); p.Replicas != 10 {
		t.Errorf("%d replicas, want the seed's 10", p.Replicas)
	}
}

func toLoads(in []int64) []plan.Load {
	out := make([]plan.Load, len(in))
	for i, l := range in {
		out[i] = plan.Load(l)
	}
	return out
}
