package sticky_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// TestAFleetWhoseEveryLoadDoublesNeedsTwiceTheReplicas, from the plan in force: no fewer than carry twice the load at high, and no more
// than carry it filled to low, but for the last item that one has no room for.
func TestAFleetWhoseEveryLoadDoublesNeedsTwiceTheReplicas(t *testing.T) {
	const capacity = plan.Load(10_000)
	rapid.Check(t, func(t *rapid.T) {
		p := constraint.Question{Bounds: partition.Bounds{MaxReplicas: 200, Capacity: capacity}, Replicas: 1}
		var total, heaviest plan.Load
		for i := range rapid.IntRange(60, 200).Draw(t, "items") {
			load := plan.Load(rapid.Int64Range(50, 500).Draw(t, "load"))
			p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%03d", i), Clusters: 1, Replica: partition.Free, Load: load})
			p.Now = append(p.Now, plan.NoReplica)
			total, heaviest = total+load, max(heaviest, load)
		}
		before, err := sticky.Plan(p, sticky.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.Now, p.Replicas = before.Of, before.Replicas
		for i := range p.Items {
			p.Items[i].Load *= 2
		}
		after, err := sticky.Plan(p, sticky.Options{})
		if err != nil {
			t.Fatal(err)
		}
		up := func(load, room plan.Load) int { return int((load + room - 1) / room) }
		least, most := up(2*total, capacity*95/100), up(2*total, capacity*85/100-2*heaviest)
		if n := after.Replicas; n < least || n > most || slices.Max(after.Loads) > capacity*95/100 {
			t.Fatalf("%d replicas became %d, want %d to %d, the fullest with %d of %d",
				before.Replicas, n, least, most, slices.Max(after.Loads), capacity)
		}
		if n, twice := after.Replicas, 2*before.Replicas; n < twice-1 || n > twice+before.Replicas/2+1 {
			t.Fatalf("%d replicas became %d, want about %d", before.Replicas, n, twice)
		}
	})
}
