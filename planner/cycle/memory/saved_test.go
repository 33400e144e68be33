package memory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/track"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/measure"
	"ballast/planner/sim"
)

func TestRecallReadsWhatTheLeaderSaved(t *testing.T) {
	changes := Changes{
		Target: map[string]int{"c001": 2}, Cause: change.Drain, Ledger: change.Ledger{{At: sim.Epoch, Moves: 3, Cause: change.Drain}},
		Trip: &harm.Trip{At: sim.Epoch, Reason: harm.Orphaned, Why: "c001 has no owner"}, Failover: failover.Last{Replica: 1, At: sim.Epoch},
	}
	changes.Ownership.Lost = map[string]time.Time{"c001": sim.Epoch}
	whole := Memory{Changes: changes, HoldOff: sim.Epoch}
	limits, others := changes, Changes{Target: changes.Target, Ownership: changes.Ownership}
	limits.Target, limits.Ownership.Lost = nil, nil
	worth, spare := evaluate.Savings{At: sim.Epoch, Of: map[int]float64{3: 0.5}}, track.Spare{Replica: 2, At: sim.Epoch, For: time.Hour}
	broken := "reading what was known of moves: "
	for name, test := range map[string]struct {
		saved Memory
		spoil string // the part that breaks
		want  Saved
		says  []string
	}{
		"all of it":                    {whole, "", Saved{Changes: changes}, nil},
		"no rollout failed":            {Memory{Changes: changes}, "", Saved{Changes: changes}, nil},
		"what moves are worth":         {Memory{Savings: worth, Spare: spare, Even: track.Even{Replicas: 3, Load: 100, At: sim.Epoch}}, "", Saved{Savings: worth, Spare: spare, Even: track.Even{Replicas: 3, Load: 100, At: sim.Epoch}}, nil},
		"where growth is counted from": {Memory{Counts: Counts{Start: Start{Replicas: 3, Load: 30, Of: "x"}}}, "", Saved{Counts: Counts{Start: Start{Replicas: 3, Load: 30, Of: "x"}}}, nil},
		"nothing":                      {Memory{}, "", Saved{}, nil},
		"moves that cannot be read":    {whole, partChanges, Saved{Changes: limits}, []string{broken}},
		"limits that cannot be read":   {whole, partLimits, Saved{Changes: others}, []string{"reading what limits changes: "}},
		"a fleet that cannot be read":  {whole, partFleet, Saved{Changes: changes}, []string{"reading what was known of the fleet: "}},
		"votes that nobody asked for":  {whole, partVotes, Saved{Changes: changes}, nil},
		"values that nobody asked for": {whole, partLastGood, Saved{Changes: changes}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			parts, _ := test.saved.Parts(nil)
			if test.spoil != "" {
				parts[test.spoil] = []byte("no part")
			}
			got, dropped := OfSaved(parts)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApproxTime(0), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var says []string
			for i, err := range dropped {
				says = append(says, err.Error()[:min(len(err.Error()), len(test.says[i]))])
			}
			if diff := cmp.Diff(test.says, says); diff != "" {
				t.Errorf("what was dropped (-want +got):\n%s", diff)
			}
		})
	}
	if got, dropped := OfSaved(nil); !cmp.Equal(Saved{}, got) || len(dropped) > 0 {
		t.Errorf("of no history %+v is saved, dropped %v", got, dropped)
	}
}

// TestMeasuredIsWhatTheLeaderKept: the last good values, none of a history without them, and an error of what is no such part.
func TestMeasuredIsWhatTheLeaderKept(t *testing.T) {
	want := measure.LastGood{IDs: []string{"a"}, Columns: []measure.LastColumn{
		{ID: "apps", Values: []float64{3}, At: []int64{1700000000}, Measured: []bool{true}}}}
	parts, stale := Memory{LastGood: want}.Parts(nil)
	if len(stale) > 0 {
		t.Fatal(stale)
	}
	if got, err := Measured(parts); err != nil || !cmp.Equal(want, got) {
		t.Errorf("measured is %+v, %v", got, err)
	}
	if got, err := Measured(nil); err != nil || !cmp.Equal(measure.LastGood{}, got) {
		t.Errorf("of no history it is %+v, %v", got, err)
	}
	if got, err := Measured(map[string][]byte{partLastGood: []byte("x")}); err == nil || !cmp.Equal(measure.LastGood{}, got) {
		t.Errorf("of a damaged history it is %+v, %v", got, err)
	}
}
