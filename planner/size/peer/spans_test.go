package peer

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever the intervals, each number of replicas has one weight, and it is the one that HVPA takes.
func TestSpansHaveEachNumberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s HVPASpec
		least := rapid.IntRange(0, 4).Draw(t, "least")
		s.Hpa.Template.Spec.MinReplicas, s.Hpa.Template.Spec.MaxReplicas = &least, rapid.IntRange(0, 12).Draw(t, "most")
		for range rapid.IntRange(0, 5).Draw(t, "intervals") {
			s.Intervals = append(s.Intervals, WeightInterval{VpaWeight: rapid.IntRange(0, 100).Draw(t, "weight"),
				Start: rapid.IntRange(0, 14).Draw(t, "start"), Last: rapid.IntRange(0, 14).Draw(t, "last")})
		}
		from, most := s.Bounds()
		theirs := HVPASpec{Intervals: s.Intervals}
		theirs.Hpa.Template.Spec.MinReplicas, theirs.Hpa.Template.Spec.MaxReplicas = &from, most
		next := from
		for _, span := range s.Spans() {
			if span.Start != next || span.Last < span.Start {
				t.Fatalf("%+v begins %d where the last one ended", span, next)
			}
			for n := span.Start; n <= span.Last; n++ {
				if want := theirs.Weight(n, n); span.VpaWeight != want {
					t.Fatalf("with %d replicas the weight is %d, and theirs %d", n, span.VpaWeight, want)
				}
			}
			next = span.Last + 1
		}
		if next != max(most+1, from) {
			t.Fatalf("nothing is said of %d to %d replicas", next, most)
		}
	})
}
