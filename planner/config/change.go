package config

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/change"
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
	step := r.MinChange.of(resource)
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

func (s *SizeSteps) of(resource string) *SizeStep {
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
		if window, err := change.ParseWindow(w.Begin, w.End, w.TimeZone, w.Weekdays); err == nil {
			p.Windows = append(p.Windows, window)
		}
	}
	return p
}

// mostWindows bounds what is looked at for each change.
const mostWindows = 32

func (t Timing) validate(p *field.Path) (errs field.ErrorList) {
	if t.Mode != "" {
		errs = only(p.Child("mode"), t.Mode, change.Auto, change.Off, change.Maintenance)
	}
	at := p.Child("windows")
	switch {
	case t.Mode == change.Maintenance && len(t.Windows) == 0:
		errs = append(errs, field.Required(at, "name the windows of mode MaintenanceWindow, like {begin: \"22:00\", end: \"02:00\", timeZone: Europe/Berlin}"))
	case t.Mode != change.Maintenance && len(t.Windows) > 0:
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "count for nothing without mode: MaintenanceWindow: write that, or delete them"))
	case len(t.Windows) > mostWindows:
		errs = append(errs, field.TooMany(at, len(t.Windows), mostWindows))
	}
	for i, w := range t.Windows {
		if _, err := change.ParseWindow(w.Begin, w.End, w.TimeZone, w.Weekdays); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), field.OmitValueType{}, err.Error()))
		}
	}
	return append(errs, between(p.Child("cooldown"), t.Cooldown, 0, maxRatePeriod)...)
}

func (r Resizing) validate(p *field.Path) (errs field.ErrorList) {
	errs = append(r.Timing.validate(p), between(p.Child("stabilizationWindow"), r.StabilizationWindow, 0, maxRatePeriod)...)
	for _, name := range []string{size.CPU, size.Memory} {
		if step := r.MinChange.of(name); step != nil {
			errs = append(errs, step.validate(p.Child("minChange", name))...)
		}
	}
	for i, pace := range r.Rate {
		errs = append(errs, pace.validate(p.Child("rate").Index(i))...)
	}
	return errs
}

func (s SizeStep) validate(p *field.Path) field.ErrorList {
	if s.Value == "" && s.Percentage == 0 {
		return field.ErrorList{field.Required(p, "write value, percentage or both, or leave it out: a tenth of what is in force counts then")}
	}
	return between(p.Child("percentage"), s.Percentage, 0, 100)
}

func (r Pace) validate(p *field.Path) (errs field.ErrorList) {
	if (r.Replicas > 0) == (r.Percent > 0) {
		errs = append(errs, field.Invalid(p, field.OmitValueType{}, fmt.Sprintf("has %d replicas and %d percent: write one of them, above 0", r.Replicas, r.Percent)))
	}
	errs = append(errs, between(p.Child("replicas"), r.Replicas, 0, maxReplicas)...)
	errs = append(errs, between(p.Child("percent"), r.Percent, 0, 100)...)
	return append(errs, required(p.Child("period"), r.Period, minRatePeriod, maxRatePeriod)...)
}

// milli is a quantity in thousandths, as rules of change count sizes.
func milli(q resource.Quantity) int64 {
	const most = 1 << 60
	if q.CmpInt64(most/1000) >= 0 {
		return most
	}
	return q.MilliValue()
}
