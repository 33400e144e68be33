package peer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWeightsThatAreSharesOfOne: HVPA's README writes 0.6 where its API has 60. One fraction says what all of a list are.
func TestWeightsThatAreSharesOfOne(t *testing.T) {
	for _, test := range []struct {
		text string
		want []WeightInterval
	}{
		{`{vpaWeight: 0, startReplicaCount: 1, lastReplicaCount: 3}, {vpaWeight: 0.6, startReplicaCount: 4, lastReplicaCount: 10}`,
			[]WeightInterval{{0, 1, 3}, {60, 4, 10}}},
		{`{vpaWeight: 1, lastReplicaCount: 1}, {vpaWeight: 0.25}`, []WeightInterval{{100, 0, 1}, {25, 0, 0}}},
		{`{vpaWeight: 1}, {vpaWeight: 100}`, []WeightInterval{{1, 0, 0}, {100, 0, 0}}},
		{`{vpaWeight: 60.0}`, []WeightInterval{{60, 0, 0}}},
		{`{}`, []WeightInterval{{0, 0, 0}}},
	} {
		h, err := ReadHVPA([]byte("kind: Hvpa\nspec: {weightBasedScalingIntervals: [" + test.text + "]}\n"))
		if diff := cmp.Diff(test.want, []WeightInterval(h.Spec.Intervals)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.text, err, diff)
		}
	}
	for _, text := range []string{"101", "-1", "100.5", "1.5"} {
		if _, err := ReadHVPA([]byte("kind: Hvpa\nspec: {weightBasedScalingIntervals: [{vpaWeight: " + text + "}]}\n")); err == nil {
			t.Errorf("a weight of %s is read", text)
		}
	}
}
