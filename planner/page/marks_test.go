package page

import (
	"slices"
	"testing"

	"ballast/planner/plan"
)

// TestWhatIsPinnedOrMovesHasAMarkBesideItsColour: a pattern over the box, or a dashed edge by its class, each its own.
func TestWhatIsPinnedOrMovesHasAMarkBesideItsColour(t *testing.T) {
	of := func(kind int) item { return item{name: "a", load: plan.LoadOf("1"), kind: kind, says: "a"} }
	s := drawStack("s", "t", [][]item{{of(boxPlain), of(boxPinned), of(boxLeaving), of(boxCame), of(boxArriving)}}, 0, "")
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
	light := drawStack("s", "t", [][]item{{of(boxPlain), {name: "b", load: 1, kind: boxPinned, says: "b"}}}, 0, "")
	if last := light.Columns[0].Boxes[1]; last.Over != "bars" || last.H != px(leastMark) {
		t.Errorf("a pinned cluster without a load to speak of is drawn as %+v", last)
	}
}
