package partition

import (
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestTheHeapIsOrderedWhateverIsTakenOutOfItsMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap
		for i := range rapid.IntRange(1, 40).Draw(t, "bins") {
			h.push(bin{load: plan.Load(rapid.IntRange(0, 30).Draw(t, "load")), replica: int32(i)})
		}
		for len(h) > 0 {
			at := rapid.IntRange(0, len(h)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "grows") {
				h[at].load += plan.Load(rapid.IntRange(0, 9).Draw(t, "by"))
				h.down(at)
			}
			want := h[at]
			if got := h.remove(at); got != want {
				t.Fatalf("removed %v, want %v", got, want)
			}
			for i := 1; i < len(h); i++ {
				if parent := (i - 1) / 2; h[i].less(h[parent]) {
					t.Fatalf("%v at %d is below %v", h[i], i, h[parent])
				}
			}
		}
	})
}
