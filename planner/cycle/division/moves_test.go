package division

import (
	"slices"
	"testing"

	"ballast/planner/cycle/outcome"
	"ballast/planner/partition/sticky/draft"
)

// Each reason of the partition has one of a move, but for an arrival, which is none.
func TestThePartitionsReasonsAreThoseOfMoves(t *testing.T) {
	all := []draft.Why{draft.Gone, draft.Pinned, draft.Apart, draft.Capped, draft.Starved, draft.Overload, draft.MadeRoom, draft.Filled, draft.Drained}
	for _, why := range all {
		if got := reasons[why]; got != outcome.MoveReason(why) || !slices.Contains(outcome.MoveReasons(), got) {
			t.Errorf("%s is told as %q", why, got)
		}
	}
	if len(reasons) != len(all) || reasons[draft.Arrived] != "" {
		t.Errorf("%v", reasons)
	}
}
