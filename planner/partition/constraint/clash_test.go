package constraint_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// fleet is so many free items of load 1 without a plan.
func fleet(n int) (items []partition.Item) {
	for i := range n {
		items = append(items, partition.Item{ID: fmt.Sprintf("c%d", i), Load: plan.LoadUnit, Clusters: 1, Replica: partition.Free})
	}
	return items
}

func pinned(items []partition.Item, at map[int]int) []partition.Item {
	for i, r := range at {
		items[i].Replica = r
	}
	return items
}

func TestAClashNamesWhatClashesAndNothingElse(t *testing.T) {
	apart := func(name string, items ...int) constraint.Group { return constraint.Group{Name: name, Items: items} }
	for name, tc := range map[string]struct {
		p    constraint.Question
		want []constraint.Constraint
	}{
		"a group larger than the replicas": {
			constraint.Question{Items: fleet(5), Bounds: partition.Bounds{MaxReplicas: 3},
				Apart: []constraint.Group{apart("fine", 0, 1), apart("large", 1, 2, 3, 4)}},
			[]constraint.Constraint{{Rule: partition.Apart, Group: "large"}, {Rule: partition.MaxReplicas, Count: 3}}},
		"two of a group pinned to one replica": {
			constraint.Question{Items: pinned(fleet(4), map[int]int{0: 1, 1: 1, 2: 1}), Bounds: partition.Bounds{MaxReplicas: 3},
				Apart: []constraint.Group{apart("g", 0, 1, 3)}},
			[]constraint.Constraint{{Rule: partition.Apart, Group: "g"}, {Rule: partition.Pin, Item: "c0", Replica: 1}, {Rule: partition.Pin, Item: "c1", Replica: 1}}},
		"closed replicas leave too few": {
			constraint.Question{Items: fleet(3), Bounds: partition.Bounds{MaxReplicas: 4, Fixed: 4}, Closed: []bool{true, false, true},
				Apart: []constraint.Group{apart("g", 0, 1, 2)}},
			[]constraint.Constraint{{Rule: partition.Apart, Group: "g"}, {Rule: partition.Closed, Replica: 0},
				{Rule: partition.Closed, Replica: 2}, {Rule: partition.FixedReplicas, Count: 4}}},
		"one that is together and apart": {
			constraint.Question{Items: fleet(3), Bounds: partition.Bounds{MaxReplicas: 4}, Apart: []constraint.Group{apart("g", 1, 1)}},
			[]constraint.Constraint{{Rule: partition.SameServer, Item: "c1"}, {Rule: partition.Apart, Group: "g"}}},
		"groups that overlap need one replica more": {
			constraint.Question{Items: fleet(3), Bounds: partition.Bounds{MaxReplicas: 2},
				Apart: []constraint.Group{apart("a", 0, 1), apart("b", 1, 2), apart("c", 2, 0)}},
			[]constraint.Constraint{{Rule: partition.Apart, Group: "a"}, {Rule: partition.Apart, Group: "b"},
				{Rule: partition.Apart, Group: "c"}, {Rule: partition.MaxReplicas, Count: 2}}},
		"everything is closed": {
			constraint.Question{Items: fleet(1), Bounds: partition.Bounds{MaxReplicas: 1}, Closed: []bool{true}},
			[]constraint.Constraint{{Rule: partition.Closed, Replica: 0}, {Rule: partition.MaxReplicas, Count: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.p.Check()
			var clash *constraint.Error
			if !errors.As(err, &clash) {
				t.Fatalf("got %v, want a clash", err)
			}
			if d := cmp.Diff(tc.want, clash.Set); d != "" || clash.Unproven {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestWhatStandsOnAClosedReplicaMayStay(t *testing.T) {
	p := constraint.Question{Items: fleet(2), Bounds: partition.Bounds{MaxReplicas: 2}, Closed: []bool{true}, Now: []int{0, 1}, Replicas: 2,
		Apart: []constraint.Group{{Name: "g", Items: []int{0, 1}}}}
	s, err := p.Check()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]int{0: 0, 1: 1}, s.Seats); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestTheUnitOfLoadsDoesNotMatter(t *testing.T) {
	p := constraint.Question{Items: fleet(3), Bounds: partition.Bounds{MaxReplicas: 2, Capacity: 3 * plan.LoadUnit}}
	s, err := p.Check()
	if err != nil {
		t.Fatal(err)
	}
	if s.Capacity != 3 || s.Total != 3 || s.Loads[0] != 1 {
		t.Errorf("capacity %d, total %d, loads %d", s.Capacity, s.Total, s.Loads)
	}
}
