package config

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/change"
	"ballast/planner/size"
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
func (s Size) Intervals() (size.Intervals, []string) {
	given := make([]size.Interval, len(s.Weights))
	for i, w := range s.Weights {
		given[i] = size.Interval{From: w.From.Float(), Weight: w.Weight}
		if w.To != "" {
			to := w.To.Float()
			given[i].To = &to
		}
	}
	return size.Check(given)
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

func (s Scaling) validate(p *field.Path) (errs field.ErrorList) {
	errs = s.Timing.validate(p)
	if s.StabilizationWindow != nil {
		errs = append(errs, between(p.Child("stabilizationWindow"), *s.StabilizationWindow, 0, maxRatePeriod)...)
	}
	if s.MinChange != nil {
		errs = append(errs, s.MinChange.validate(p.Child("minChange"))...)
	}
	for i, pace := range s.Rate {
		errs = append(errs, pace.validate(p.Child("rate").Index(i))...)
	}
	return errs
}

func (s CountStep) validate(p *field.Path) field.ErrorList {
	if s.Value == 0 && s.Percentage == 0 {
		return field.ErrorList{field.Required(p, "write value, percentage or both, or leave it out: any change is large enough then")}
	}
	errs := between(p.Child("value"), s.Value, 0, maxReplicas)
	return append(errs, between(p.Child("percentage"), s.Percentage, 0, 100)...)
}

// validateIntervals refuses intervals that are no table of every load, and what they cannot hold beside.
func (c PlannerConfig) validateIntervals(p *field.Path) (errs field.ErrorList) {
	if len(c.Size.Weights) == 0 {
		return nil
	}
	_, wrong := c.Size.Intervals()
	for _, message := range wrong {
		errs = append(errs, field.Invalid(p, field.OmitValueType{}, message))
	}
	vertical := false
	for i, w := range c.Size.Weights {
		if w.From == "" {
			errs = append(errs, field.Required(p.Index(i).Child("from"), "write the load from which it holds on, like 0"))
		}
		vertical = vertical || w.Weight > 0
	}
	if vertical && len(c.Size.All()) == 0 {
		errs = append(errs, field.Invalid(p, field.OmitValueType{}, "let replicas grow, and no policy makes them larger: write size.policies, or weights of 0"))
	}
	return append(errs, c.clashesWithWeights(p)...)
}

func (c PlannerConfig) clashesWithWeights(p *field.Path) (errs field.ErrorList) {
	clash := func(format string, args ...any) {
		errs = append(errs, field.Invalid(p, field.OmitValueType{}, fmt.Sprintf(format, args...)))
	}
	of := c.Partition
	switch {
	case of.Replicas != nil:
		clash("say how many replicas there are, and partition.replicas does, too: delete one of them")
	case of.MinReplicas != nil && of.MaxReplicas != nil && *of.MinReplicas == *of.MaxReplicas:
		clash("say how many replicas there are, and partition.minReplicas and maxReplicas leave %d alone: widen them, or delete the weights", *of.MinReplicas)
	}
	if c.Normalize.Robust != nil || c.Normalize.MinMax != nil {
		clash("go by the fleet's load, and normalize.robust and minMax make it a share of what the fleet has now: set normalize.reference, or none")
	}
	return errs
}
