package rollout

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

// stopping is a journey in mode x0y, which stops every pod: what may never be is two owners.
func stopping(t *rapid.T, j journey) *run {
	r := j.begin(t, plan.ModeX0Y)
	r.stopping = true
	return r
}

func drawStopping(t *rapid.T) journey {
	j := drawJourney(t)
	j.free = false
	return j
}

// doom keeps the pods that x0y brings back from ever getting ready, but for a first few: then it must come back.
func (r *run) doom() {
	mischief, doomed, ready := r.mischief, false, rapid.IntRange(0, 3).Draw(r.t, "ready at first")
	r.mischief = func() {
		mischief()
		if back := r.plan.Rollout != nil && r.plan.Rollout.Stage == plan.Restoring && len(r.fleet.Pods) >= ready; back && !doomed {
			doomed, r.fleet.Stuck = true, true
		}
	}
}

// falls0 is how often spec.replicas came to 0.
func (r *run) falls0() int {
	n := 0
	for _, c := range r.counts {
		if c == 0 {
			n++
		}
	}
	return n
}

func TestAnX0YRolloutEndsAsDecidedWhateverIsLostOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawStopping(t)
		calm, chaos := stopping(t, j), stopping(t, j)
		chaos.chaos = true
		calm.untilDone(300)
		chaos.untilDone(3000)
		for _, r := range []*run{calm, chaos} {
			if diff := cmp.Diff(j.rowsOf(j.after), r.plan.Clusters) + cmp.Diff(j.after, r.fleet.shards()); diff != "" {
				t.Fatalf("rows and shards at the end (-want +got):\n%s", diff)
			}
			if got, most := r.fleet.Replicas, 3; got != j.to || len(r.counts) > most || r.falls0() > 1 {
				t.Fatalf("spec.replicas was %v one after the other, want %d in the end", r.counts, j.to)
			}
		}
		if diff := cmp.Diff(calm.plan, chaos.plan); diff != "" {
			t.Fatalf("a calm and a crashing run end differently (-calm +crashing):\n%s", diff)
		}
	})
}

func TestAnX0YRolloutNeverDoublesAClusterNorLeavesTheWorkloadAt0(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawStopping(t)
		r := stopping(t, j)
		r.chaos = rapid.Bool().Draw(t, "chaos")
		r.o.StageTimeout = rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute}).Draw(t, "timeout")
		r.o.DrainTimeout = rapid.SampledFrom([]time.Duration{20 * time.Second, 0}).Draw(t, "drain")
		r.disturb(j, rapid.IntRange(0, 120).Draw(t, "disturbed"))
		if rapid.Bool().Draw(t, "doomed") {
			r.doom()
		}
		r.untilDone(4000)
		same := r.fleet.Replicas == r.plan.Replicas || len(r.held) > 0 || r.plan.FreeReplicas
		if n := r.fleet.Replicas; !same || n != j.from && n != j.to {
			t.Fatalf("the workload ends at %d replicas, the plan at %d, from %d to %d", n, r.plan.Replicas, j.from, j.to)
		}
		if len(r.counts) > 4 || r.falls0() > 1 {
			t.Fatalf("spec.replicas was %v one after the other", r.counts)
		}
		for name, row := range r.plan.Clusters {
			if row.Replica >= r.plan.Replicas {
				t.Fatalf("cluster %s ends on replica %d of %d", name, row.Replica, r.plan.Replicas)
			}
		}
	})
}

func TestARolloutThatIsDroppedLeavesReplicasAndOneOwnerEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJourney(t)
		mode := rapid.SampledFrom([]string{plan.ModeLive, plan.ModeX0Y, plan.ModeDefault}).Draw(t, "mode")
		j.free = j.free && mode != plan.ModeX0Y
		r := j.begin(t, mode)
		r.chaos, r.moved = true, nil
		for range rapid.IntRange(0, 40).Draw(t, "loops") {
			r.loop()
		}
		before := r.plan.Clone()
		r.plan, r.dropped = r.stored(Abandon(r.plan)), true
		if diff := cmp.Diff(before.Rollout != nil, r.plan.Rollout == nil && before.Rollout != nil); diff != "" {
			t.Fatalf("a rollout is still under way: %+v", r.plan.Rollout)
		}
		for name, row := range r.plan.Clusters {
			if row.Replica >= r.plan.Replicas {
				t.Fatalf("cluster %s is on replica %d of %d", name, row.Replica, r.plan.Replicas)
			}
		}
		r.untilDone(1000)
		if j.free {
			return
		}
		if r.fleet.Replicas < 1 || r.fleet.misowned() != "" {
			t.Fatalf("the fleet ends at %d replicas: %s", r.fleet.Replicas, r.fleet.misowned())
		}
		if !slices.Contains([]int{j.from, j.to}, r.fleet.Replicas) {
			t.Fatalf("the fleet ends at %d replicas, neither %d nor %d", r.fleet.Replicas, j.from, j.to)
		}
		for name := range maps.Keys(j.before) {
			if at := r.plan.Clusters[name].Replica; at != j.before[name] && at != j.after[name] {
				t.Fatalf("cluster %s ends on %d, neither %d nor %d", name, at, j.before[name], j.after[name])
			}
		}
	})
}
