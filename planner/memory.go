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
	partChanges  = "changes.json.gz"
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
	keep(partFleet, "what is known of the fleet", packed(fleetMemory{Known: m.Known, Gone: m.Gone, HoldOff: m.HoldOff}))
	keep(partChanges, "what is known of moves", packed(m.Changes))
	keep(partLastGood, "the last good values", m.LastGood.MarshalBinary)
	keep(partVotes, "the votes", m.Votes.MarshalBinary)
	h.Parts = parts
	return h, stale
}

func packed(v any) func() ([]byte, error) {
	return func() ([]byte, error) {
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		return store.Pack(data)
	}
}

func unpacked(part []byte, into any) error {
	data, err := store.Unpack(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// memoryOf reads the memory back. A part that cannot be read begins anew and is reported; the others serve.
func memoryOf(h store.History) (Memory, []error) {
	var m Memory
	var dropped []error
	if part, ok := h.Parts[partFleet]; ok {
		var fleet fleetMemory
		if err := unpacked(part, &fleet); err != nil {
			dropped = append(dropped, fmt.Errorf("reading what was known of the fleet: %w", err))
		} else {
			m.Known, m.Gone, m.HoldOff = fleet.Known, fleet.Gone, fleet.HoldOff
		}
	}
	if part, ok := h.Parts[partChanges]; ok {
		var changes Changes
		if err := unpacked(part, &changes); err != nil {
			dropped = append(dropped, fmt.Errorf("reading what was known of moves: %w", err))
		} else {
			m.Changes = changes
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
