package cycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/track"
)

// takenOver is a fleet that is level when it is taken over.
func takenOver(t *testing.T, clusters int) *liveWorld {
	t.Helper()
	w := shippedPlans(t, clusters)
	w.in.Memory.Evidence = track.Evidence{}
	w.step(time.Minute)
	return w
}

// Taken over, a fleet keeps its number of replicas however much it grows, and people hear of it; with a capacity it follows.
func TestGrowthWithoutACapacityIsToldAndMovesNothing(t *testing.T) {
	w := takenOver(t, 60)
	line := w.last.Line
	if line == nil || line.Configured || line.Share < 0.99 || line.Share > 1.01 || line.Load != w.last.Now[line.Fullest].TotalLoad {
		t.Fatalf("taken over: %+v", line)
	}
	told := func() bool {
		return slices.ContainsFunc(messages(w.last), func(m string) bool {
			return strings.HasPrefix(m, "BeyondEvidence: replica ") && strings.Contains(m, "of what the fullest one did on 20") && strings.Contains(m, "set (`ballast calibrate` finds it)")
		})
	}
	replicas := w.in.InForce.Replicas
	grow := func(load float64) {
		for name := range w.in.InForce.Clusters {
			w.setLoad(name, load)
		}
	}
	grow(14) // each has 1.4 times what it had
	w.cycles(59, func(int) {})
	if told() {
		t.Error("it is told within an hour")
	}
	w.cycles(60, func(int) {})
	if !told() || w.last.Line.Share < 1.39 || w.last.Line.Share > 1.41 {
		t.Errorf("not told of %+v: %v", w.last.Line, messages(w.last))
	}
	if w.in.InForce.Replicas != replicas || len(w.moved()) > 0 {
		t.Errorf("%d replicas, and %v moved", w.in.InForce.Replicas, w.moved())
	}
	grow(10)
	w.step(time.Minute)
	if told() {
		t.Error("it is told still")
	}
	grow(14)
	capacity := config.Decimal("0.33") // what a third of the fleet made
	w.in.Config.Partition.Capacity = &capacity
	w.until(t, "a replica comes", 24*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Replicas > replicas })
	if told() || !w.last.Line.Configured || w.in.Memory.Evidence != (track.Evidence{}) {
		t.Errorf("%+v, %+v", w.last.Line, w.in.Memory.Evidence)
	}
}

// The next leader goes on with the evidence of the one before, and evidence that nobody can have seen is taken anew.
func TestTheNextLeaderKnowsTheEvidence(t *testing.T) {
	w := takenOver(t, 60)
	want := w.in.Memory.Evidence
	parts, stale := w.in.Memory.Parts(nil)
	back, dropped := memory.Of(parts)
	if diff := cmp.Diff(want, back.Evidence); diff != "" || want.Load == 0 || len(stale)+len(dropped) > 0 {
		t.Fatalf("%v %v (-want +got):\n%s", stale, dropped, diff)
	}
	w.in.Memory.Evidence.Load *= 1000
	w.step(time.Minute)
	if got := w.in.Memory.Evidence.Load; got != want.Load {
		t.Errorf("forged: %s, want %s", got, want.Load)
	}
	w.in.Config.Index.PNorm.Weights = map[string]config.Decimal{}
	before := want.Of
	for _, m := range loads.MetricsOf(w.in.Config) {
		w.in.Config.Index.PNorm.Weights[m.ID] = "3"
	}
	w.step(time.Minute)
	if got := w.in.Memory.Evidence; got.Of == before {
		t.Errorf("a load means another thing, and the evidence is the same: %+v", got)
	}
}

// A number that a person or an autoscaler has, and loads that are shares of the present fleet, leave nothing to hold.
func TestNoEvidenceWhereItSaysNothing(t *testing.T) {
	for name, change := range map[string]func(c *config.PlannerConfig){
		"a number":   func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Fixed: 3} },
		"autoscaled": func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Workload: true} },
		"minMax":     func(c *config.PlannerConfig) { c.Normalize = config.Normalize{MinMax: &config.MinMax{}} },
	} {
		w := shippedPlans(t, 30)
		change(&w.in.Config)
		w.step(time.Minute)
		if w.last.Line != nil || w.in.Memory.Evidence != (track.Evidence{}) {
			t.Errorf("%s: %+v, %+v", name, w.last.Line, w.in.Memory.Evidence)
		}
	}
}
