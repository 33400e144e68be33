package memory

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"ballast/planner/change/harm"
)

// marksMemory is what a trip for memory and failovers go by of clusters, with a mark for each name. Names may be long
// enough for the part with them to be left out of a history that is full; twelve letters a cluster are kept then. At is
// the trip's, so that a planner which does not know this part cannot have it speak for another trip.
type marksMemory struct {
	At      time.Time            `json:"at,omitzero"`
	Moved   []string             `json:"moved,omitempty"`
	Failed  map[string]time.Time `json:"failed,omitempty"`
	Suspect map[string]time.Time `json:"suspect,omitempty"`
}

// marks are those of the clusters that a trip and failovers go by.
func (c Changes) marks() marksMemory {
	m := marksMemory{Failed: marked(c.Failed), Suspect: marked(c.Suspect)}
	if moved := c.Stay().Clusters; len(moved) > 0 && len(moved) <= mostMoved {
		m.At = c.Trip.At
		for _, name := range moved {
			m.Moved = append(m.Moved, mark(name))
		}
		slices.Sort(m.Moved)
	}
	return m
}

func (m marksMemory) none() bool { return len(m.Moved)+len(m.Failed)+len(m.Suspect) == 0 }

// joinMarks has marks stand for the names that were lost, until Named.
func (c *Changes) joinMarks(m marksMemory) {
	if t := c.Trip; t != nil && t.Reason == harm.OOMKilled && !t.Bounds(c.TripMoved) && t.At.Equal(m.At) {
		c.TripMoved = m.Moved
	}
	if len(c.Failed) == 0 {
		c.Failed = m.Failed
	}
	if len(c.Suspect) == 0 {
		c.Suspect = m.Suspect
	}
}

// Named is with the names that marks stand for, of the clusters that there are. The mark of one that is gone stays: its
// Secret may come back.
func (c Changes) Named(names iter.Seq[string]) Changes {
	moved := slices.ContainsFunc(c.TripMoved, isMark)
	if !moved && !hasMark(c.Failed) && !hasMark(c.Suspect) {
		return c
	}
	of := map[string]string{}
	for name := range names {
		of[mark(name)] = name
	}
	c.Failed, c.Suspect = unmarked(c.Failed, of), unmarked(c.Suspect, of)
	if moved && c.Trip != nil {
		trip, all := *c.Trip, make([]string, 0, len(c.TripMoved))
		for _, name := range c.TripMoved {
			all = append(all, cmp.Or(of[name], name))
		}
		slices.Sort(all)
		c.TripMoved = slices.Compact(all) // a cluster may have come back, and moved again
		trip.Moved = len(c.TripMoved)
		c.Trip = &trip
	}
	return c
}
