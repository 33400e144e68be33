package cycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/resize"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// scalingFile is a fleet that has as many replicas as its capacity asks for, under some rules of change.
func scalingFile(partition, rules string) string {
	text := fmt.Sprintf(weighedFile, partition, 10, "{from: 0, weight: 0}", rules)
	begin, end := strings.Index(text, "size:"), strings.Index(text, "change:")
	return text[:begin] + text[end:]
}

const stickily = "sticky: {downWindow: 1h}"

// blocked are what of the number of replicas waits, without times and words.
func (w *world) blockedCounts() (out []resize.Blocked) {
	for _, b := range w.last.Waiting() {
		if b.Resource == resize.ResourceReplicas {
			b.Since, b.Until, b.Why = time.Time{}, time.Time{}, ""
			out = append(out, b)
		}
	}
	return out
}

func blockedCount(d change.Direction, reason change.BlockReason, from, to string) []resize.Blocked {
	return []resize.Blocked{{Replica: -1, Resource: resize.ResourceReplicas, Direction: d, Reason: reason, From: from, To: to}}
}

// Whatever proposes a number, change.out and change.in say when, and how much of it.
func TestRulesOfChangeHoldTheNumber(t *testing.T) {
	opens := epoch.Add(5 * time.Hour)
	window := fmt.Sprintf("{mode: MaintenanceWindow, windows: [{begin: %q, end: %q}]}", opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"))
	for name, test := range map[string]struct {
		rules    string
		loads    []float64
		replicas int
		within   int // ten minutes
		want     int
		blocked  []resize.Blocked
	}{
		"nothing is configured":  {"", alike(32, 1), 2, 12, 4, nil},
		"out is Off":             {", out: {mode: Off}", alike(32, 1), 2, 30, 2, blockedCount(change.Out, change.UpdatePolicy, "2", "4")},
		"out before its window":  {", out: " + window, alike(32, 1), 2, 28, 2, blockedCount(change.Out, change.OutsideMaintenance, "2", "4")},
		"out in its window":      {", out: " + window, alike(32, 1), 2, 33, 4, nil},
		"out is too few":         {", out: {minChange: {value: 3}}", alike(28, 0.7), 2, 30, 2, blockedCount(change.Out, change.TooSmall, "2", "3")},
		"out, though few, over":  {", out: {minChange: {value: 3}}", alike(32, 1), 2, 30, 4, nil},
		"out waits to be stable": {", out: {stabilizationWindow: 2h}", alike(32, 1), 2, 11, 2, blockedCount(change.Out, change.StabilizationWindow, "2", "4")},
		"out is stable":          {", out: {stabilizationWindow: 2h}", alike(32, 1), 2, 18, 4, nil},
		"out by one in a day":    {", out: {rate: [{replicas: 1, period: 24h}]}", alike(32, 1), 2, 30, 3, blockedCount(change.Out, change.RateLimit, "3", "4")},
		"in is Off":              {", in: {mode: Off}", alike(10, 1), 3, 60, 3, blockedCount(change.In, change.UpdatePolicy, "3", "2")},
		"in before its window":   {", in: " + window, alike(10, 1), 3, 28, 3, blockedCount(change.In, change.OutsideMaintenance, "3", "2")},
		"in after downWindow":    {"", alike(10, 1), 3, 60, 2, nil},
		"in waits longer":        {", in: {stabilizationWindow: 6h}", alike(10, 1), 3, 34, 3, blockedCount(change.In, change.StabilizationWindow, "3", "2")},
		"in has waited longer":   {", in: {stabilizationWindow: 6h}", alike(10, 1), 3, 60, 2, nil},
	} {
		for _, partition := range []string{stickily, "lpt: {}"} {
			if strings.Contains(name, "too few") && partition != stickily {
				continue
			}
			t.Run(name+", "+partition, func(t *testing.T) {
				w := weighedWorld(t, scalingFile(partition, test.rules), test.replicas, test.loads...)
				w.slowly(test.within)
				if got := w.in.InForce.Replicas; got != test.want {
					t.Errorf("%d replicas, want %d: %s", got, test.want, w.last.Candidate.Verdict)
				}
				if diff := cmp.Diff(test.blocked, w.blockedCounts()); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// What people say themselves waits for no rule of change: a number in the configuration, pins, and an earlier plan.
func TestPeoplesNumbersAreNotHeld(t *testing.T) {
	const off = ", out: {mode: Off}, in: {mode: Off}"
	held := func(t *testing.T) *world {
		w := weighedWorld(t, scalingFile(stickily, off), 3, alike(10, 1)...)
		w.slowly(12)
		if got := w.in.InForce.Replicas; got != 3 {
			t.Fatalf("%d replicas at the beginning", got)
		}
		return w
	}
	for name, test := range map[string]struct {
		says func(w *world)
		want int
	}{
		"a pin":                {func(w *world) { w.in.Pins = plan.Pins{"c003": 4} }, 5},
		"more by the file":     {func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5} }, 5},
		"fewer by the file":    {func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 2} }, 2},
		"no more than so many": {func(w *world) { most := 2; w.in.Config.Partition.MaxReplicas = &most }, 2},
		"a cap of clusters":    {func(w *world) { w.in.Config.Partition.MaxClustersPerReplica = 2 }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := held(t)
			test.says(w)
			w.slowly(60)
			if got := w.in.InForce.Replicas; got != test.want {
				t.Errorf("%d replicas, want %d: %s %v", got, test.want, w.last.Candidate.Verdict, w.last.Waiting())
			}
		})
	}
	t.Run("minReplicas is no such word", func(t *testing.T) {
		w := held(t)
		least := 4
		w.in.Config.Partition.MinReplicas = &least
		w.slowly(60)
		if got := w.in.InForce.Replicas; got != 3 {
			t.Errorf("%d replicas, want 3", got)
		}
		if diff := cmp.Diff(blockedCount(change.Out, change.UpdatePolicy, "3", "4"), w.blockedCounts()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// A replica that was OOM-killed lets others come at once, but for Off and windows.
func TestAnOOMKillLetsReplicasCome(t *testing.T) {
	w := weighedWorld(t, scalingFile(stickily, ", out: {stabilizationWindow: 24h}"), 2, alike(32, 1)...)
	w.slowly(30)
	if got := w.in.InForce.Replicas; got != 2 {
		t.Fatalf("%d replicas before the window is over", got)
	}
	w.in.Observed.Pods = []observed.Pod{{Replica: 0, OOMKilled: true, KilledAt: w.in.Now}}
	w.slowly(2)
	if got := w.in.InForce.Replicas; got != 4 {
		t.Errorf("%d replicas, want 4: %v", got, w.last.Waiting())
	}
}

// TestAKillThatIsDatedAheadLetsReplicasComeOnce: by a node's clock that is four minutes ahead it is later than the change made for it,
// and each wish of the day after was urgent.
func TestAKillThatIsDatedAheadLetsReplicasComeOnce(t *testing.T) {
	w := weighedWorld(t, scalingFile(stickily, ", out: {stabilizationWindow: 24h}"), 2, alike(32, 1)...)
	w.slowly(30)
	w.in.Observed.Pods = []observed.Pod{{Replica: 0, OOMKilled: true, KilledAt: w.in.Now.Add(14 * time.Minute)}}
	w.slowly(2)
	if got := w.in.InForce.Replicas; got != 4 {
		t.Fatalf("%d replicas, want 4: %v", got, w.last.Waiting())
	}
	for _, s := range w.in.Discovered.Secrets {
		w.setLoad(s.Name, 1.6)
	}
	w.slowly(30)
	if got := w.in.InForce.Replicas; got != 4 {
		t.Errorf("%d replicas by the same kill, want 4", got)
	}
	if diff := cmp.Diff(blockedCount(change.Out, change.StabilizationWindow, "4", "6"), w.blockedCounts()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.in.Observed.Pods[0].KilledAt = w.in.Now.Add(14 * time.Minute)
	w.slowly(2)
	if got := w.in.InForce.Replicas; got != 6 {
		t.Errorf("%d replicas by the next kill, want 6: %v", got, w.last.Waiting())
	}
}

// anyScaling draws rules of both directions.
func anyScaling(t *rapid.T) string {
	one := func(of string) string {
		windows := rapid.SampledFrom([]string{"", "", "", "mode: Off, ", `mode: MaintenanceWindow, windows: [{begin: "13:00", end: "17:00"}], `}).Draw(t, of)
		return fmt.Sprintf(", %s: {%sstabilizationWindow: %s, cooldown: %s%s}", of, windows, rapid.SampledFrom([]string{"0s", "30m", "1h", "2h"}).Draw(t, of+" window"),
			rapid.SampledFrom([]string{"0s", "1h"}).Draw(t, of+" cooldown"),
			rapid.SampledFrom([]string{"", ", minChange: {value: 2}", ", rate: [{replicas: 1, period: 1h}]"}).Draw(t, of+" more"))
	}
	return one("out") + one("in")
}

// Under any rules: the number keeps to its bounds, follows the table where nothing holds it, nothing changes while nothing that is
// measured does, and what is blocked until some time comes about then.
func TestTheNumberKeepsToItsRules(t *testing.T) {
	freed, scaled := 0, 0
	keeps := func(t *rapid.T) {
		partition := rapid.SampledFrom([]string{stickily, "lpt: {}"}).Draw(t, "partition")
		weights := rapid.SampledFrom([]string{"{from: 0, weight: 0}", "{from: 0, weight: 60}", "{from: 0, to: 15, weight: 0}, {from: 15, weight: 80}"}).Draw(t, "weights")
		text := fmt.Sprintf(weighedFile, partition, 4, weights, anyScaling(t))
		w := weighedWorld(t, text, rapid.IntRange(1, 6).Draw(t, "replicas"), alike(10, 0.5)...)
		w.slowly(2)
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			each := rapid.SampledFrom([]float64{0.4, 1, 2, 3, 5}).Draw(t, "each")
			for _, s := range w.in.Discovered.Secrets {
				w.setLoad(s.Name, each)
			}
			for range rapid.IntRange(6, 24).Draw(t, "cycles") {
				before, stood := w.blocked(), w.in.InForce.Replicas
				w.slowly(1)
				if n := w.in.InForce.Replicas; n < 1 || n > 16 {
					t.Fatalf("%d replicas", n)
				}
				if w.in.InForce.Replicas != stood {
					scaled++
				}
				if before != nil && !before.Until.IsZero() && !before.Until.After(w.in.Now) && w.in.InForce.Rollout == nil {
					freed++
					if now := w.blocked(); now != nil && now.Reason == before.Reason && now.To == before.To && !now.Until.After(w.in.Now) {
						t.Fatalf("it was blocked until now, and still is: %v", now)
					}
				}
			}
			asks := w.last.Counts.Weights.Replicas
			if w.blocked() == nil && w.last.Next.Rollout == nil && w.in.InForce.Replicas != asks {
				t.Fatalf("%d replicas, the weights ask for %d, and nothing is in the way: %s", w.in.InForce.Replicas, asks, w.last.Candidate.Verdict)
			}
		}
		w.slowly(40)
		n, waits := w.in.InForce.Replicas, w.blocked() != nil
		w.slowly(5)
		if w.in.InForce.Replicas != n && !waits {
			t.Fatalf("%d replicas instead of %d after idle hours", w.in.InForce.Replicas, n)
		}
	}
	// A hundred draws see some ten blocks end; where they saw none, a few hundred more will.
	for round := 0; round < 5 && (freed == 0 || scaled == 0); round++ {
		rapid.Check(t, keeps)
	}
	if freed == 0 || scaled == 0 {
		t.Errorf("%d blocks ended, %d changes", freed, scaled)
	}
}

// blocked is what keeps the number from changing by the rules of change.
func (w *world) blocked() *resize.Blocked {
	for _, b := range w.last.Waiting() {
		if b.Resource == resize.ResourceReplicas && b.Reason != change.Weight && b.Reason != change.Paradoxical {
			return &b
		}
	}
	return nil
}

// A load that is low for less than the window takes no replica away.
func TestASpikeDownTakesNoReplicaAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := weighedWorld(t, fmt.Sprintf(weighedFile, rapid.SampledFrom([]string{stickily, "lpt: {}"}).Draw(t, "partition"), 5, "{from: 0, weight: 20}",
			", in: {stabilizationWindow: 2h}"), 3, alike(10, 1.5)...)
		w.slowly(13)
		stood := w.in.InForce.Replicas
		for range rapid.IntRange(1, 4).Draw(t, "spikes") {
			for k, each := range []float64{rapid.Float64Range(0.01, 0.6).Draw(t, "low"), 1.5} {
				for _, s := range w.in.Discovered.Secrets {
					w.setLoad(s.Name, each)
				}
				w.slowly(rapid.IntRange(1, 11+k).Draw(t, "long"))
				if got := w.in.InForce.Replicas; got != stood {
					t.Fatalf("%d replicas instead of %d", got, stood)
				}
			}
		}
		for _, s := range w.in.Discovered.Secrets {
			w.setLoad(s.Name, 0.2)
		}
		w.slowly(24)
		if w.in.InForce.Replicas >= stood {
			t.Fatalf("%d replicas after four hours", w.in.InForce.Replicas)
		}
	})
}
