package config

import (
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
