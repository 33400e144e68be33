package memory

import (
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/track"
)

// Counts is what is remembered of how many replicas there are.
type Counts struct {
	Start   Start                `json:"start,omitzero"`
	Asked   int                  `json:"asked,omitempty"` // replicas that the weights asked for last
	History change.Past          `json:"history,omitzero"`
	Blocked map[string]time.Time `json:"blocked,omitempty"` // changes that do not happen, and since when
	Killed  map[int]int64        `json:"killed,omitempty"`  // by replica, OOM kills that are dated after the change that answered them
}

// Start is where the growth that size.weights share is counted from: so many replicas for that load. Of says by which
// settings, of which Capacity is one. A load of 0 is to be taken anew.
type Start struct {
	Replicas int     `json:"replicas,omitempty"`
	Load     float64 `json:"load,omitempty"`
	Capacity float64 `json:"capacity,omitempty"`
	Of       string  `json:"of,omitempty"`
}

// Unknown is by which settings growth counted where nothing is remembered.
const Unknown = "unknown"

// until takes what lies ahead as now; the history does so itself.
func (c Counts) until(now time.Time) Counts {
	c.Blocked = track.MapUntil(c.Blocked, now)
	return c
}
