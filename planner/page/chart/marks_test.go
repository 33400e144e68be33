package chart

import (
	"slices"
	"testing"

	"ballast/planner/plan"
)

// TestWhatIsPinnedOrMovesHasAMarkBesideItsColour: a pattern over the box, or a dashed edge by its class, each its own.
func TestWhatIsPinnedOrMovesHasAMarkBesideItsColour(t *testing.T) {
	of := func(kind int) Item { return Item{Name: "a", Load: plan.LoadOf("1"), Kind: kind, Says: "a"} }
	s := DrawStack("s", "t", [][]Item{{of(boxPlain), of(BoxPinned), of(BoxLeaving), of(BoxCame), of(BoxArriving)}}, 0, "")
	var got []string
	for _, b := range s.Columns[0].Boxes {
		got = append(got, b.Class+" "+b.Over)
	}
	if want := []string{"c ", "p bars", "l hatch", "m ", "a "}; !slices.Equal(got, want) {
		t.Errorf("boxes %q, want %q", got, want)
	}
	if !s.Pins || !s.Leaves || !s.Came || !s.Arrives {
		t.Errorf("the legend lacks one of them: %+v", s)
	}
	light := DrawStack("s", "t", [][]Item{{of(boxPlain), {Name: "b", Load: 1, Kind: BoxPinned, Says: "b"}}}, 0, "")
	if last := light.Columns[0].Boxes[1]; last.Over != "bars" || last.H != px(leastMark) {
		t.Errorf("a pinned cluster without a load to speak of is drawn as %+v", last)
	}
}
