package memory

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change"
	"ballast/planner/cycle/track"
	"ballast/planner/plan"
	"ballast/planner/sim"
	"ballast/planner/size"
)

func TestWhatIsKnownOfSizesSurvivesALeader(t *testing.T) {
	m := Memory{Sizes: Sizes{
		Rules:   size.States{"/requests/memory/apps/replica/apps": {2: {Since: 1, At: 5, Input: 7, Window: []size.Stretch{{At: 5, Lo: 6, Hi: 7}}}}},
		Changes: map[int]map[string]change.Past{2: {"memory": {Last: 4, Wishes: []change.Wish{{At: 5, Lo: 1, Hi: 2}}}}},
		Resizes: change.Past{Last: 4, Events: []change.Event{{At: 4, By: 1}}},
		Peaks:   map[int]track.Peak{2: {Bytes: 128 << 20, At: sim.Epoch, Later: []track.Peak{{Bytes: 64 << 20, At: sim.Epoch}}}},
		Found:   &plan.Resources{Requests: map[string]string{"memory": "1Gi"}},
		Blocked: map[string]time.Time{"2/memory/down/StabilizationWindow": sim.Epoch},
		Killed:  map[int]int64{2: 7},
	}}
	parts, stale := m.Parts(nil)
	got, dropped := Of(parts)
	if diff := cmp.Diff(m.Sizes, got.Sizes, cmpopts.EquateApproxTime(0)); diff != "" || len(stale)+len(dropped) > 0 {
		t.Errorf("(stale %v, dropped %v, -want +got):\n%s", stale, dropped, diff)
	}
	saved, _ := OfSaved(parts)
	if diff := cmp.Diff(m.Sizes, saved.Sizes, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("for commands (-want +got):\n%s", diff)
	}
	if _, there := parts[partSizes]; !there {
		t.Error("it has no part of its own")
	}
	if parts, _ := (Memory{}).Parts(nil); parts[partSizes] != nil {
		t.Error("a fleet without policies has a part of sizes")
	}
	if got, dropped := Of(map[string][]byte{partSizes: []byte("no part")}); len(dropped) != 1 || got.Sizes.Rules != nil {
		t.Errorf("of a broken part it has %+v, dropped %v", got.Sizes, dropped)
	}
}

// Whatever number of rules and replicas there is: what is held back may wait longer for it, and never shorter.
func TestWhatIsKnownOfSizesIsBounded(t *testing.T) {
	s := Sizes{Rules: size.States{}}
	for _, rule := range []string{"a", "b", "c", "d"} {
		s.Rules[rule] = map[int]size.State{}
		for replica := range 999 {
			state := size.State{Ring: make([]float64, 120)}
			for i := range 60 {
				state.Window = append(state.Window, size.Stretch{At: int64(i), Lo: float64(60 - i), Hi: float64(100 + i%7)})
			}
			s.Rules[rule][replica] = state
		}
	}
	got := s.bounded()
	samples := 0
	for rule, states := range got.Rules {
		for replica, state := range states {
			samples += len(state.Window) + len(state.Ring)
			last, high, low := state.Window[len(state.Window)-1], 0.0, 1e9
			for _, w := range state.Window {
				high, low = max(high, w.Hi), min(low, w.Lo)
			}
			if last.At != 59 || high != 106 || low != 1 {
				t.Fatalf("rule %s of replica %d has %+v: the latest, the highest or the lowest is lost", rule, replica, state.Window)
			}
		}
	}
	if samples > mostSamples {
		t.Errorf("it has %d samples", samples)
	}
	text, err := json.Marshal(got)
	if err != nil || len(text) > 2<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestNoPeakLiesAhead(t *testing.T) {
	now := sim.Epoch
	later := now.Add(7 * 24 * time.Hour)
	ahead := Memory{Sizes: Sizes{Peaks: map[int]track.Peak{0: {Bytes: 1, At: later}}, Blocked: map[string]time.Time{"x": later}}}.Until(now)
	if ahead.Sizes.Peaks[0].At != now || ahead.Sizes.Blocked["x"] != now {
		t.Errorf("by a clock that was ahead: %+v", ahead.Sizes)
	}
}

// After each try by which nothing left the next one waits twice as long, and a day at most.
func TestTriesToHaveClustersLeaveComeRarerAndRarer(t *testing.T) {
	const hour = time.Hour
	for after, want := range map[time.Duration][]time.Duration{
		hour:             {hour, 2 * hour, 4 * hour, 8 * hour, 16 * hour, 24 * hour, 24 * hour},
		10 * time.Minute: {hour / 6, hour / 3, 2 * hour / 3, 4 * hour / 3, 8 * hour / 3, 16 * hour / 3, 32 * hour / 3, 64 * hour / 3, 24 * hour},
		24 * hour:        {24 * hour, 24 * hour},
	} {
		for tries, waits := range want {
			c := Cramped{Since: sim.Epoch, Tries: tries}
			if c.Due(after, sim.Epoch.Add(waits-time.Second)) || !c.Due(after, sim.Epoch.Add(waits)) {
				t.Errorf("with after: %s and %d tries it is not %s", after, tries, waits)
			}
		}
	}
	forged := Cramped{Since: sim.Epoch, Tries: 1 << 40}
	if (Cramped{}).Due(hour, sim.Epoch) || !forged.Due(hour, sim.Epoch.Add(24*hour)) {
		t.Error("a node that has room is due, or a number that somebody wrote never is")
	}
}
