package index

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/normalize"
	"ballast/planner/plan"
)

func TestBytesAreWeighted(t *testing.T) {
	cols := []normalize.Column{{ID: "apps", Values: []float64{1, 0, 3}}, {ID: "objects", Values: []float64{100, 0, 0.5}}, {ID: "other", Values: []float64{9, 9, 9}}}
	got, err := Bytes(cols, map[string]float64{"apps": 1000, "objects": 2048})
	if diff := cmp.Diff([]plan.Bytes{205800, 0, 4024}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, test := range map[string]struct {
		cols    []normalize.Column
		weights map[string]float64
		want    string
	}{
		"no such metric": {cols, map[string]float64{"pods": 1}, `adding up memory by metric "pods": it has a weight but no values: poll it, or remove its weight`},
		"below 0":        {cols, map[string]float64{"apps": -1}, `adding up memory by metric "apps": its weight is -1, and a weight is a finite number of 0 or more`},
		"too much":       {cols, map[string]float64{"apps": 1e19}, `adding up the memory of cluster 1 of 3, mostly by metric "apps": memory of 1e+19 bytes: it is between 0 and 2^63`},
		"all too much":   {cols, map[string]float64{"other": 1e18}, `adding up the memory of 3 clusters: it is beyond 2^63`},
	} {
		if _, err := Bytes(test.cols, test.weights); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func FuzzBytes(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0)
	f.Add(math.MaxFloat64, 1e300, 0.0, math.Inf(1))
	f.Fuzz(func(t *testing.T, a, b, wa, wb float64) {
		cols := []normalize.Column{{ID: "a", Values: []float64{a, b}}, {ID: "b", Values: []float64{b, a}}}
		got, err := Bytes(cols, map[string]float64{"a": wa, "b": wb})
		if err == nil && (len(got) != 2 || got[0] < 0 || got[1] < 0) {
			t.Fatalf("%v", got)
		}
	})
}

func TestMoreOfAMetricIsNoLessMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, more := rapid.Float64Range(0, 1e6).Draw(t, "value"), rapid.Float64Range(0, 1e6).Draw(t, "more")
		weight := rapid.Float64Range(0, 1e6).Draw(t, "weight")
		got, err := Bytes([]normalize.Column{{ID: "a", Values: []float64{value, value + more}}}, map[string]float64{"a": weight})
		if err != nil || got[1] < got[0] {
			t.Fatalf("%v, %v", got, err)
		}
	})
}
