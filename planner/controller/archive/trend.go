package archive

import (
	"fmt"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/trend"
)

// takeOverTrend goes on with what replicas carried under the last leader.
func (a *Archive) takeOverTrend() {
	part, kept := a.history.Parts[trend.HistoryPart]
	if !kept {
		return
	}
	if err := a.trend.UnmarshalBinary(part); err != nil {
		a.Log.Error(err, "what replicas carried under the last leader was dropped; the page's load over time begins anew")
	}
}

// KeepTrend takes in what replicas carry by a cycle that knows loads.
func (a *Archive) KeepTrend(in input.Inputs, out cycle.Outcome) {
	if out.Loads != nil {
		a.trend = a.trend.Take(trend.Of(out.Now, in.Now), out.Memory.Unit)
	}
}

// saveTrend keeps it for people and for the next leader.
func (a *Archive) saveTrend(parts map[string][]byte) error {
	if len(a.trend.Levels) == 0 {
		return nil
	}
	part, err := a.trend.MarshalBinary()
	if err != nil {
		return fmt.Errorf("packing what replicas carried: %w", err)
	}
	parts[trend.HistoryPart] = part
	return nil
}
