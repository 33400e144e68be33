package memory

import (
	"ballast/planner/discover"
)

// Saved is what the leader left in the history of moves and of the fleet, up to five minutes ago, for commands that
// show what it would do.
type Saved struct {
	Changes Changes
	Known   discover.Known
}

// OfSaved reads it from the history's parts. What cannot be read is left out and reported.
func OfSaved(parts map[string][]byte) (Saved, []error) {
	asked := map[string][]byte{}
	for _, name := range []string{partChanges, partLimits, partFleet} {
		if part, ok := parts[name]; ok {
			asked[name] = part
		}
	}
	m, dropped := Of(asked)
	return Saved{Changes: m.Changes, Known: m.Known}, dropped
}
