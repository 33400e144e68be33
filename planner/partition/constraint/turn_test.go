package constraint

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/partition"
)

// TestWhoeverHasFewNeighboursIsSeatedInTurn: of groups that overlap as they like, where each item that comes has fewer neighbours
// among those before it than there are replicas. No search is needed for that.
func TestWhoeverHasFewNeighboursIsSeatedInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(2, 6).Draw(t, "replicas")
		p := Question{Bounds: partition.Bounds{MaxReplicas: replicas}, Replicas: replicas}
		groups := make([][]int, rapid.IntRange(1, 12).Draw(t, "groups"))
		for i := range rapid.IntRange(1, 40).Draw(t, "items") {
			p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%02d", i), Clusters: 1, Replica: partition.Free})
			p.Now = append(p.Now, rapid.IntRange(0, replicas-1).Draw(t, "stands"))
			beside := map[int]bool{}
			for _, g := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(groups)-1), 0, min(3, len(groups)), rapid.ID).Draw(t, "joins") {
				others := map[int]bool{}
				for k := range beside {
					others[k] = true
				}
				for _, k := range groups[g] {
					others[k] = true
				}
				if len(others) < replicas {
					beside, groups[g] = others, append(groups[g], i)
				}
			}
		}
		for g, items := range groups {
			p.Apart = append(p.Apart, Group{Name: fmt.Sprintf("g%02d", g), Items: items})
		}
		s, err := p.Check()
		if err != nil {
			t.Fatal(err)
		}
		r := s.hall().round(nil)
		if !r.inTurn(slices.Collect(func(yield func(int) bool) {
			for k := range r.items {
				if !yield(k) {
					return
				}
			}
		})) {
			t.Fatal("not all are seated")
		}
		for k, at := range r.at {
			if at < 0 || at >= replicas || r.beside(k, at) {
				t.Fatalf("%s is on %d, beside another one of its group", r.ids[k], at)
			}
		}
	})
}
