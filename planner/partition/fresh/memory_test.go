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

// TestAFreshPlanKeepsToTheMemory: what is dealt anew, by first fit of what takes the most, is within the memory wherever there are
// replicas enough for each item to have one; and a replica that has more than one item never lacks any.
func TestAFreshPlanKeepsToTheMemory(t *testing.T) {
	for name, plan := range map[string]planner{"all": fresh.Plan, "best fit": fresh.ByBestFit, "first fit": fresh.ByFirstFit} {
		t.Run(name, func(t *testing.T) { keepsToTheMemory(t, plan) })
	}
}

func keepsToTheMemory(t *testing.T, by planner) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "items")
		p := constraint.Question{Replicas: rapid.IntRange(1, 6).Draw(t, "replicas"), Now: make([]int, n),
			Bounds: partition.Bounds{MaxReplicas: n, Capacity: 100, Memory: 100}}
		for i := range n {
			p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free,
				Load: plan.Load(rapid.Int64Range(0, 60).Draw(t, "load")), Memory: plan.Bytes(rapid.Int64Range(0, 130).Draw(t, "memory"))})
			p.Now[i] = rapid.IntRange(-1, p.Replicas-1).Draw(t, "now")
		}
		got, err := by(p, fresh.Options{})
		if err != nil {
			t.Fatal(err)
		}
		memory, units := make([]plan.Bytes, got.Replicas), make([]int, got.Replicas)
		for i, r := range got.Of {
			memory[r] += p.Items[i].Memory
			units[r]++
		}
		for r := range memory {
			if units[r] > 1 && memory[r] > p.Bounds.Memory {
				t.Fatalf("replica %d has %d items that take %d of %d", r, units[r], memory[r], p.Bounds.Memory)
			}
			if got.Memory[r] != memory[r] {
				t.Fatalf("replica %d takes %d, and it says %d", r, memory[r], got.Memory[r])
			}
		}
	})
}
