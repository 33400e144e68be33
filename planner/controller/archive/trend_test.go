package archive

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"ballast/planner/controller/wiring"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/plan"
	"ballast/planner/sim"
	"ballast/planner/trend"
)

// What replicas carried outlives a change of leaders; a cycle without loads says nothing of it, and one that is broken begins anew.
func TestTheNextLeaderGoesOnWithTheTrend(t *testing.T) {
	leader := func(parts map[string][]byte) *Archive {
		a := &Archive{Options: &wiring.Options{Log: logr.Discard()}}
		a.history.Parts = parts
		a.takeOverTrend()
		return a
	}
	carries := func(a *Archive, after time.Duration, loads []plan.Load, fullest plan.Load) map[string][]byte {
		out := cycle.Outcome{Loads: loads, Now: []plan.Replica{{TotalLoad: fullest}, {}}, Memory: memory.Memory{Unit: "u"}}
		a.KeepTrend(input.Inputs{Now: sim.Epoch.Add(after)}, out)
		parts := map[string][]byte{}
		if err := a.saveTrend(parts); err != nil {
			t.Fatal(err)
		}
		return parts
	}
	known := []plan.Load{1}
	if parts := carries(leader(nil), 0, nil, 9); len(parts) != 0 {
		t.Errorf("without loads the parts are %v", parts)
	}
	parts := carries(leader(nil), 0, known, 6)
	next := leader(parts)
	carries(next, time.Hour, known, 8)
	carries(next, 2*time.Hour, nil, 9)
	at := sim.Epoch.Truncate(trend.Every)
	want := trend.Trend{Unit: "u", Levels: []trend.Level{{At: at, Fullest: 6, Mean: 3, Replicas: 2}, {At: at.Add(time.Hour), Fullest: 8, Mean: 4, Replicas: 2}}}
	if diff := cmp.Diff(want, next.trend); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if broken := leader(map[string][]byte{trend.HistoryPart: []byte("x")}); len(broken.trend.Levels) != 0 {
		t.Errorf("what cannot be read is %v", broken.trend)
	}
}
