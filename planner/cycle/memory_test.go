package cycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/cycle/track"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
)

// remembered is the memory of a fleet after some cycles of a vote, with a row that waits to be forgotten.
func remembered(t testing.TB, seed uint64, cycles int) memory.Memory {
	t.Helper()
	w := newWorld(lognormal(seed, 8)...)
	w.in.Config.Mode = plan.Hold
	w.run(cycles)
	w.remove("c003")
	w.run(1)
	m := w.in.Memory
	m.Changes.PinFailed, m.Refused = w.in.Now, w.in.Now
	m.HoldOff, m.Rebased, m.Before, m.Servers = w.in.Now, w.in.Now, map[string]string{"apps": "7"}, nil // the next leader goes by the rows
	return m
}

// equalTimes: a time that was packed comes back in UTC by another name.
var equalTimes = cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })

func TestTheMemoryComesBackFromTheHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := remembered(t, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 15).Draw(rt, "cycles"))
		parts, stale := want.Parts(nil)
		got, dropped := memory.Of(parts)
		if diff := cmp.Diff(want, got, equalTimes, cmpopts.EquateEmpty()); diff != "" || len(stale)+len(dropped) > 0 {
			rt.Fatalf("stale %v, dropped %v (-want +got):\n%s", stale, dropped, diff)
		}
	})
}

func TestABrokenPartOfTheMemoryBeginsAnewAndTheOthersServe(t *testing.T) {
	whole := remembered(t, 1, 4)
	for part, test := range map[string]struct {
		forget func(*memory.Memory)
		want   string
	}{
		"fleet.json.gz":  {func(m *memory.Memory) { m.Known, m.Gone, m.Young, m.Before = discover.Known{}, nil, nil, nil }, "reading what was known of the fleet"},
		"limits.json.gz": {forgetLimits, "reading what limits changes"},
		"lastgood":       {func(m *memory.Memory) { m.LastGood.IDs, m.LastGood.Columns = nil, nil }, "reading the last good values"},
		"votes":          {func(m *memory.Memory) { m.Votes = evaluate.Vote{} }, "reading the votes"},
	} {
		t.Run(part, func(t *testing.T) {
			parts, _ := whole.Parts(nil)
			parts[part] = parts[part][:len(parts[part])/2]
			want := whole
			test.forget(&want)
			got, dropped := memory.Of(parts)
			if diff := cmp.Diff(want, got, equalTimes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(dropped) != 1 || !strings.HasPrefix(dropped[0].Error(), test.want) {
				t.Errorf("reported %v, want one error of %s", dropped, test.want)
			}
		})
	}
}

// What cannot be packed stays as it was saved: it must take neither the other parts nor the plans with it.
func TestWhatCannotBePackedStaysAsItWas(t *testing.T) {
	before, _ := remembered(t, 1, 4).Parts(nil)
	before["next-version.gz"] = []byte("a part that only a newer version knows")
	m := remembered(t, 2, 6)
	m.Votes.Candidates = map[string]evaluate.Candidate{"k": {Replicas: 2, Of: map[string]int{"eu": 2}}}
	after, stale := m.Parts(before)
	if len(stale) != 1 || !strings.HasPrefix(stale[0].Error(), "packing the votes: ") {
		t.Errorf("reported %v, want one error of the votes", stale)
	}
	want, _ := memory.Memory{Known: m.Known, Gone: m.Gone, Young: m.Young, Before: m.Before, HoldOff: m.HoldOff, Rebased: m.Rebased, Refused: m.Refused,
		Heaviest: m.Heaviest, Unit: m.Unit, Evidence: m.Evidence, LastGood: m.LastGood, Changes: memory.Changes{PinFailed: m.Changes.PinFailed}}.Parts(nil)
	want["votes"], want["next-version.gz"] = before["votes"], before["next-version.gz"]
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// TestRepairsGoByWhoLed: age alone would have a twin lead that waited for the owner's Secret to be made anew.
func TestRepairsGoByWhoLed(t *testing.T) {
	w := newWorld(3, 2, 1)
	w.add("zz", 0)
	w.secret("zz").Server, w.secret("zz").Pin = server("c001"), "2"
	for _, name := range []string{"c000", "c001", "c002"} {
		w.secret(name).Created = epoch
	}
	w.secret("zz").Created = epoch.Add(time.Second)
	w.run(2)
	w.secret("c001").Created = epoch.Add(time.Hour)
	pins := map[string]string{}
	for _, c := range standing.Fleet(input.Inputs{Discovered: w.in.Discovered, Memory: w.in.Memory, Now: w.in.Now}).Clusters {
		pins[c.Shard.ID] = c.Pin
	}
	if diff := cmp.Diff(map[string]string{"c000": "", "c001": "", "c002": "", "zz": ""}, pins); diff != "" {
		t.Errorf("pins that count (-want +got):\n%s", diff)
	}
}

// TestAPlannerWithoutWhatIsMadeAnewKnowsTheRest: a history that is full leaves those parts out before the plans that people go back to.
func TestAPlannerWithoutWhatIsMadeAnewKnowsTheRest(t *testing.T) {
	w := steadyWorld(t, 20)
	m := w.in.Memory
	m.Usage.Metrics = []string{"apps"} // where memory is learned
	parts, _ := m.Parts(nil)
	if len(memory.MadeAnew()) != 3 {
		t.Fatalf("%v are made anew", memory.MadeAnew())
	}
	for _, name := range memory.MadeAnew() {
		if len(parts[name]) == 0 {
			t.Errorf("there is no part %q", name)
		}
		delete(parts, name)
	}
	got, dropped := memory.Of(parts)
	if len(dropped) > 0 || len(got.Known.Clusters) != 20 || got.Known.Clusters[0] != m.Known.Clusters[0] {
		t.Errorf("dropped %v, known %v", dropped, got.Known)
	}
	w.in.Memory = got
	w.step(t) // and the plan stays as it is
	if len(w.last.Problems) > 0 {
		t.Errorf("problems: %v", problems(w.last))
	}
}

func forgetLimits(m *memory.Memory) {
	m.HoldOff, m.Rebased, m.Refused, m.Heaviest = time.Time{}, time.Time{}, time.Time{}, track.Heaviest{}
	c := m.Changes
	m.Changes = memory.Changes{Target: c.Target, Pinned: c.Pinned, Failed: c.Failed, Began: c.Began, Watch: c.Watch, Replicas: c.Replicas, Ownership: c.Ownership}
	m.Unit, m.Evidence = "", track.Evidence{}
}
