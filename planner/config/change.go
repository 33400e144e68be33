package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
	"ballast/planner/size"
)

// Timing is when a direction may be taken: its mode, and how long after what.
type Timing struct {
	Mode     change.Mode `json:"mode,omitempty"`
	Windows  []Window    `json:"windows,omitempty" null:"default"` // with MaintenanceWindow
	Cooldown Duration    `json:"cooldown,omitempty"`               // since the last change of the same thing
}

// Window is a time of day, on some days or on each; it may go past midnight.
type Window struct {
	Begin    string   `json:"begin"`
	End      string   `json:"end"`
	TimeZone string   `json:"timeZone,omitempty"` // of IANA; empty: UTC
	Weekdays []string `json:"weekdays,omitempty" null:"default"`
}

// Resizing is when, and by how much at least, a replica grows or shrinks.
type Resizing struct {
	Timing
	StabilizationWindow Duration   `json:"stabilizationWindow,omitempty"` // the least change that was wanted within it counts
	MinChange           *SizeSteps `json:"minChange,omitempty" null:"default"`
	Rate                []Pace     `json:"rate,omitempty" null:"default"`
}

// SizeSteps are the least changes, by resource.
type SizeSteps struct {
	CPU    *SizeStep `json:"cpu,omitempty" null:"default"`
	Memory *SizeStep `json:"memory,omitempty" null:"default"`
}

// SizeStep is the smaller of Value and Percentage of what is in force.
type SizeStep struct {
	Value      Quantity `json:"value,omitempty"`
	Percentage Percent  `json:"percentage,omitempty"`
}

// Pace allows that many replicas, or percent of them, to change in any window of Period.
type Pace struct {
	Replicas int      `json:"replicas,omitempty"`
	Percent  int      `json:"percent,omitempty"`
	Period   Duration `json:"period"`
}

// MoveRules are the rules of change for moves that level, beside their rates.
func (c Change) MoveRules() change.Rules { return change.Rules{Moves: c.Moves.policy()} }

// SizeRules are the rules of change for one resource of a replica.
func (c Change) SizeRules(resource string) change.Rules {
	return change.Rules{Up: c.Up.policy(resource), Down: c.Down.policy(resource)}
}

func (r Resizing) policy(resource string) change.Policy {
	p := r.Timing.policy()
	p.Stabilization = time.Duration(r.StabilizationWindow)
	step := r.MinChange.Of(resource)
	if step == nil {
		step = leastChange()
	}
	if step.Value != "" {
		value := milli(step.Value.Parsed())
		p.MinChange.Value = &value
	}
	if step.Percentage > 0 {
		percent := int(step.Percentage)
		p.MinChange.Percent = &percent
	}
	for _, pace := range r.Rate {
		p.Rate = append(p.Rate, pace.pace())
	}
	return p
}

// leastChange is the least change where none is given: a tenth, from which on the updater of Kubernetes' VPA takes action
// (--pod-update-threshold).
func leastChange() *SizeStep { return &SizeStep{Percentage: 10} }

// Of is the least change of a resource, nil where none is given.
func (s *SizeSteps) Of(resource string) *SizeStep {
	switch {
	case s == nil:
		return nil
	case resource == size.CPU:
		return s.CPU
	}
	return s.Memory
}

// policy is the direction as it is judged. The configuration was checked: what is no window is left out.
func (t Timing) policy() change.Policy {
	p := change.Policy{Mode: t.Mode, Cooldown: time.Duration(t.Cooldown)}
	for _, w := range t.Windows {
		if window, err := maintenance.Parse(w.Begin, w.End, w.TimeZone, w.Weekdays); err == nil {
			p.Windows = append(p.Windows, window)
		}
	}
	return p
}

// milli is a quantity in thousandths, as rules of change count sizes.
func milli(q resource.Quantity) int64 {
	const most = 1 << 60
	if q.CmpInt64(most/1000) >= 0 {
		return most
	}
	return q.MilliValue()
}
