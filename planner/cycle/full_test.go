package cycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ground"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

func TestThePlanSaysWhoHasAsManyClustersAsItMay(t *testing.T) {
	w := grouped(map[string]int{"a": 0, "b": 0, "c": 0, "d": 1, "e": 1, "f": 2}, nil)
	w.in.Config.Partition.MaxClustersPerReplica = 3
	w.cycle()
	if diff := cmp.Diff([]int{0}, w.in.InForce.Full); diff != "" || w.in.InForce.MaxClusters != 3 {
		t.Errorf("of at most %d clusters (-want +got):\n%s", w.in.InForce.MaxClusters, diff)
	}
	w.add("0pted-out", 0)
	w.place("0pted-out", 1)
	w.secret("0pted-out").Unmanaged = true
	w.run(1)
	if diff := cmp.Diff([]int{0, 1}, w.in.InForce.Full); diff != "" {
		t.Errorf("one that has no row counts (-want +got):\n%s", diff)
	}
	if want := "replica 0, 1 takes no new cluster while another one does: it is full"; !strings.Contains(w.last.Reason, want) {
		t.Errorf("the reason is %q, want %q in it", w.last.Reason, want)
	}
	w.remove("a")
	w.remove("0pted-out")
	w.run(1)
	if diff := cmp.Diff([]int(nil), w.in.InForce.Full); diff != "" || !strings.Contains(w.last.Reason, "no replica is full any more") {
		t.Errorf("%q (-want +got):\n%s", w.last.Reason, diff)
	}
	w.in.Config.Partition.MaxClustersPerReplica = 0
	if w.run(1); w.in.InForce.MaxClusters != 0 {
		t.Errorf("without a bound the plan says %d", w.in.InForce.MaxClusters)
	}
}

// TestThePlanSaysWhoHasNoMemoryForOneMore: and memory that jitters about the line writes no plan.
func TestThePlanSaysWhoHasNoMemoryForOneMore(t *testing.T) {
	w := remembering(t, 30, 200) // ten clusters of 10 MiB each; high is 190 MiB, low 170
	w.cycles(360, func(int) {})  // what moved while the fleet was levelled, and the references, are measured anew
	first := w.on(0)
	takes := func(all float64) {
		for _, name := range first {
			w.setObjects(name, all/10)
		}
		w.step(time.Minute)
	}
	for _, step := range []struct {
		all  float64
		want []int
	}{{165, nil}, {185, []int{0}}, {165, []int{0}}, {150, nil}, {165, nil}} {
		if takes(step.all); !slices.Equal(w.in.InForce.Full, step.want) {
			t.Errorf("with %v MiB in use of 200 %v are full, want %v", step.all, w.in.InForce.Full, step.want)
		}
	}
	takes(182)
	writes, coin := w.writes, rand.New(rand.NewPCG(1, 2))
	for range 120 {
		if takes(178 * (1 + 0.03*(2*coin.Float64()-1))); w.last.Changed {
			t.Errorf("the plan was written while memory jitters, %v MiB are in use: %s", w.inUse(), w.last.Reason)
		}
	}
	if w.writes != writes || len(w.moved()) > 0 {
		t.Errorf("the plan was written %d times while memory jitters, and %v moved", w.writes-writes, w.moved())
	}
}

// fullFleet is a drawn fleet of up to three replicas that mode, rollouts, cordons, groups, pins, the most clusters, memory and a
// capacity bound.
func fullFleet(t *rapid.T) *liveWorld {
	on, labelled := map[string]int{}, map[string][]string{}
	sets := rapid.SampledFrom([][]string{nil, nil, {"hubs"}, {"pay"}, {"hubs", "pay"}})
	for i := range rapid.IntRange(2, 9).Draw(t, "clusters") { // of which one is known: what is new binds no group
		name := fmt.Sprintf("c%d", i)
		on[name], labelled[name] = rapid.IntRange(0, 2).Draw(t, "on"), sets.Draw(t, "labels")
	}
	w := newLiveWorld()
	live := w.in.Config.Rollout
	w.world = grouped(on, labelled, apart("hubs"), together("pay"))
	for name := range on {
		w.setLoad(name, float64(rapid.IntRange(0, 4).Draw(t, "load")))
	}
	c := &w.in.Config
	x0y := config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: c.Rollout.StageTimeout}
	c.Rollout = rapid.SampledFrom([]config.Rollout{live, c.Rollout, x0y}).Draw(t, "rollout")
	c.Partition.MaxClustersPerReplica = rapid.SampledFrom([]int{0, 2, 3, 4}).Draw(t, "most clusters")
	if capacity := rapid.SampledFrom([]config.Decimal{"", "", "0.3", "0.5", "0.8"}).Draw(t, "capacity"); capacity != "" {
		c.Partition.Capacity = &capacity
	}
	if rapid.Bool().Draw(t, "bounded by memory") {
		room := config.Bytes(fmt.Sprintf("%dMi", rapid.IntRange(3, 12).Draw(t, "MiB")))
		c.Index.Dimensions = &config.Dimensions{Memory: &config.Memory{Weights: map[string]config.Bytes{"apps": "1Mi"},
			Base: "0", Capacity: &room, LimitShare: "1"}}
	}
	if replica := rapid.IntRange(-2, 2).Draw(t, "cordoned"); replica >= 0 {
		w.in.Cordon = fmt.Sprintf("%d=%s", replica, w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339))
	}
	if rapid.Bool().Draw(t, "one is pinned") {
		w.in.Pins = plan.Pins{"c0": rapid.IntRange(0, 2).Draw(t, "pinned to")}
	}
	w.secret("c0").Unmanaged = rapid.IntRange(0, 3).Draw(t, "opts out") == 0
	return w
}

// counted is how many clusters each replica has, with those that opted out.
func (w *liveWorld) counted() map[int]int {
	on := map[int]int{}
	for _, s := range w.in.Discovered.Secrets {
		at := s.Shard.N
		if row, ok := w.in.InForce.Clusters[s.Name]; ok {
			at = row.Replica
		}
		on[at]++
	}
	return on
}

// brims reports whether one more cluster of the mean takes a replica above the capacity, as the last cycle saw it.
func (w *liveWorld) brims(replica int) bool {
	capacity := bounds.Capacity(&ground.Ground{In: w.in})
	var sum, n, carries plan.Load
	for _, load := range w.last.Loads {
		if load > 0 {
			sum, n = sum+load, n+1
		}
	}
	for _, r := range w.last.Now {
		if r.ID == replica {
			carries = r.TotalLoad
		}
	}
	return capacity > 0 && carries > 0 && carries+sum/max(n, 1) > capacity
}

// TestANewClusterIsTakenOverWithinAllBounds: it goes to no replica that is full or cordoned while another one is neither, the planner
// takes the answer over in every mode, and while the fleet is at rest nothing moves it.
func TestANewClusterIsTakenOverWithinAllBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := fullFleet(t)
		for range rapid.IntRange(1, 15).Draw(t, "cycles") {
			w.step(time.Minute)
		}
		p := w.in.InForce
		view := plan.NewView(p.Clone(), w.in.Pins)
		rests, arrivals := Run(w.in), placement.NewArrivals(view)
		atRest := p.Rollout == nil && rests.Next.Rollout == nil && rests.Candidate != nil && len(rests.Candidate.Moves) == 0
		most, on := w.in.Config.Partition.MaxClustersPerReplica, w.counted()
		has := func(replica int) bool { return most == 0 || on[replica] < most }
		closed := func(replica int) bool {
			return slices.Contains(p.Full, replica) || slices.Contains(p.Cordoned, replica)
		}
		someOpen := false
		for r := range view.Stable() {
			someOpen = someOpen || !closed(r)
			if unsaid := !has(r) && !slices.Contains(p.Full, r); unsaid && p.Rollout == nil {
				t.Fatalf("replica %d has %d clusters, %d at most, and %v are full", r, on[r], most, p.Full)
			}
		}
		w.add("new", 0)
		sets := rapid.SampledFrom([][]string{nil, {"hubs"}, {"pay"}, {"hubs", "pay"}})
		w.place("new", 0, sets.Draw(t, "labels of the new one")...)
		s := w.secret("new")
		s.Created = w.in.Now
		groups := arrivals.Groups(labels.Set(s.Labels.Set()))
		answer := arrivals.Place(s.Server, plan.NoReplica, groups)
		wrong := someOpen && (closed(answer) || !has(answer) || atRest && w.brims(answer))
		if told := arrivals.AllFull(); wrong || told != (!someOpen && len(p.Full) > 0) {
			t.Fatalf("a new cluster goes to replica %d: %v are full, %v cordoned, of %v with %d at most; that all are full is %v",
				answer, p.Full, p.Cordoned, on, most, told)
		}
		stamped := rapid.Bool().Draw(t, "the webhook was there")
		if s.Shard = (discover.ShardValue{}); stamped {
			s.Shard = discover.ShardValue{State: discover.ShardValid, N: answer}
		}
		w.observe()
		settled, stays := p.Rollout == nil, atRest && someOpen
		// In Observe Argo CD has it where it likes, and a mode that ends a rollout leaves other replicas than the plan had.
		asked := map[plan.Mode]bool{plan.Observe: stamped && settled, plan.Hold: stamped || settled, plan.Enforce: stays}
		for _, mode := range []plan.Mode{plan.Observe, plan.Hold, plan.Enforce} {
			if w.in.Config.Mode = mode; !asked[mode] {
				continue
			}
			got := Run(w.in)
			if row := got.Next.Clusters["new"]; row.Replica != answer || stays && goesOn(got, "new") {
				t.Fatalf("%s: the webhook answers %d, and the planner has %d: %s, %+v", mode, answer, row.Replica, got.Reason, got.Candidate)
			}
		}
	})
}

// TestABurstIsTakenOverAsItWasAnswered: clusters that come between two plans are answered by the same one, each as if it came alone;
// the planner has all of them where they were put.
func TestABurstIsTakenOverAsItWasAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := fullFleet(t)
		for range rapid.IntRange(1, 8).Draw(t, "cycles") {
			w.step(time.Minute)
		}
		arrivals := placement.NewArrivals(plan.NewView(w.in.InForce.Clone(), w.in.Pins))
		want := map[string]int{}
		for i := range rapid.IntRange(2, 12).Draw(t, "new") {
			name := fmt.Sprintf("new%02d", i)
			w.add(name, 0)
			want[name] = arrivals.Place(w.secret(name).Server, plan.NoReplica, nil)
			w.place(name, want[name])
			w.secret(name).Created = w.in.Now
		}
		w.observe()
		w.in.Config.Mode = plan.Hold
		got := map[string]int{}
		for name, row := range Run(w.in).Next.Clusters {
			if _, is := want[name]; is {
				got[name] = row.Replica
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-answered +planned):\n%s", diff)
		}
	})
}

// goesOn reports whether a cycle moves a cluster, or would.
func goesOn(out Outcome, name string) bool {
	if out.Next.Rollout != nil {
		if _, moves := out.Next.Rollout.Moves[name]; moves {
			return true
		}
	}
	if _, moves := out.Memory.Changes.Target[name]; moves && out.Next.Rollout != nil {
		return true
	}
	return out.Candidate != nil && slices.ContainsFunc(out.Candidate.Moves, func(m Move) bool { return m.Cluster == name })
}

// TestReplicasNextToTheirCapacityRest: one more cluster would take each of them about high, where a jitter of 5 % takes it to and fro.
// The plan says once of each that it is full, and is not written again.
func TestReplicasNextToTheirCapacityRest(t *testing.T) {
	w := shippedPlans(t, 60)
	capacity := config.Decimal("0.37") // of the whole fleet; a replica carries a third, and a cluster a sixtieth
	w.in.Config.Partition.Capacity = &capacity
	coin, written := rand.New(rand.NewPCG(1, 5)), w.writes
	day := func(hours int) {
		w.cycles(hours*60, func(int) {
			for i := range 60 {
				w.setLoad(fmt.Sprintf("c%03d", i), 10*(1+0.05*(2*coin.Float64()-1)))
			}
		})
	}
	day(4)
	if full, writes := w.in.InForce.Full, w.writes-written; len(full) != 3 || writes > 3 {
		t.Fatalf("%v are full, and the plan was written %d times; want all three, and no more writes", full, writes)
	}
	written = w.writes
	if day(20); w.writes != written || len(w.moved()) > 0 {
		t.Errorf("the plan was written %d times in 20 hours, and %v moved; %v are full", w.writes-written, w.moved(), w.in.InForce.Full)
	}
}
