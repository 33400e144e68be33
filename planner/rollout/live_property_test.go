package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestALiveRolloutEndsAsDecidedWhateverIsLostOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJourney(t)
		calm, chaos := j.begin(t, plan.ModeLive), j.begin(t, plan.ModeLive)
		chaos.chaos = true
		calm.adrift, chaos.adrift = calm.o.MaxMovesPerWave, chaos.o.MaxMovesPerWave
		calm.untilDone(300)
		chaos.untilDone(3000)
		for _, r := range []*run{calm, chaos} {
			if diff := cmp.Diff(j.rowsOf(j.after), r.plan.Clusters) + cmp.Diff(j.after, r.fleet.shards()); diff != "" {
				t.Fatalf("rows and shards at the end (-want +got):\n%s", diff)
			}
			got := r.fleet.count()
			if want := j.ends(); got != want {
				t.Fatalf("the workload ends at %+v, want %+v", got, want)
			}
			if most := 2; len(r.counts) > most {
				t.Fatalf("spec.replicas was %v one after the other", r.counts)
			}
		}
	})
}

func TestALiveRolloutNeverDoublesAClusterAndAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJourney(t)
		r := j.begin(t, plan.ModeLive)
		r.chaos = rapid.Bool().Draw(t, "chaos")
		r.o.StageTimeout = rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute}).Draw(t, "timeout")
		if j.free { // people's replicas may leave clusters without a pod, and ballast may bring them back
			for name := range j.before {
				r.moved[name] = true
			}
		}
		r.disturb(j, rapid.IntRange(0, 120).Draw(t, "disturbed"))
		r.untilDone(4000)
		if n := r.plan.Replicas; n != j.from && n != j.to {
			t.Fatalf("the plan ends at %d replicas, neither %d nor %d", n, j.from, j.to)
		}
		if !j.free && r.fleet.Replicas != r.plan.Replicas && len(r.held) == 0 || j.free && r.fleet.Replicas != j.to {
			t.Fatalf("the workload ends at %d replicas, the plan at %d; %s; %v", r.fleet.Replicas, r.plan.Replicas, r.fleet, r.log)
		}
		if len(r.counts) > 3 || len(r.counts) == 3 && r.counts[0] != r.counts[2] {
			t.Fatalf("spec.replicas was %v one after the other", r.counts)
		}
		for name, row := range r.plan.Clusters {
			if row.Replica >= r.plan.Replicas {
				t.Fatalf("cluster %s ends on replica %d of %d", name, row.Replica, r.plan.Replicas)
			}
		}
		for _, u := range j.units {
			a, b := r.fleet.stamps[u[0]], r.fleet.stamps[u[len(u)-1]]
			if !j.free && a.Name != "" && b.Name != "" && a.Managed() && b.Managed() && a.Shard != b.Shard {
				t.Fatalf("%v, which have one server, end on %d and %d; plan %+v, pins %v, log %v", u, a.Shard, b.Shard, r.plan, r.pins, r.log)
			}
		}
	})
}
