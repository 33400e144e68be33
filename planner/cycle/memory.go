package cycle

import (
	"fmt"
	"maps"
	"time"

	"ballast/planner/discover"
	"ballast/planner/gz"
)

// The history's parts that are the planner's memory.
const (
	partFleet    = "fleet.json.gz"
	partLastGood = "lastgood"
	partVotes    = "votes"
	partChanges  = "changes.json.gz"
)

// fleetMemory is what is remembered of discovery and of rollouts.
type fleetMemory struct {
	Known   discover.Known       `json:"known,omitzero"`
	Gone    map[string]time.Time `json:"gone,omitempty"`
	Passing []string             `json:"passing,omitempty"`
	HoldOff time.Time            `json:"holdOff,omitzero"`
}

// partBounds are those of the fleet and of the changes: each has an object a cluster, or a few.
func partBounds() gz.Bounds { return gz.Bounds{Bytes: 16 << 20, Nested: 1 << 20} }

// Parts are the history's parts with this memory in them. A part that only a newer version knows stays, and so does one
// that cannot be packed anew, which is reported: neither the others nor the plans may be lost with it.
func (m Memory) Parts(before map[string][]byte) (parts map[string][]byte, stale []error) {
	parts = maps.Clone(before)
	if parts == nil {
		parts = map[string][]byte{}
	}
	keep := func(name, what string, pack func() ([]byte, error)) {
		part, err := pack()
		if err != nil {
			stale = append(stale, fmt.Errorf("packing %s: %w", what, err))
			return
		}
		parts[name] = part
	}
	keep(partFleet, "what is known of the fleet", packed(fleetMemory{Known: m.Known, Gone: m.Gone, Passing: m.Passing, HoldOff: m.HoldOff}))
	keep(partChanges, "what is known of moves", packed(m.Changes))
	keep(partLastGood, "the last good values", m.LastGood.MarshalBinary)
	keep(partVotes, "the votes", m.Votes.MarshalBinary)
	return parts, stale
}

func packed(v any) func() ([]byte, error) {
	return func() ([]byte, error) { return partBounds().PackJSON(v) }
}

// MemoryOf reads the memory back. A part that cannot be read begins anew and is reported; the others serve.
func MemoryOf(parts map[string][]byte) (Memory, []error) {
	var m Memory
	var dropped []error
	if part, ok := parts[partFleet]; ok {
		var fleet fleetMemory
		if err := partBounds().UnpackJSON(part, &fleet); err != nil {
			dropped = append(dropped, fmt.Errorf("reading what was known of the fleet: %w", err))
		} else {
			m.Known, m.Gone, m.Passing, m.HoldOff = fleet.Known, fleet.Gone, fleet.Passing, fleet.HoldOff
		}
	}
	if part, ok := parts[partChanges]; ok {
		var changes Changes
		if err := partBounds().UnpackJSON(part, &changes); err != nil {
			dropped = append(dropped, fmt.Errorf("reading what was known of moves: %w", err))
		} else {
			m.Changes = changes
		}
	}
	if part, ok := parts[partLastGood]; ok {
		if err := m.LastGood.UnmarshalBinary(part); err != nil {
			dropped = append(dropped, fmt.Errorf("reading the last good values: %w", err))
		}
	}
	if part, ok := parts[partVotes]; ok {
		if err := m.Votes.UnmarshalBinary(part); err != nil {
			dropped = append(dropped, fmt.Errorf("reading the votes: %w", err))
		}
	}
	return m, dropped
}
