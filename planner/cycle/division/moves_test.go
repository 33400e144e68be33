package division

import (
	"slices"
	"testing"

	"ballast/planner/cycle/outcome"
	"ballast/planner/partition/sticky"
)

// Each reason of the partition has one of a move, but for an arrival, which is none.
func TestThePartitionsReasonsAreThoseOfMoves(t *testing.T) {
	all := []sticky.Why{sticky.Gone, sticky.Pinned, sticky.Apart, sticky.Capped, sticky.Starved, sticky.Overload, sticky.MadeRoom, sticky.Filled, sticky.Drained}
	for _, why := range all {
		if got := reasons[why]; got != outcome.MoveReason(why) || !slices.Contains(outcome.MoveReasons(), got) {
			t.Errorf("%s is told as %q", why, got)
		}
	}
	if len(reasons) != len(all) || reasons[sticky.Arrived] != "" {
		t.Errorf("%v", reasons)
	}
}
