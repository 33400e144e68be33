package crash_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAStoppedFleetIsBackWhateverItsWorkloadRefuses: rollout.x0y has stopped every replica, and for six minutes the API server takes no
// write of the workload but that of its scale. Found by seed 20261127, when no run saw that write.
func TestAStoppedFleetIsBackWhateverItsWorkloadRefuses(t *testing.T) {
	c := newCrashCase(20261127, crashX0Y, 3)
	c.goals = c.goals[:1]
	r := newCrashRun(t, anyServer.Start(t), c, crashFault{step: 35, harm: crashRefused, code: 422, lasts: 6 * time.Minute})
	r.reach(c)
	r.wantMet("refused before write 35 with 422 for 6m0s (workload argocd-application-controller)")
	if r.watch.stopped != 12*time.Second || r.watch.zeroings != 1 {
		r.fatal("the workload stood at 0 for %s, and stopped %d times; want 12s, once", r.watch.stopped, r.watch.zeroings)
	}
}

// TestWhatALeaderMeasuredOutlivesItWithItsDecision: loads shift, and the leader that moves four clusters for it hears nothing of the API
// server any more. Two of them became lighter before they moved, and the next leader knows it: it would hold what they had before for 20
// minutes, and decide by that. Found by seed 20261127, where the fleet grew less level than without faults, by 51 instead of 47.
func TestWhatALeaderMeasuredOutlivesItWithItsDecision(t *testing.T) {
	c := newCrashCase(20261127, crashDefault, 3)
	r := newCrashRun(t, anyServer.Start(t), c, crashFault{step: 6, harm: crashConflict, after: true},
		crashFault{step: 30, harm: crashGone, after: true, lasts: 5*time.Minute + 20*time.Second},
		crashFault{step: 51, harm: crashKilled, after: true, takeover: 8 * time.Second})
	shift := c.goals[1].begin
	c.goals[1].begin = func(r *crashRun) {
		shift(r)
		saved := func() bool { return r.leaders == 2 && r.leader != nil && r.leader.writes > 4 }
		r.until("the next leader has saved what it knows", 10*time.Minute, saved)
		measured := map[string]float64{}
		for i, name := range r.remembered().measured.IDs {
			measured[name] = r.remembered().measured.Column(loadMetric).Values[i]
		}
		// c01 moved when the fleet was adopted, before it became lighter by 1.
		want := map[string]float64{"c00": 9, "c01": 28, "c02": 17, "c03": 25, "c04": 29, "c05": 42, "c06": 22}
		if diff := cmp.Diff(want, measured); diff != "" {
			r.fatal("what the next leader takes for the loads (-want +got):\n%s", diff)
		}
	}
	ends := r.reach(c)
	r.wantMet("conflict after write 6 (Secret c03)", "API server gone after write 30 for 5m20s (same leader afterwards: false) (Secret c00)",
		r.faults.met[len(r.faults.met)-1].String()) // whatever the last one comes to
	want := crashEnd{Replicas: 4, Env: 4, Makespan: 47,
		Rows: map[string]int{"c00": 0, "c01": 1, "c02": 1, "c03": 3, "c04": 0, "c05": 2, "c06": 3}}
	if diff := cmp.Diff(want, ends[2]); diff != "" {
		r.fatal("the end (-want +got):\n%s", diff)
	}
}

// TestAFirstShardIsTheOwnerHoweverLongItWaits: the API server refuses a Secret's first shard until nothing waits for it any more, and the
// fleet is levelled meanwhile. Found by seed 20261127, where the plan moved that cluster, too.
func TestAFirstShardIsTheOwnerHoweverLongItWaits(t *testing.T) {
	c := newCrashCase(20261127, crashDefault, 3)
	c.goals = c.goals[:1]
	r := newCrashRun(t, anyServer.Start(t), c, crashFault{step: 6, harm: crashRefused, code: 403, lasts: 84 * time.Second})
	levelled := 0 // rollouts before c03 has a shard, of which crashWatch knows whether it is its owner's
	r.planned = func() {
		if _, stamped := r.fleet.Shards["c03"]; !stamped {
			levelled = r.watch.rollouts
		}
	}
	r.reach(c)
	r.wantMet("refused before write 6 with 403 for 1m24s (Secret c03)")
	if levelled != 1 {
		r.fatal("%d rollouts began while the shard was refused, want 1", levelled)
	}
}

// wantMet compares the faults that came, for a run that is repeated by their steps.
func (r *crashRun) wantMet(want ...string) {
	r.Helper()
	var met []string
	for _, m := range r.faults.met {
		met = append(met, m.String())
	}
	if diff := cmp.Diff(want, met); diff != "" {
		r.fatal("faults (-want +got):\n%s", diff)
	}
}
