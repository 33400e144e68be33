package config

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
