package size

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAPercentileIsOfOneSampleAnInterval: cycles every five seconds do not make one answer of it outweigh an hour.
func TestAPercentileIsOfOneSampleAnInterval(t *testing.T) {
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		every time.Duration
		after []int // seconds
		want  []float64
	}{
		"one an interval":                    {time.Minute, []int{0, 60, 120}, []float64{0, 60, 120}},
		"a cycle every five seconds":         {time.Minute, []int{0, 5, 10, 55, 60, 65, 119, 120}, []float64{55, 119, 120}},
		"a clock that goes back":             {time.Minute, []int{120, 60, 61}, []float64{61}},
		"every sample, where none is said":   {0, []int{0, 5, 5, 10}, []float64{0, 5, 5, 10}},
		"no more than there are to be":       {time.Minute, []int{0, 60, 120, 180, 240, 245}, []float64{60, 120, 180, 245}},
		"an interval that ends at no minute": {45 * time.Second, []int{0, 45, 90, 100}, []float64{0, 45, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Rule{Smoothing: &Smoothing{Samples: 4, Every: tc.every}}
			var s State
			for _, after := range tc.after {
				s = s.Observe(r, begin.Add(time.Duration(after)*time.Second), float64(after))
			}
			if diff := cmp.Diff(tc.want, s.Ring); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
