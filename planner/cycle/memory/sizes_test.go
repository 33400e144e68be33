package memory

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/plan"
	"ballast/planner/sim"
	"ballast/planner/size"
)

func TestWhatIsKnownOfSizesSurvivesALeader(t *testing.T) {
	m := Memory{Sizes: Sizes{
		Rules:   size.States{"/requests/memory/apps/replica/apps": {2: {Since: 1, At: 5, Input: 7, Window: []size.Stretch{{At: 5, Lo: 6, Hi: 7}}}}},
		Changes: map[int]map[string]change.Past{2: {"memory": {Last: 4, Wishes: []change.Wish{{At: 5, Lo: 1, Hi: 2}}}}},
		Resizes: change.Past{Last: 4, Events: []change.Event{{At: 4, By: 1}}},
		Peaks:   map[int]Peak{2: {Bytes: 128 << 20, At: sim.Epoch, Later: []Peak{{Bytes: 64 << 20, At: sim.Epoch}}}},
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

func TestAPeakLastsAWeek(t *testing.T) {
	now := sim.Epoch
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	p := Peak{}.Next(100<<20+1, now)
	if diff := cmp.Diff(Peak{Bytes: 128 << 20, At: now}, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What came after the highest holds once that is too old, and a look that shows nothing is no use of nothing.
	for d := 1; d <= 6; d++ {
		p = p.Next(90<<20, day(d)).Next(1, day(d)).Next(0, day(d))
	}
	if p.Bytes != 128<<20 {
		t.Errorf("within a week it is %+v", p)
	}
	later := day(7)
	if diff := cmp.Diff(Peak{Bytes: 128 << 20, At: day(6), Later: []Peak{{Bytes: 64 << 20, At: later}}}, p.Next(1, later)); diff != "" {
		t.Errorf("after a week (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Peak{Bytes: 64 << 20, At: day(14)}, p.Next(1, day(14))); diff != "" {
		t.Errorf("after two (-want +got):\n%s", diff)
	}
	later = day(7)
	ahead := Memory{Sizes: Sizes{Peaks: map[int]Peak{0: {Bytes: 1, At: later}}, Blocked: map[string]time.Time{"x": later}}}.Until(now)
	if ahead.Sizes.Peaks[0].At != now || ahead.Sizes.Blocked["x"] != now {
		t.Errorf("by a clock that was ahead: %+v", ahead.Sizes)
	}
}

// A peak is never below what was seen within the week, and is remembered in few numbers.
func TestAPeakIsTheMostOfAWeek(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, p := sim.Epoch, Peak{}
		type look struct {
			at    time.Time
			bytes int64
		}
		var looks []look
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "minutes")) * time.Minute)
			looks = append(looks, look{now, rapid.Int64Range(0, 4<<30).Draw(t, "bytes")})
			p = p.Next(looks[len(looks)-1].bytes, now)
			for _, l := range looks {
				if now.Sub(l.at) < 7*24*time.Hour && l.bytes > p.Bytes {
					t.Fatalf("%d bytes were seen at %s, and the peak is %+v", l.bytes, l.at, p)
				}
			}
			if len(p.Later) > 7 {
				t.Fatalf("%d are remembered", len(p.Later)+1)
			}
		}
	})
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
