package config

import (
	"ballast/planner/size/weights"
)

// Scaling is when, and by how many at least, replicas come or go. A nil StabilizationWindow is none, but for replicas
// that go where size.weights say how many there are: see changerules.OfCount.
type Scaling struct {
	Timing
	StabilizationWindow *Duration  `json:"stabilizationWindow,omitempty" null:"default"` // the least change that was wanted within it counts
	MinChange           *CountStep `json:"minChange,omitempty" null:"default"`
	Rate                []Pace     `json:"rate,omitempty" null:"default"`
}

// CountStep is the smaller of Value, in replicas, and Percentage of those in force.
type CountStep struct {
	Value      int     `json:"value,omitempty"`
	Percentage Percent `json:"percentage,omitempty"`
}

// WeightInterval is a range of the fleet's load in which Weight percent of the growth makes replicas larger, and the
// rest makes more of them. An empty To is without end.
type WeightInterval struct {
	From   Decimal `json:"from"`
	To     Decimal `json:"to,omitempty"`
	Weight int     `json:"weight"`
}

// Intervals are the weights as they are evaluated, and what is wrong with them.
func (s Size) Intervals() (weights.Intervals, []string) {
	given := make([]weights.Interval, len(s.Weights))
	for i, w := range s.Weights {
		given[i] = weights.Interval{From: w.From.Float(), Weight: w.Weight}
		if w.To != "" {
			to := w.To.Float()
			given[i].To = &to
		}
	}
	return weights.Check(given)
}
