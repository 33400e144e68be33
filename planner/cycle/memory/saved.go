package memory

import (
	"ballast/planner/cycle/track"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/measure"
	"ballast/planner/plan"
)

// Saved is what the leader left in the history of moves, of the fleet and of what moves are worth, up to five minutes
// ago, for commands that show what it would do.
type Saved struct {
	Changes Changes
	Known   discover.Known
	Savings evaluate.Savings
	Spare   track.Spare
	Even    track.Even
	Unit    string

	Evidence track.Evidence
	Limit    plan.Bytes
	Usage    track.Usage
	Sizes    Sizes
	Counts   Counts
}

// OfSaved reads it from the history's parts. What cannot be read is left out and reported.
func OfSaved(parts map[string][]byte) (Saved, []error) {
	asked := map[string][]byte{}
	for _, name := range []string{partChanges, partLimits, partMarks, partFleet, partUsage, partSizes} {
		if part, ok := parts[name]; ok {
			asked[name] = part
		}
	}
	m, dropped := Of(asked)
	return Saved{Changes: m.Changes, Known: m.Known, Savings: m.Savings, Spare: m.Spare, Even: m.Even, Unit: m.Unit,
		Evidence: m.Evidence, Limit: m.Limit, Usage: m.Usage, Sizes: m.Sizes,
		Counts: m.Counts}, dropped
}

// Measured are the last good values that the leader left in the history, up to five minutes ago; none where it left
// none.
func Measured(parts map[string][]byte) (values measure.LastGood, err error) {
	if part, there := parts[partLastGood]; there {
		err = values.UnmarshalBinary(part)
	}
	return values, err
}
