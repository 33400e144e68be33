package draft_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

// begun is a draft with what stands in it.
func begun(t interface{ Fatal(...any) }, q constraint.Question) *draft.Draft {
	c, err := q.Check()
	if err != nil {
		t.Fatal(err)
	}
	o, err := draft.Options{}.Complete(len(q.Items))
	if err != nil {
		t.Fatal(err)
	}
	d := draft.New(&c, o)
	d.Stand()
	return d
}

// seen is all that others see of a draft's replicas and items.
func seen(d *draft.Draft) map[string]any {
	members, receive := [][]int32{}, [][]int32{}
	for r := range d.N {
		members, receive = append(members, slices.Clone(d.Members(r))), append(receive, d.Receivers(r))
	}
	return map[string]any{"of": slices.Clone(d.Of), "why": maps.Clone(d.Why), "load": slices.Clone(d.Load), "memory": slices.Clone(d.Memory),
		"clusters": slices.Clone(d.Clusters), "units": slices.Clone(d.Units), "bears": slices.Clone(d.Bears),
		"members": members, "receivers": receive}
}

func TestUndoLeavesNothingOfWhatWasMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const replicas = 4
		bounds := partition.Bounds{MaxReplicas: replicas, MinReplicas: replicas, Capacity: 100, Memory: 50}
		q := constraint.Question{Bounds: bounds, Replicas: replicas}
		for i := range rapid.IntRange(1, 12).Draw(t, "items") {
			q.Items = append(q.Items, partition.Item{ID: fmt.Sprintf("c%02d", i), Replica: partition.Free,
				Clusters: rapid.IntRange(1, 3).Draw(t, "clusters"), Load: plan.Load(rapid.IntRange(0, 30).Draw(t, "load")),
				Memory: plan.Bytes(rapid.IntRange(0, 20).Draw(t, "memory"))})
			q.Now = append(q.Now, rapid.IntRange(0, replicas-1).Draw(t, "now"))
		}
		d := begun(t, q)
		shift := func() {
			for range rapid.IntRange(0, 10).Draw(t, "moves") {
				item, to := rapid.IntRange(0, len(q.Items)-1).Draw(t, "item"), rapid.IntRange(plan.NoReplica, replicas-1).Draw(t, "to")
				if to != d.Of[item] {
					d.Shift(item, to, rapid.SampledFrom([]draft.Why{draft.Overload, draft.Filled}).Draw(t, "why"))
				}
			}
		}
		shift()
		mark, before := d.Mark(), seen(d)
		shift()
		d.Undo(mark)
		if diff := cmp.Diff(before, seen(d)); diff != "" {
			t.Errorf("before and after it was undone (-want +got):\n%s", diff)
		}
		if least, first := d.Receivers(plan.NoReplica)[0], d.Receiving()[0]; first != least {
			t.Errorf("replica %d is the first to receive, and %d is the least loaded", first, least)
		}
	})
}

// A closed replica is not opened to receive: the next one is, as long as there may be one.
func TestAnotherReplicaReceives(t *testing.T) {
	q := constraint.Question{Bounds: partition.Bounds{MaxReplicas: 4, Capacity: 100}, Replicas: 1, Closed: []bool{false, true, false}}
	d := begun(t, q)
	var got []int
	for range 3 {
		got = append(got, d.Another())
	}
	if diff := cmp.Diff([]int{2, 3, plan.NoReplica}, got); diff != "" {
		t.Errorf("what was opened (-want +got):\n%s", diff)
	}
}
