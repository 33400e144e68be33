package cycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/sim"
)

// remembering is a level fleet of three replicas whose clusters take a MiB for each object, and of whose pods each has so many MiB.
func remembering(t *testing.T, clusters, limit int) *liveWorld {
	t.Helper()
	w := shippedPlans(t, clusters)
	p := w.in.Config.Poll.Prometheus
	p.Metrics = append(slices.Clone(p.Metrics), config.Metric{ID: "objects", Query: "objects", Match: &config.Match{Label: "server", To: config.MatchServer}})
	w.in.Config.Index.PNorm = &config.PNorm{P: "1", Weights: map[string]config.Decimal{"apps": "1", "objects": "0"}}
	w.in.Config.Index.Dimensions = &config.Dimensions{Memory: &config.Memory{Weights: map[string]config.Bytes{"objects": "1Mi"}, Base: "0", LimitShare: "1"}}
	w.in.Fetched = append(slices.Clone(w.in.Fetched), poll.Fetched{Metric: "objects"})
	w.shape = func(p *observed.Pod) { p.MemoryLimit = int64(limit) << 20 }
	for i := range clusters {
		w.setObjects(fmt.Sprintf("c%03d", i), 10)
	}
	if w.in.Config.Validate().ToAggregate() != nil {
		t.Fatal(w.in.Config.Validate().ToAggregate())
	}
	w.step(time.Minute)
	return w
}

func (w *liveWorld) setObjects(name string, objects float64) {
	sim.SetLoad(&w.in.Fetched[1], name, objects)
}

// inUse is what replicas have in use, in MiB.
func (w *liveWorld) inUse() []int {
	var all []int
	for _, b := range w.last.InUse.Now {
		all = append(all, int(b>>20))
	}
	return all
}

func TestAReplicaThatRunsOutOfMemoryIsRelieved(t *testing.T) {
	w := remembering(t, 30, 200) // 100 MiB each
	w.cycles(60, func(int) {})
	if len(w.moved()) > 0 {
		t.Fatalf("nobody lacks anything: %v", w.moved())
	}
	grows := w.on(0)[0]
	w.setObjects(grows, 120)
	w.step(time.Minute)
	if got, want := w.last.Candidate.Verdict, "moves for replicas that have not enough memory"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w.until(t, "all are within their memory", time.Hour, func(Outcome) bool { return w.in.InForce.Rollout == nil && slices.Max(w.inUse()) <= 200 })
	if n := len(w.moved()); n < 1 || n > 4 || w.moved()[grows] != nil {
		t.Errorf("%d clusters moved: %v", n, w.moved())
	}
	moved := len(w.moved())
	w.cycles(120, func(int) {})
	if len(w.moved()) != moved {
		t.Errorf("more moved afterwards: %v", w.moved())
	}
}

// The load alone would fill replica 0, which has no memory for that.
func TestNoLoadIsLevelledOntoAReplicaWithoutMemory(t *testing.T) {
	w := remembering(t, 30, 200)
	for _, name := range w.on(0) {
		w.setLoad(name, 1)
		w.setObjects(name, 18)
	}
	w.cycles(24*60, func(int) {
		if slices.Max(w.inUse()) > 200 {
			t.Fatalf("%v MiB are in use of 200", w.inUse())
		}
	})
}

func TestWhatIsKnownOfMemoryIsTold(t *testing.T) {
	w := remembering(t, 30, 0) // no limit
	const unknown = "index/MemoryUnknown/"
	if !slices.Contains(problems(w.last), unknown) || w.last.InUse != nil {
		t.Errorf("%v, %v", problems(w.last), w.last.InUse)
	}
	w.shape = func(p *observed.Pod) { p.MemoryLimit = int64(200+p.Replica) << 20 }
	w.step(time.Minute)
	if got := w.last.InUse; got == nil || got.Room != 200<<20 || got.From != "1 of the pods' limit of 200 MiB" {
		t.Errorf("%+v", got)
	}
	w.shape = nil // the limits are not seen for a while
	w.step(time.Minute)
	if got := w.last.InUse; got == nil || got.Room != 200<<20 {
		t.Errorf("%+v", got)
	}
	heavy := w.on(1)[0]
	w.setObjects(heavy, 300)
	w.step(time.Minute)
	if want := "partition/MemoryShort/" + heavy; !slices.Contains(problems(w.last), want) {
		t.Errorf("%v, want %s", problems(w.last), want)
	}
	w.until(t, "the others have left it", 3*time.Hour, func(Outcome) bool { return w.in.InForce.Rollout == nil && len(w.on(w.row(t, heavy))) == 1 })
	if slices.Contains(problems(w.last), unknown) {
		t.Errorf("%v", problems(w.last))
	}
	w.in.Config.Index.Dimensions.Memory.Base = "1Gi"
	w.step(time.Minute)
	if w.last.InUse != nil || !slices.Contains(problems(w.last), unknown) {
		t.Errorf("%+v, %v", w.last.InUse, problems(w.last))
	}
}

// One replica more opens where memory asks for it and nobody said how many there are, and none where somebody did.
func TestMemoryAsksForAReplica(t *testing.T) {
	for _, people := range []bool{false, true} {
		w := remembering(t, 30, 100)
		w.in.Config.Change.Moves.Rate = nil
		if people {
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
		}
		for i := range 30 {
			w.setObjects(fmt.Sprintf("c%03d", i), 12)
		}
		w.cycles(120, func(int) {})
		want := 4
		if people {
			want = 3
		}
		if got := w.in.InForce.Replicas; got != want {
			t.Errorf("people say how many: %v; %d replicas, want %d (%v MiB)", people, got, want, w.inUse())
		}
		if short := slices.ContainsFunc(w.last.Problems, func(p problem.Problem) bool { return p.Kind == "MemoryShort" }); short != people {
			t.Errorf("people say how many: %v; that memory is short is told: %v", people, short)
		}
	}
}

func TestADeadReplicasClustersGoWhereThereIsMemory(t *testing.T) {
	w := remembering(t, 30, 200)
	w.in.Config.Change.Moves.Rate = nil
	for _, name := range w.on(1) {
		w.setObjects(name, 19)
	}
	w.setObjects(w.on(1)[0], 1)
	w.step(time.Minute)
	w.down[0] = true
	w.until(t, "replica 0 is empty", 3*time.Hour, func(Outcome) bool { return len(w.on(0)) == 0 })
	if got := w.inUse(); slices.Max(got) > 200 {
		t.Errorf("%v MiB are in use of 200", got)
	}
}

func TestARollbackKeepsToTheMemory(t *testing.T) {
	w := remembering(t, 30, 200)
	earlier := w.in.InForce.Clone()
	heavy := w.on(0)
	for _, name := range heavy {
		w.setObjects(name, 30)
	}
	w.in.Config.Change.Moves.Rate = nil
	w.until(t, "all are within their memory", 3*time.Hour, func(Outcome) bool { return w.in.InForce.Rollout == nil && slices.Max(w.inUse()) <= 200 })
	w.in.Rollback = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}
	w.until(t, "it is answered", 3*time.Hour, func(out Outcome) bool {
		if slices.Max(w.inUse()) > 200 {
			t.Fatalf("%v MiB are in use of 200", w.inUse())
		}
		return out.Done
	})
	if !slices.Contains(problems(w.last), "rollout/RollbackSkips/"+plan.AnnotationRollback) {
		t.Errorf("%v", problems(w.last))
	}
}

// TestWithoutTheDimensionNothingIsKnownOfIt: nor is anything written that was not before.
func TestWithoutTheDimensionNothingIsKnownOfIt(t *testing.T) {
	w := shippedPlans(t, 30)
	w.shape = func(p *observed.Pod) { p.MemoryLimit = 200 << 20 }
	w.step(time.Minute)
	text, err := json.Marshal(w.last.Memory)
	if err != nil {
		t.Fatal(err)
	}
	if w.last.InUse != nil || strings.Contains(string(text), "memoryLimit") {
		t.Errorf("%+v, %s", w.last.InUse, text)
	}
	if diff := cmp.Diff([]string(nil), problems(w.last)); diff != "" {
		t.Error(diff)
	}
}
