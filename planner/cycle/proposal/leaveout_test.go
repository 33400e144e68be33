package proposal

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/evaluate"
)

// Of a division without some of its receivers every replica has what was decided for it, or nothing that it had not before.
func TestWhatIsLeftOutBreaksNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(2, 6).Draw(t, "replicas")
		before, of := map[string]int{}, map[string]int{}
		var moves []outcome.Move
		for i := range rapid.IntRange(1, 20).Draw(t, "clusters") {
			name := fmt.Sprintf("c%02d", i)
			before[name] = rapid.IntRange(0, replicas-1).Draw(t, "from")
			of[name] = rapid.IntRange(0, replicas-1).Draw(t, "to")
			if before[name] != of[name] {
				moves = append(moves, outcome.Move{Cluster: name, From: before[name], To: of[name]})
			}
		}
		full := map[int]string{}
		for _, replica := range rapid.SliceOfDistinct(rapid.IntRange(0, replicas-1), rapid.ID).Draw(t, "full") {
			full[replica] = "full"
		}
		kept, left := leaveOut(of, moves, full)
		for replica := range replicas {
			was, wanted, is := on(before, replica), on(of, replica), on(kept, replica)
			more := slices.ContainsFunc(is, func(name string) bool { return !slices.Contains(was, name) })
			if _, no := full[replica]; no && more {
				t.Fatalf("replica %d is full, had %v and has %v", replica, was, is)
			}
			if more && !slices.Equal(wanted, is) {
				t.Fatalf("replica %d had %v, was to have %v and has %v", replica, was, wanted, is)
			}
		}
		if len(left) == 0 && !maps.Equal(of, kept) {
			t.Fatalf("%v instead of %v", kept, of)
		}
	})
}

func on(of map[string]int, replica int) (names []string) {
	for name, at := range of {
		if at == replica {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A replica whose clusters stay where they are has spent nothing.
func TestWhatIsLeftOutSpendsNothing(t *testing.T) {
	all := map[int]evaluate.Offer{0: {Saves: 3, Costs: 2}, 1: {Saves: 5, Costs: 4}}
	got := snapshot.Worth{Said: "saves", Spends: all, Saved: 8}.Of([]outcome.Move{{Cluster: "a", From: 1, To: 2}})
	want := snapshot.Worth{Said: "saves", Spends: map[int]evaluate.Offer{1: {Saves: 5, Costs: 4}}, Saved: 8}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(snapshot.Worth{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
