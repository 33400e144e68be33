package partition_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

func drawBounds(t *rapid.T) partition.Bounds {
	most := rapid.IntRange(1, 12).Draw(t, "maxReplicas")
	b := partition.Bounds{
		MaxReplicas: most,
		MinReplicas: rapid.IntRange(0, most).Draw(t, "minReplicas"),
		MaxClusters: rapid.SampledFrom([]int{0, 0, 1, 3, 8}).Draw(t, "maxClusters"),
		Capacity:    plan.Load(rapid.SampledFrom([]int64{0, 0, 5, 30, 100}).Draw(t, "capacity")),
	}
	if rapid.Bool().Draw(t, "is fixed") {
		b.Fixed = rapid.IntRange(1, 14).Draw(t, "fixed")
	}
	return b
}

func drawItems(t *rapid.T, maxReplicas int) []partition.Item {
	in := make([]partition.Item, rapid.IntRange(0, 40).Draw(t, "items"))
	for i := range in {
		in[i] = item(fmt.Sprintf("c%02d", i), plan.Load(rapid.Int64Range(0, 40).Draw(t, "load")))
		if rapid.IntRange(0, 5).Draw(t, "is a unit") == 0 {
			in[i].Clusters = rapid.IntRange(2, 5).Draw(t, "clusters")
		}
		if rapid.IntRange(0, 7).Draw(t, "is pinned") == 0 {
			in[i].Replica = rapid.IntRange(0, maxReplicas-1).Draw(t, "replica")
		}
	}
	return in
}

func TestEveryPartitionKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBounds(t)
		in := drawItems(t, b.MaxReplicas)
		p, err := partition.LPT(in, b)
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, in, p)
		checkCount(t, in, b, p)
		checkCapacity(t, in, b, p)
		checkCap(t, b, p)
		shuffled := rapid.Permutation(in).Draw(t, "order")
		again, err := partition.LPT(shuffled, b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(placed(p, in), placed(again, shuffled)); d != "" {
			t.Fatalf("another order gives another plan\n%s", d)
		}
	})
}

// checkSums: every item is placed once, pins where they are pinned, and loads and clusters add up.
func checkSums(t *rapid.T, in []partition.Item, p partition.Partition) {
	if len(p.Of) != len(in) || len(p.Loads) != p.Replicas || len(p.Clusters) != p.Replicas {
		t.Fatalf("%d items, %d placed; %d replicas, %d loads, %d clusters", len(in), len(p.Of), p.Replicas, len(p.Loads), len(p.Clusters))
	}
	loads, clusters := make([]plan.Load, p.Replicas), make([]int, p.Replicas)
	for i, r := range p.Of {
		if in[i].Replica != partition.Free && in[i].Replica != r {
			t.Fatalf("%q is pinned to %d and placed on %d", in[i].ID, in[i].Replica, r)
		}
		loads[r] += in[i].Load
		clusters[r] += in[i].Clusters
	}
	if d := cmp.Diff(loads, p.Loads) + cmp.Diff(clusters, p.Clusters); d != "" {
		t.Fatalf("loads and clusters (-added up +said)\n%s", d)
	}
}

func checkCount(t *rapid.T, in []partition.Item, b partition.Bounds, p partition.Partition) {
	pinned := 0
	for _, it := range in {
		pinned = max(pinned, it.Replica+1)
	}
	if p.Replicas > b.MaxReplicas || p.Replicas < 1 {
		t.Fatalf("%d replicas within %+v", p.Replicas, b)
	}
	switch {
	case b.Fixed > 0:
		if want := max(min(b.Fixed, b.MaxReplicas), pinned); p.Replicas != want {
			t.Fatalf("%d replicas, want the fixed %d", p.Replicas, want)
		}
	case p.Replicas < b.MinReplicas:
		t.Fatalf("%d replicas within %+v", p.Replicas, b)
	}
}

// checkCapacity: where replicas could still be opened, one above the capacity holds pins only, or one item that is
// heavier itself.
func checkCapacity(t *rapid.T, in []partition.Item, b partition.Bounds, p partition.Partition) {
	if b.Fixed > 0 || p.Replicas == b.MaxReplicas {
		return
	}
	capacity := b.Capacity
	free := make([]int, p.Replicas)
	for i, r := range p.Of {
		if b.Capacity == 0 {
			capacity = max(capacity, in[i].Load)
		}
		if in[i].Replica == partition.Free {
			free[r]++
		}
	}
	for i, r := range p.Of {
		alone := free[r] == 1 && p.Clusters[r] == in[i].Clusters
		if p.Loads[r] > capacity && in[i].Replica == partition.Free && !alone {
			t.Fatalf("replica %d carries %d above the capacity %d with %q on it, though there could be more than %d replicas", r, p.Loads[r], capacity, in[i].ID, p.Replicas)
		}
	}
}

// checkCap: the cap is exceeded exactly where that is reported, and never while replicas could be opened without a
// unit or pin that forces it.
func checkCap(t *rapid.T, b partition.Bounds, p partition.Partition) {
	var reported, over []int
	for _, l := range p.Lost {
		if l.What == partition.MaxClusters {
			reported = append(reported, l.Replica)
			if l.To == partition.MaxReplicas && p.Replicas < b.MaxReplicas && p.Replicas > b.MinReplicas {
				t.Fatalf("%v, with %d replicas of %d", l, p.Replicas, b.MaxReplicas)
			}
		}
	}
	for r, n := range p.Clusters {
		if b.MaxClusters > 0 && n > b.MaxClusters {
			over = append(over, r)
		}
	}
	slices.Sort(reported)
	if d := cmp.Diff(over, reported); d != "" {
		t.Fatalf("replicas above the cap (-are +reported)\n%s", d)
	}
}
