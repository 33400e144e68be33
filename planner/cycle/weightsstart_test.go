package cycle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/size/inputs"
)

// TestReferencesTakenAnewKeepTheNumberOfTheWeights: a pin asked for twelve replicas meanwhile, from which growth must not count.
func TestReferencesTakenAnewKeepTheNumberOfTheWeights(t *testing.T) {
	shares := strings.NewReplacer(`, capacity: "5"`, "", "normalize: {none: {}}\n", "")
	text := shares.Replace(fmt.Sprintf(weighedFile, stickily, 5, "{from: 0, weight: 50}", ""))
	w := weighedWorld(t, text, 4, alike(40, 0.5)...)
	w.slowly(2)
	began, before := w.in.Memory.Counts.Start, w.in.InForce.References["apps"]
	w.in.Pins = plan.Pins{"c003": 11}
	for _, s := range w.in.Discovered.Secrets {
		w.setLoad(s.Name, 1)
	}
	w.slowly(25)
	start, after := w.in.Memory.Counts.Start, w.in.InForce.References["apps"]
	if before != "20" || after != "40" {
		t.Fatalf("references of %s, and then of %s", before, after)
	}
	if began.Replicas != 4 || start.Replicas != 4 || math.Abs(start.Load-began.Load/2) > 1e-6 {
		t.Errorf("growth counts from %+v instead of %+v: want half the load", start, began)
	}
	if got, there := w.last.Counts.Weights.Replicas, w.in.InForce.Replicas; got != 6 || there != 12 {
		t.Errorf("the weights ask for %d of %d replicas, want 6 of 12", got, there)
	}
}

// TestNoRebaseUnderWeights: it might ask for another number of replicas, at the word of whoever may annotate the plan.
func TestNoRebaseUnderWeights(t *testing.T) {
	for wish, why := range map[configmap.Rebase]string{
		configmap.RebaseAnew: "the references are not taken anew: size.weights",
		configmap.RebaseBack: "the references of before are not taken back: size.weights",
	} {
		w, see := measuredForLong(t)
		w.in.Config.Size.Weights = []config.WeightInterval{{From: "0", Weight: 0}}
		w.in.Memory.Before = map[string]string{"events": "300"}
		w.in.Rebase, w.in.Now = wish, w.in.Now.Add(30*24*time.Hour)
		see(2)
		out := w.cycle()
		if !out.Rebased || w.in.InForce.References["events"] != "600" || !strings.Contains(strings.Join(messages(out), " "), why) {
			t.Errorf("%s: answered %t, events %s, %v", wish, out.Rebased, w.in.InForce.References["events"], messages(out))
		}
	}
}

// Growth that is counted anew leaps by nothing; a new capacity is what each replica carries that there is.
func TestACountThatBeginsAnewDoesNotLeap(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*world)
		replicas int
		load     float64 // from which growth counts then
	}{
		"the history is lost": {func(w *world) { w.in.Memory.Counts, w.in.Memory.Unit = memory.Counts{}, "" }, 8, 80},
		"an interval is edited": {func(w *world) {
			w.in.Config.Size.Weights = []config.WeightInterval{{From: "0", To: "500", Weight: 50}, {From: "500", Weight: 60}}
		}, 8, 80},
		"in another unit": {func(w *world) { w.in.Memory.Unit = "another" }, 8, 80},
		"another capacity": {func(w *world) {
			capacity := config.Decimal("20")
			w.in.Config.Partition.Capacity = &capacity
		}, 6, 160},
	} {
		t.Run(name, func(t *testing.T) {
			w := weighedWorld(t, fmt.Sprintf(weighedFile, stickily, 5, "{from: 0, weight: 50}", ""), 4, alike(80, 1)...)
			w.slowly(24)
			if got := w.in.InForce.Replicas; got != 8 {
				t.Fatalf("%d replicas at the beginning", got)
			}
			test.change(w)
			w.slowly(24)
			if got := w.in.Memory.Counts.Start; got.Replicas != 8 || math.Abs(got.Load-test.load) > 1e-6 {
				t.Errorf("growth counts from %+v, want 8 for %v", got, test.load)
			}
			if got := w.last.Counts.Weights.Replicas; got != test.replicas {
				t.Errorf("%d replicas, want %d", got, test.replicas)
			}
		})
	}
}

// What carries a tenth more than the weights ask waits for no least change.
func TestOverTheWeightsCapacityNoChangeIsTooSmall(t *testing.T) {
	for name, test := range map[string]struct {
		loads   []float64
		want    int
		blocked []resize.Blocked
	}{
		"each a twentieth over": {alike(28, 0.75), 2, blockedCount(change.Out, change.TooSmall, "2", "3")},
		"each half over":        {alike(32, 1), 4, nil},
	} {
		w := weighedWorld(t, fmt.Sprintf(weighedFile, stickily, 10, "{from: 0, weight: 0}", ", out: {minChange: {value: 3}}"), 2, test.loads...)
		w.slowly(24)
		if got := w.in.InForce.Replicas; got != test.want {
			t.Errorf("%s: %d replicas, want %d", name, got, test.want)
		}
		if diff := cmp.Diff(test.blocked, w.blockedCounts()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// A node that is read bounds as one that is written does.
func TestTheLargestNodeAddsReplicas(t *testing.T) {
	w := weighedWorld(t, fmt.Sprintf(weighedFile, stickily, 10, "{from: 0, weight: 100}", ""), 2, alike(40, 1)...)
	w.in.Config.Size.NodeCap.FromNodes = &config.FromNodes{}
	for range 12 {
		w.in.Surroundings.Nodes = &inputs.Nodes{Count: 3, Largest: &inputs.Room{Node: "a", CPU: 1000, Memory: 8 << 30}, At: w.in.Now}
		w.slowly(1)
	}
	if got, most := w.in.InForce.Replicas, w.fullest(); got != 5 || most > 10 {
		t.Errorf("%d replicas, the fullest with %v: want 5, of 10 at most", got, most)
	}
}

// A rule that asks for more than a node has however many replicas there are makes none, and what it misses is told once.
func TestARuleThatNoNumberHelpsAddsNoReplica(t *testing.T) {
	w := weighedWorld(t, fmt.Sprintf(weighedFile, stickily, 10, "{from: 0, weight: 100}", ""), 2, alike(16, 1)...)
	w.in.Config.Size.NodeCap.CPU = "2"
	w.in.Config.Size.Policies[0].Rules = []config.SizeRule{{List: config.Requests, Resource: "cpu", Base: "3"},
		{List: config.Requests, Resource: "memory", Slope: "1", Input: "memoryInUse", Scope: config.ScopeReplica}}
	w.slowly(12)
	if got := w.in.InForce.Replicas; got != 2 || !w.last.Counts.Weights.OverNode {
		t.Errorf("%d replicas, want 2: %+v", got, w.last.Counts.Weights)
	}
	var told []string
	for _, p := range w.last.Problems {
		if p.Phase == problem.PhaseSize {
			told = append(told, p.Kind)
		}
	}
	if diff := cmp.Diff([]string{"NodeTooSmall", "NodeTooSmall", "SizeInputMissing"}, slices.Sorted(slices.Values(told))); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
