package cycle

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/plan"
)

// scale is what people do to a workload that opted out.
func (w *world) scale(replicas int) {
	wl := &w.in.Workload
	wl.Replicas, wl.ReadyReplicas, wl.UpdatedReplicas, wl.CurrentReplicas = replicas, replicas, replicas, replicas
}

func TestTheReplicasOfAWorkloadThatOptedOutArePeoples(t *testing.T) {
	w := newWorld(lognormal(4, 24)...)
	w.run(3)
	w.in.Workload.Unmanaged = true
	w.run(1)
	if p := w.in.InForce; !p.Unmanaged || p.Revision != 2 || w.last.Reason != "the workload opted out: its replicas, env and resources are not held" {
		t.Errorf("revision %d says unmanaged: %t, because %q", p.Revision, p.Unmanaged, w.last.Reason)
	}
	w.scale(5)
	w.in.Pins = plan.Pins{"c003": 4} // waits, and keeps nothing else waiting
	w.run(30)
	if p := w.in.InForce; p.Replicas != 3 || p.ControllerReplicas != 3 || p.Rollout != nil || w.in.Workload.Replicas != 5 || *w.in.Workload.EnvReplicas != "3" {
		t.Errorf("the plan has %d replicas, env %d, rollout %v; the workload %d, env %s", p.Replicas, p.ControllerReplicas, p.Rollout, w.in.Workload.Replicas, *w.in.Workload.EnvReplicas)
	}
	if imbalance := outcome.Imbalance(w.last.Now); w.in.InForce.Revision < 3 || imbalance > 1.1 {
		t.Errorf("revision %d leaves makespan over mean %.2f: clusters are ballast's still", w.in.InForce.Revision, imbalance)
	}
	w.in.Workload.Unmanaged, w.in.Pins = false, nil
	w.run(1)
	if w.in.InForce.Unmanaged || w.in.Workload.Replicas != 3 {
		t.Errorf("managed again the plan says unmanaged: %t, and the workload has %d replicas, want 3", w.in.InForce.Unmanaged, w.in.Workload.Replicas)
	}
}

func TestNothingBeginsThatNeedsAWorkloadThatOptedOut(t *testing.T) {
	for name, test := range map[string]struct {
		ask     func(*world)
		problem string
	}{
		"a fixed number": {func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5} }, ""},
		"more capacity":  {func(w *world) { capacity := config.Decimal("0.1"); w.in.Config.Partition.Capacity = &capacity }, ""},
		"a pin":          {func(w *world) { w.in.Pins = plan.Pins{"c003": 5} }, "partition/PinWaits/c003"},
		"a way back":     {func(w *world) { w.in.Rollback = wayTo(w, 4) }, "rollout/WorkloadUnmanaged/"},
		"mode x0y": {func(w *world) {
			w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: w.in.Config.Rollout.StageTimeout}
		}, "rollout/WorkloadUnmanaged/"},
		"a restart": {func(w *world) { w.in.Config.Rollout.Default.RolloutRestart = true }, "rollout/WorkloadUnmanaged/"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(4, 24)...)
			w.run(3)
			w.in.Workload.Unmanaged = true
			test.ask(w)
			seen := map[string]bool{}
			for range 30 {
				w.run(1)
				for _, p := range problems(w.last) {
					seen[p] = true
				}
				if p := w.in.InForce; p.Replicas != 3 || p.Rollout != nil && (p.Rollout.Replicas != 3 || p.Rollout.ControllerReplicas != 3 || p.Rollout.Mode != plan.ModeDefault || p.Rollout.Stage == plan.Restarting) {
					t.Fatalf("%d replicas are planned, and the rollout is %+v", p.Replicas, p.Rollout)
				}
			}
			if test.problem != "" && !seen[test.problem] {
				t.Errorf("nobody was told of %s: %v", test.problem, w.last.Problems)
			}
			w.in.Workload.Unmanaged = false
			began := func() bool {
				r := w.in.InForce.Rollout
				return r != nil || w.in.InForce.Replicas != 3 || w.in.InForce.ControllerReplicas != 3
			}
			for range 30 {
				if w.run(1); began() {
					return
				}
			}
			t.Error("with the workload managed again, nothing began either: this test proves nothing")
		})
	}
}

// TestLiveLevelsAWorkloadThatOptedOut without its one restart: replicas and env are people's, and need not change for it.
func TestLiveLevelsAWorkloadThatOptedOut(t *testing.T) {
	w := newLiveWorld(lognormal(4, 24)...)
	w.in.Workload.Unmanaged = true
	w.until(t, "a wave", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > 0 })
	w.until(t, "rest", 2*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	for range 90 { // a wave's harm is looked for in the hour after it
		w.step(time.Minute)
	}
	w.down[2] = true
	w.until(t, "replica 2 is empty", 2*time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 0 })
	if p := w.in.InForce; p.ControllerReplicas != 3 || *w.in.Workload.EnvReplicas != "3" {
		t.Errorf("the plan has env %d, the workload env %s; want 3", p.ControllerReplicas, *w.in.Workload.EnvReplicas)
	}
	delete(w.down, 2)
	w.in.Workload.Unmanaged = false
	w.until(t, "the one restart", 4*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.ControllerReplicas == 16 })
}

// wayTo is a plan in the history with so many replicas.
func wayTo(w *world, replicas int) *input.Rollback {
	p := w.in.InForce.Clone()
	p.Replicas, p.ControllerReplicas = replicas, replicas
	p.Clusters["c000"] = plan.Row{Replica: replicas - 1}
	return &input.Rollback{Revision: p.Revision, Plan: &p}
}

func TestReplicasOfPeopleAreFollowedWithoutTheWebhook(t *testing.T) {
	w := newWorld(lognormal(15, 24)...)
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.run(5)
	w.in.Enforcement = ptr.To(false)
	w.scale(2)
	w.run(6)
	if p := w.in.InForce; p.Replicas != 2 || p.Rollout != nil {
		t.Errorf("the plan has %d replicas, rollout %v, want the workload's 2: nobody would have the clusters of the third", p.Replicas, p.Rollout)
	}
}
