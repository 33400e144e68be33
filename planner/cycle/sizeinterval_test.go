package cycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// rareWorld is a fleet at rest whose sizes are decided every quarter of an hour, and which decided at the last minute.
func rareWorld(t *testing.T) *world {
	t.Helper()
	w := sizedWorld(2, 2, 2)
	w.in.Config.Size.Interval = config.Duration(15 * time.Minute)
	w.in.Config.Change.Down.StabilizationWindow = config.Duration(35 * time.Minute)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	w.run(5)
	if diff := cmp.Diff([][2]string{{"1280Mi", "2560Mi"}, {"1280Mi", "2560Mi"}, {"1280Mi", "2560Mi"}}, w.memories()); diff != "" {
		t.Fatalf("at first (-want +got):\n%s", diff)
	}
	w.decided(t)
	return w
}

// decided runs until sizes are decided.
func (w *world) decided(t *testing.T) {
	t.Helper()
	for range 15 {
		if w.run(1); w.in.Memory.Sizes.Decided.Equal(w.in.Now) {
			return
		}
	}
	t.Fatalf("nothing was decided for a quarter of an hour, last at %s", w.in.Memory.Sizes.Decided)
}

// Between two decisions a size waits, and what waits is told; the next decision makes it.
func TestSizesAreDecidedAtTheirOwnInterval(t *testing.T) {
	w := rareWorld(t)
	at := w.in.Now
	w.setLoad("c001", 10)
	w.run(14)
	if got := w.memoryOf(1); got != [2]string{"1280Mi", "2560Mi"} {
		t.Errorf("between two decisions replica 1 has %v", got)
	}
	want := []resize.Blocked{{Replica: 1, Resource: "memory", Direction: change.Up, Reason: change.StabilizationWindow, From: "1280Mi", To: "2Gi",
		Since: at.Add(time.Minute), Until: at.Add(15 * time.Minute), Why: "sizes are decided every 15m0s (size.interval)"}}
	if diff := cmp.Diff(want, w.last.Sizing.Blocked); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	w.run(1)
	if got := w.memoryOf(1); got != [2]string{"2Gi", "4Gi"} || len(w.last.Sizing.Blocked) != 0 {
		t.Errorf("by the decision replica 1 has %v; blocked %v", got, w.last.Sizing.Blocked)
	}
}

// Inputs are sampled in every cycle: a spike of a minute between two decisions counts for the window of what is to shrink.
func TestInputsAreSampledBetweenDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		spike     bool
		decisions int // until it shrinks, of those a quarter of an hour apart
	}{
		"without a spike":                   {false, 3},
		"a minute's spike after 20 minutes": {true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := rareWorld(t)
			w.setLoad("c001", 10)
			w.decided(t)
			w.setLoad("c001", 2)
			for minute := range 15 * test.decisions {
				if got := w.memoryOf(1)[0]; got != "2Gi" {
					t.Fatalf("it shrank to %s after %d minutes", got, minute)
				}
				if test.spike && minute == 20 {
					w.setLoad("c001", 10)
				}
				w.run(1)
				w.setLoad("c001", 2)
			}
			if got := w.memoryOf(1); got != [2]string{"1280Mi", "2560Mi"} {
				t.Errorf("after %d decisions replica 1 has %v; blocked %v", test.decisions, got, w.last.Sizing.Blocked)
			}
		})
	}
}

// grewAfter is how many minutes from now on each replica grows to 2Gi, by cycles a minute apart.
func (w *world) grewAfter(minutes int) map[int]int {
	grew := map[int]int{}
	for minute := 1; minute <= minutes; minute++ {
		w.run(1)
		for r := range w.in.InForce.Replicas {
			if _, known := grew[r]; !known && w.memoryOf(r)[0] == "2Gi" {
				grew[r] = minute
			}
		}
	}
	return grew
}

// What was decided and has no place left in the rate, or is outside the window, is made once that lets it, and waits for no other decision;
// what is wanted later waits for its own.
func TestWhatWasDecidedIsMadeOnceItMayBe(t *testing.T) {
	soon := func(w *world, minutes int) string {
		return w.in.Now.Add(time.Duration(minutes) * time.Minute).UTC().Format("15:04")
	}
	for name, test := range map[string]struct {
		rules func(*world)
		want  map[int]int // decisions come after 15, 30, 45 and 60 minutes
	}{
		"nothing holds it back": {func(*world) {}, map[int]int{0: 15, 1: 15, 2: 15}},
		"one in 20 minutes": {func(w *world) {
			w.in.Config.Change.Up.Rate = []config.Pace{{Replicas: 1, Period: config.Duration(20 * time.Minute)}}
		}, map[int]int{0: 15, 1: 35, 2: 55}},
		"a window between two decisions": {func(w *world) {
			w.in.Config.Change.Up = windowAt(soon(w, 20), soon(w, 25))
		}, map[int]int{0: 20, 1: 20, 2: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			w := rareWorld(t)
			for _, cluster := range []string{"c000", "c001", "c002"} {
				w.setLoad(cluster, 10)
			}
			test.rules(w)
			if diff := cmp.Diff(test.want, w.grewAfter(62)); diff != "" {
				t.Errorf("minutes after which each replica grew (-want +got):\n%s\nblocked %v", diff, w.last.Sizing.Blocked)
			}
		})
	}
}

// What is off at the decision is made as soon as it is not, and what was wanted after the decision waits for the next one.
func TestWhatIsWantedAfterADecisionWaitsForTheNext(t *testing.T) {
	w := rareWorld(t)
	w.in.Config.Change.Up = off
	w.setLoad("c001", 10)
	w.run(16)
	w.setLoad("c002", 10)
	w.run(2)
	if diff := cmp.Diff(map[string]bool{"1/memory/up": true}, w.in.Memory.Sizes.Due); diff != "" {
		t.Errorf("what is due (-want +got):\n%s", diff)
	}
	w.in.Config.Change.Up = config.Resizing{}
	if diff := cmp.Diff(map[int]int{1: 1, 2: 12}, w.grewAfter(20)); diff != "" { // 18 minutes after the decision before
		t.Errorf("minutes after which each replica grew (-want +got):\n%s", diff)
	}
	if due := w.in.Memory.Sizes.Due; due != nil {
		t.Errorf("still due: %v", due)
	}
}

// A replica whose input was not known at the first decision is sized once it is, and not at the next decision.
func TestAFirstSizeWaitsForNoDecision(t *testing.T) {
	w := sizedWorld(2, 2, 2)
	w.in.Config.Size.Interval = config.Duration(6 * time.Hour)
	w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
	known := w.in.Fetched
	w.in.Fetched = []poll.Fetched{{Metric: known[0].Metric, Err: "connection refused"}}
	w.run(5)
	if s := w.in.InForce.Sizes; s != nil || w.in.Memory.Sizes.Decided.IsZero() {
		t.Fatalf("without an input the plan has %+v; decided at %s", s, w.in.Memory.Sizes.Decided)
	}
	w.in.Fetched = known
	w.run(5)
	if diff := cmp.Diff([][2]string{{"1280Mi", "2560Mi"}, {"1280Mi", "2560Mi"}, {"1280Mi", "2560Mi"}}, w.memories()); diff != "" {
		t.Errorf("with one (-want +got):\n%s\nblocked %v", diff, w.last.Sizing.Blocked)
	}
}

// A kill waits for no decision, and while nothing may change none is made: the first cycle in which it may decides.
func TestNoDecisionIsWaitedForInNeed(t *testing.T) {
	w := killedWorld(t, time.Second)
	w.in.Config.Size.Interval, w.in.Memory.Sizes.Decided = config.Duration(time.Hour), w.in.Now
	w.run(2)
	if got := w.memories()[1]; got != [2]string{"1280Mi", "3Gi"} {
		t.Errorf("after its kill replica 1 has %v", got)
	}

	w = rareWorld(t)
	w.in.Paused = true
	w.setLoad("c001", 10)
	w.run(40)
	w.in.Paused = false
	w.run(1)
	if got := w.memoryOf(1); got != [2]string{"2Gi", "4Gi"} {
		t.Errorf("after a freeze of 40 minutes replica 1 has %v; blocked %v", got, w.last.Sizing.Blocked)
	}
}

// With Prometheus away decisions go on: what follows the cluster's state changes at the next one, and what followed pods stays.
func TestDecisionsGoOnWithPrometheusAway(t *testing.T) {
	w := asideWorld()
	w.in.Config.Size.Interval = config.Duration(15 * time.Minute)
	w.uses(6, 1, 3, 0.5)
	for i := range w.in.Fetched {
		w.in.Fetched[i] = poll.Fetched{Metric: w.in.Fetched[i].Metric, Err: "connection refused"}
	}
	cores := func() []string {
		w.in.Surroundings.Nodes.At = w.in.Now
		w.run(1)
		return w.requests("cpu")
	}
	w.in.Surroundings.Nodes.Cores = 80
	next := w.in.Memory.Sizes.Decided.Add(15 * time.Minute)
	for w.in.Now.Add(time.Minute).Before(next) {
		if diff := cmp.Diff([]string{"500m", "500m", "500m"}, cores()); diff != "" {
			t.Fatalf("at %s, and the next decision is at %s (-want +got):\n%s", w.in.Now, next, diff)
		}
	}
	if diff := cmp.Diff([]string{"1", "1", "1"}, cores()); diff != "" || !w.last.Table.Frozen {
		t.Errorf("by the decision, frozen %t (-want +got):\n%s", w.last.Table.Frozen, diff)
	}
	if diff := cmp.Diff([]string{"2Gi", "6Gi", "1Gi"}, w.requests("memory")); diff != "" {
		t.Errorf("what followed pods (-want +got):\n%s", diff)
	}
}
