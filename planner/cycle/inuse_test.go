package cycle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/config/validation"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/preview"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/snapshot"
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
	if validation.Validate(w.in.Config).ToAggregate() != nil {
		t.Fatal(validation.Validate(w.in.Config).ToAggregate())
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
	w.until(t, "all are within their memory", time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil && slices.Max(w.inUse()) <= 200 })
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
	w.until(t, "the others have left it", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil && len(w.on(w.row(t, heavy))) == 1 })
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
	w.until(t, "replica 0 is empty", 3*time.Hour, func(outcome.Outcome) bool { return len(w.on(0)) == 0 })
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
	w.until(t, "all are within their memory", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil && slices.Max(w.inUse()) <= 200 })
	w.in.Rollback = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}
	w.until(t, "it is answered", 3*time.Hour, func(out outcome.Outcome) bool {
		if slices.Max(w.inUse()) > 200 {
			t.Fatalf("%v MiB are in use of 200", w.inUse())
		}
		return out.Done
	})
	if !slices.Contains(problems(w.last), "rollout/RollbackSkips/"+plan.AnnotationRollback) {
		t.Errorf("%v", problems(w.last))
	}
}

// goingBack is a fleet of which one replica has all clusters, and no memory for more than half of each of the others; all but
// a few are to go back to those.
func goingBack(n int) (*snapshot.Snapshot, map[string]int) {
	on, back := map[string]int{}, map[string]int{}
	for i := range n {
		name := fmt.Sprintf("c%05d", i)
		on[name], back[name] = 0, i%3
	}
	w := grouped(on, nil)
	w.cycle()
	s := preview.Preview(w.in)
	s.InUse = &outcome.InUse{Room: plan.Bytes(n), Of: make([]plan.Bytes, n), Now: []plan.Bytes{plan.Bytes(10 * n), 0, 0}}
	for i := range n {
		s.InUse.Of[i] = plan.Bytes(1 + i*14/n)
	}
	return s, back
}

func TestWhatGoesBackIsWithinTheMemory(t *testing.T) {
	s, back := goingBack(400)
	stay := proposal.KeepWithin(s, back, 3)
	on := s.InUse.On(3, func(i int) int { return back[s.Fleet.Clusters[i].Shard.ID] }) // what stays is on 0
	for r := 1; r < 3; r++ {
		if on[r] > 400 || on[r] < 390 {
			t.Errorf("replica %d has %d of 400", r, on[r])
		}
	}
	if len(stay)+len(back) != 400 || len(stay) == 0 {
		t.Errorf("%d stay, and %d go", len(stay), len(back))
	}
	for _, name := range stay { // the largest of each replica
		if at, _ := strconv.Atoi(name[1:]); at < 200 {
			t.Errorf("%s stays, which takes little", name)
		}
	}
}

func BenchmarkKeepWithin(b *testing.B) {
	for _, n := range []int{1000, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, back := goingBack(n)
			for b.Loop() {
				proposal.KeepWithin(s, maps.Clone(back), 3)
			}
		})
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

// Where size rules make the limits a small replica's is nobody's room: the node cap is, and without it nothing is bounded.
func TestLimitsThatSizesMakeAreNoRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*liveWorld)
		room   plan.Bytes
		from   string
	}{
		"the limits are people's":     {func(w *liveWorld) { w.in.Config.Size = config.Size{} }, 120 << 20, "1 of the pods' limit of 120 MiB"},
		"cpu alone has a rule":        {func(w *liveWorld) { w.in.Config.Size.Policies[0].Rules[0].Resource = "cpu" }, 120 << 20, "1 of the pods' limit of 120 MiB"},
		"nobody says what a node has": {func(*liveWorld) {}, 0, ""},
		"the node cap":                {func(w *liveWorld) { w.in.Config.Size.NodeCap.Memory = "2Gi" }, 2 << 30, "1 of the node cap of 2 GiB"},
		"a share of the node cap": {func(w *liveWorld) {
			w.in.Config.Size.NodeCap.Memory = "2Gi"
			w.in.Config.Index.Dimensions.Memory.LimitShare = "0.5"
		}, 1 << 30, "0.5 of the node cap of 2 GiB"},
		"the capacity": {func(w *liveWorld) {
			capacity := config.Bytes("300Mi")
			w.in.Config.Index.Dimensions.Memory.Capacity = &capacity
		}, 300 << 20, "index.dimensions.memory.capacity"},
	} {
		t.Run(name, func(t *testing.T) {
			w := remembering(t, 30, 200) // 100 MiB each
			w.shape = func(p *observed.Pod) { p.MemoryLimit = int64(120+200*p.Replica) << 20 }
			w.in.Config.Size = config.Size{Apply: config.InPlace, Policies: []config.SizePolicy{{Name: "ours", Rules: []config.SizeRule{
				{List: config.Requests, Resource: "memory", Base: "1Gi"}}}}}
			tc.change(w)
			w.step(time.Minute)
			told := slices.Contains(problems(w.last), "index/MemoryUnknown/")
			if tc.from == "" {
				if w.last.InUse != nil || !told {
					t.Errorf("bounded by %+v, told %t", w.last.InUse, told)
				}
				return
			}
			if got := w.last.InUse; got == nil || got.Room != tc.room || got.From != tc.from || told {
				t.Errorf("%+v, told %t; want %d by %q", got, told, tc.room, tc.from)
			}
		})
	}
}

// Sizes per replica, of which one is small: the fleet opens no replica for want of memory that each has for itself.
func TestASmallReplicaStarvesNoOther(t *testing.T) {
	w := remembering(t, 30, 200)
	w.in.Config.Change.Moves.Rate = nil
	w.in.Config.Size = config.Size{Apply: config.InPlace, NodeCap: config.SizeCap{Memory: "1Gi"}, Policies: []config.SizePolicy{{Name: "ours",
		Rules: []config.SizeRule{{List: config.Requests, Resource: "memory", Slope: "1Mi", Input: "objects"}}}}}
	w.shape = func(p *observed.Pod) { p.MemoryLimit = []int64{90, 120, 120, 120}[min(p.Replica, 3)] << 20 } // of 100 MiB that each takes
	w.cycles(180, func(int) {})
	if w.in.InForce.Replicas != 3 || len(w.moved()) > 0 {
		t.Errorf("%d replicas, moved %v", w.in.InForce.Replicas, w.moved())
	}
}
