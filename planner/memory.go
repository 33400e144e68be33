package planner

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"ballast/planner/discover"
	"ballast/planner/store"
)

// The history's parts that are the planner's memory.
const (
	partFleet    = "fleet.json.gz"
	partLastGood = "lastgood"
	partVotes    = "votes"
)

// fleetMemory is what is remembered of discovery and of rollouts.
type fleetMemory struct {
	Known   discover.Known       `json:"known,omitzero"`
	Gone    map[string]time.Time `json:"gone,omitempty"`
	HoldOff time.Time            `json:"holdOff,omitzero"`
}

// historyOf is a history with this memory in its parts.
func historyOf(h store.History, m Memory) (store.History, error) {
	fleet, err := json.Marshal(fleetMemory{Known: m.Known, Gone: m.Gone, HoldOff: m.HoldOff})
	if err != nil {
		return h, fmt.Errorf("packing what is known of the fleet: %w", err)
	}
	packed, err := store.Pack(fleet)
	if err != nil {
		return h, err
	}
	lastGood, err := m.LastGood.MarshalBinary()
	if err != nil {
		return h, fmt.Errorf("packing the last good values: %w", err)
	}
	votes, err := m.Votes.MarshalBinary()
	if err != nil {
		return h, fmt.Errorf("packing the votes: %w", err)
	}
	parts := maps.Clone(h.Parts) // a part that only a newer version knows stays
	if parts == nil {
		parts = map[string][]byte{}
	}
	parts[partFleet], parts[partLastGood], parts[partVotes] = packed, lastGood, votes
	h.Parts = parts
	return h, nil
}

// memoryOf reads the memory back. A part that cannot be read begins anew and is reported; the others serve.
func memoryOf(h store.History) (Memory, []error) {
	var m Memory
	var dropped []error
	if part, ok := h.Parts[partFleet]; ok {
		var fleet fleetMemory
		data, err := store.Unpack(part)
		if err == nil {
			err = json.Unmarshal(data, &fleet)
		}
		if err != nil {
			dropped = append(dropped, fmt.Errorf("reading what was known of the fleet: %w", err))
		} else {
			m.Known, m.Gone, m.HoldOff = fleet.Known, fleet.Gone, fleet.HoldOff
		}
	}
	if part, ok := h.Parts[partLastGood]; ok {
		if err := m.LastGood.UnmarshalBinary(part); err != nil {
			dropped = append(dropped, fmt.Errorf("reading the last good values: %w", err))
		}
	}
	if part, ok := h.Parts[partVotes]; ok {
		if err := m.Votes.UnmarshalBinary(part); err != nil {
			dropped = append(dropped, fmt.Errorf("reading the votes: %w", err))
		}
	}
	return m, dropped
}
