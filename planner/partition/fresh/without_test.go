package fresh_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/plan"
)

// drawStanding is a plan in force of free items and some pinned ones, each on its replica.
func drawStanding(t *rapid.T, heaviest int64) constraint.Question {
	p := constraint.Question{Replicas: rapid.IntRange(1, 6).Draw(t, "replicas"), Now: []int{}}
	p.Bounds = partition.Bounds{Capacity: 40, MaxReplicas: rapid.IntRange(4, 8).Draw(t, "maxReplicas")}
	p.Bounds.MinReplicas = rapid.IntRange(0, 3).Draw(t, "minReplicas")
	for i := range rapid.IntRange(0, 24).Draw(t, "items") {
		at := rapid.IntRange(0, p.Replicas-1).Draw(t, "on")
		it := partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free}
		it.Load = plan.Load(rapid.Int64Range(0, heaviest).Draw(t, "load"))
		if rapid.IntRange(0, 9).Draw(t, "is pinned") == 0 {
			it.Replica = min(at, p.Bounds.MaxReplicas-1)
		}
		p.Items, p.Now = append(p.Items, it), append(p.Now, at)
	}
	return p
}

func TestAPlanWithoutTheHighestReplicaKeepsEveryRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawStanding(t, 60)
		if rapid.IntRange(0, 3).Draw(t, "is ruled") == 0 {
			p.Closed = []bool{true}
		}
		got, found := fresh.Without(p, fresh.Options{Steps: 20_000})
		if !found {
			return
		}
		n, b := got.Replicas, p.Bounds
		if n != p.Replicas-1 || n != min(max(n, b.MinReplicas), b.MaxReplicas) || p.Closed != nil {
			t.Fatalf("%d replicas of %d, from %d to %d; closed: %v", n, p.Replicas, b.MinReplicas, b.MaxReplicas, p.Closed)
		}
		loads, weigh := make([]plan.Load, got.Replicas), make([]int, got.Replicas)
		pinned := false
		for i, r := range got.Of {
			it := p.Items[i]
			loads[r] += it.Load
			if it.Load > 0 {
				weigh[r]++
			}
			if pinned = pinned || it.Replica == r; it.Replica != partition.Free && it.Replica != r {
				t.Fatalf("%q is on %d, pinned to %d", it.ID, r, it.Replica)
			}
		}
		for r, load := range loads {
			if load != got.Loads[r] || !pinned && weigh[r] > 1 && load > p.Bounds.Capacity {
				t.Fatalf("replica %d of %d items carries %d, and says %d; the capacity is %d", r, weigh[r], load, got.Loads[r], p.Bounds.Capacity)
			}
		}
	})
}

// Where the seed's rule needs one replica less than there are, there is a plan without the highest.
func TestNoPlanKeepsAReplicaThatTheSeedsRuleDoesNotNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawStanding(t, 40)
		for i := range p.Items {
			p.Items[i].Replica = partition.Free
		}
		p.Bounds.MaxReplicas = 8
		lpt, err := partition.LPT(p.Items, p.Bounds)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := fresh.Without(p, fresh.Options{Steps: 20_000}); !found && lpt.Replicas < p.Replicas {
			t.Fatalf("LPT needs %d of %d replicas, and no plan without the highest was found", lpt.Replicas, p.Replicas)
		}
	})
}
