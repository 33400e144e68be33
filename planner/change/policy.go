package change

import (
	"math"
	"time"

	"ballast/planner/change/maintenance"
)

// Mode is when a direction may be taken at all.
type Mode string

// The modes. Empty is Auto.
const (
	Auto        Mode = "Auto"
	Off         Mode = "Off"
	Maintenance Mode = "MaintenanceWindow"
)

// MinChange is what a change must reach; of both the smaller counts. Nothing given blocks nothing.
type MinChange struct {
	Value   *int64 // replicas, or thousandths of a resource
	Percent *int   // of what is in force
}

// none is a threshold that nothing reaches.
const none = math.MaxInt64

// Threshold is the least change from current.
func (m MinChange) Threshold(current int64) int64 {
	threshold := int64(none)
	if m.Value != nil {
		threshold = *m.Value
	}
	if m.Percent != nil {
		percent := int64(*m.Percent)
		threshold = min(threshold, current/100*percent+current%100*percent/100)
	}
	if threshold == none {
		return 0
	}
	return threshold
}

// Policy is the rules of one direction.
type Policy struct {
	Mode          Mode
	Windows       []maintenance.Window // with Maintenance; none never opens
	Cooldown      time.Duration        // since the last change of the same thing, in either direction
	Stabilization time.Duration        // HPA's window: the least growth and the least shrinking that was wanted in it counts
	MinChange     MinChange
	Rate          []Pace
	Select        Select
}
