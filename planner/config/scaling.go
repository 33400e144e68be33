package config

import (
	"time"

	"ballast/planner/change"
	"ballast/planner/size/weights"
)

// Scaling is when, and by how many at least, replicas come or go. A nil StabilizationWindow is none, but for replicas that go where
// size.weights say how many there are: see CountRules.
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

// WeightInterval is a range of the fleet's load in which Weight percent of the growth makes replicas larger, and the rest makes
// more of them. An empty To is without end.
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

// weighsFor is how long fewer replicas wait that weights do not ask for, where partition.sticky.downWindow does not say it.
const weighsFor = Duration(30 * time.Minute)

// CountRules are the rules of change for the number of replicas.
func (c PlannerConfig) CountRules() change.Rules {
	otherwise := Duration(0)
	if len(c.Size.Weights) > 0 {
		otherwise = weighsFor
		if c.Partition.Sticky != nil {
			otherwise = c.Partition.Sticky.DownWindow
		}
	}
	return change.Rules{Out: c.Change.Out.policy(0), In: c.Change.In.policy(otherwise)}
}

func (s Scaling) policy(otherwise Duration) change.Policy {
	p := s.Timing.policy()
	p.Stabilization = time.Duration(otherwise)
	if s.StabilizationWindow != nil {
		p.Stabilization = time.Duration(*s.StabilizationWindow)
	}
	if step := s.MinChange; step != nil {
		if step.Value > 0 {
			value := int64(step.Value)
			p.MinChange.Value = &value
		}
		if step.Percentage > 0 {
			percent := int(step.Percentage)
			p.MinChange.Percent = &percent
		}
	}
	for _, pace := range s.Rate {
		p.Rate = append(p.Rate, pace.pace())
	}
	return p
}

func (r Pace) pace() change.Pace {
	return change.Pace{Count: r.Replicas, Percent: r.Percent, Period: time.Duration(r.Period)}
}
