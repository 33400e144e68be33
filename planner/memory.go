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

// historyOf is a history with this memory in its parts. A part that only a newer version knows stays, and so does one that
// cannot be packed anew, which is reported: neither the others nor the plans may be lost with it.
func historyOf(h store.History, m Memory) (store.History, []error) {
	parts := maps.Clone(h.Parts)
	if parts == nil {
		parts = map[string][]byte{}
	}
	var stale []error
	keep := func(name, what string, pack func() ([]byte, error)) {
		part, err := pack()
		if err != nil {
			stale = append(stale, fmt.Errorf("packing %s: %w", what, err))
			return
		}
		parts[name] = part
	}
	keep(partFleet, "what is known of the fleet", func() ([]byte, error) {
		fleet, err := json.Marshal(fleetMemory{Known: m.Known, Gone: m.Gone, HoldOff: m.HoldOff})
		if err != nil {
			return nil, err
		}
		return store.Pack(fleet)
	})
	keep(partLastGood, "the last good values", m.LastGood.MarshalBinary)
	keep(partVotes, "the votes", m.Votes.MarshalBinary)
	h.Parts = parts
	return h, stale
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
