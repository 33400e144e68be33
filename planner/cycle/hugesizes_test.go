package cycle

import (
	"encoding/json"
	"math"
	"testing"

	"ballast/planner/plan"
)

// TestNoFiguresEndWhatIsToldOfSizes: whoever answers the planner may say of several clusters what no sum can hold.
func TestNoFiguresEndWhatIsToldOfSizes(t *testing.T) {
	w := sizedWorld(math.MaxFloat64, math.MaxFloat64, 1)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 0, "c002": 1}
	w.run(5)
	for what, v := range map[string]any{"outcome": w.last, "memory": w.last.Memory} {
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("the %s: %v", what, err)
		}
	}
	t.Logf("%v", w.memories())
}
