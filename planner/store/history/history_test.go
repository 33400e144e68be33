package history

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func revisions(plans []Record) []int64 {
	var list []int64
	for _, r := range plans {
		list = append(list, r.Revision)
	}
	return list
}

// TestThePlanThatAPersonAskedForStays however many plans the way back takes, also where the history is full or somebody else
// wrote it meanwhile.
func TestThePlanThatAPersonAskedForStays(t *testing.T) {
	h := Content{Asked: 2}
	for revision := range int64(40) {
		h = h.With(record(t, revision+1, fmt.Sprintf("c%d", revision)))
	}
	want := []int64{40, 39, 38, 37, 36, 35, 34, 33, 32, 2}
	if diff := cmp.Diff(want, revisions(h.Plans)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := Content{}
	for revision := int64(21); revision <= 41; revision++ {
		other = other.With(record(t, revision, "other", fmt.Sprintf("c%d", revision)))
	}
	over := h.Over(other)
	if diff := cmp.Diff([]int64{41, 40, 39, 38, 37, 36, 35, 34, 33, 2}, revisions(over.Plans)); diff != "" || over.Asked != 2 {
		t.Errorf("over another one, asked for %d (-want +got):\n%s", over.Asked, diff)
	}
	h.Parts = map[string][]byte{"votes": noise(maxHistory - 1600)}
	_, dropped := encoded(t, h)
	if n := len(dropped.Plans); n == 0 || n > 8 || slices.Contains(dropped.Plans, 2) || dropped.Plans[0] != 32 {
		t.Errorf("of a full history %v are dropped, want some from 32 on", dropped.Plans)
	}
	h.Asked = 0
	if h = h.With(record(t, 42, "last")); slices.Contains(revisions(h.Plans), 2) {
		t.Errorf("nobody asks for revision 2 any more: %v", revisions(h.Plans))
	}
}

// TestAPlanThatEnforcesWhatItsPredecessorDidIsNoOtherState: a rollout that ended where it began would push out one that is.
func TestAPlanThatEnforcesWhatItsPredecessorDidIsNoOtherState(t *testing.T) {
	h := Content{}
	add := func(r Record) { h = h.With(r) }
	add(record(t, 1, "a"))
	add(record(t, 2, "a", "b"))
	for revision := int64(3); revision < 33; revision += 2 {
		add(underWay(t, revision))
		add(record(t, revision+1, "a", "b")) // ended where it began
		if got := revisions(h.Plans); !slices.Equal(got, []int64{revision + 1, 2, 1}) {
			t.Fatalf("after revision %d: %v", revision+1, got)
		}
	}
	if h.Floor() != 32 {
		t.Errorf("the highest revision is %d, want 32", h.Floor())
	}
	h.Asked = 32
	add(record(t, 33, "c"))
	h.Asked = 0
	add(record(t, 34, "a", "b")) // as an earlier one, but not its predecessor
	add(record(t, 35, "d"))
	if diff := cmp.Diff([]int64{35, 34, 33, 32, 2, 1}, revisions(h.Plans)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
