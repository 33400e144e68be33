package cycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// What the runs of crash_test.go found in the core, each by itself.

func TestWhatWasElectedDoesNotUndoARollbackThatIsDone(t *testing.T) {
	w := newWorld(9, 1, 1, 1, 1, 1)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	w.cycle()
	w.in.Paused = true // until the owners are stamped
	w.run(1)
	w.in.Paused = false
	before := *w.in.InForce
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: &before}
	if out := w.cycle(); !out.Done || out.Changed || !out.Memory.HoldOff.Equal(w.in.Now) {
		t.Errorf("done %t, hold-off %s, and the plan goes on to %+v", out.Done, out.Memory.HoldOff, out.Next.Rollout)
	}
	w.in.Rollback = nil
	w.run(29)
	if got := w.in.InForce.Revision; got != before.Revision {
		t.Errorf("revision %d within half an hour, want %d", got, before.Revision)
	}
	w.run(5)
	if got := w.in.InForce.Revision; got == before.Revision {
		t.Error("the balance is never restored")
	}
}

func TestAFailoverAndADrainStopAndRestartNobody(t *testing.T) {
	for name, configured := range map[string]config.Rollout{
		"x0y":              {X0Y: &config.X0YRollout{}},
		"default":          {Default: &config.DefaultRollout{}},
		"default, restart": {Default: &config.DefaultRollout{RolloutRestart: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot.Of(outcome.Outcome{}, &ground.Ground{In: input.Inputs{Config: newWorld().in.Config}})
			s.In.Config.Rollout = configured
			for _, cause := range []change.Cause{change.Failover, change.Drain} {
				if o := snapshot.RolloutOptions(s, cause); o.Mode != plan.ModeDefault || o.RolloutRestart {
					t.Errorf("%s: mode %s, restart %t", cause, o.Mode, o.RolloutRestart)
				}
			}
			want := basis.Options{Mode: snapshot.ModeOf(configured), RolloutRestart: configured.Default != nil && configured.Default.RolloutRestart}
			if o := snapshot.RolloutOptions(s, change.Balance); o.Mode != want.Mode || o.RolloutRestart != want.RolloutRestart {
				t.Errorf("balance: mode %s, restart %t", o.Mode, o.RolloutRestart)
			}
		})
	}
}

func TestOnlyStagesThatReplacePodsKeepReplicasFromBeingJudged(t *testing.T) {
	got := map[string]bool{}
	for _, r := range []plan.Rollout{
		{Mode: plan.ModeDefault, Stage: plan.Assigning}, {Mode: plan.ModeDefault, Stage: plan.Scaling}, {Mode: plan.ModeDefault, Stage: plan.Restarting},
		{Mode: plan.ModeDefault, Stage: plan.Reverting}, {Mode: plan.ModeX0Y, Stage: plan.Draining}, {Mode: plan.ModeX0Y, Stage: plan.Assigning},
		{Mode: plan.ModeX0Y, Stage: plan.Restoring}, {Mode: plan.ModeLive, Stage: plan.Scaling}, {Mode: plan.ModeLive, Stage: plan.Moving}, {Mode: plan.ModeLive, Stage: plan.Verifying},
	} {
		got[r.Mode+" "+string(r.Stage)] = ground.Rolling(newWorld().in, plan.Plan{Rollout: &r})
	}
	want := map[string]bool{"default Assigning": false, "default Scaling": true, "default Restarting": true, "default Reverting": true, "x0y Draining": true,
		"x0y Assigning": true, "x0y Restoring": true, "live Scaling": true, "live Moving": false, "live Verifying": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingIsLevelledOutOntoAReplicaThatIsNotReady: a leader that has only just begun cannot know since when.
func TestNothingIsLevelledOutOntoAReplicaThatIsNotReady(t *testing.T) {
	w := newWorld(9, 1, 1, 1, 1, 1)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	for i := range 3 {
		w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: i, Name: fmt.Sprintf("argocd-application-controller-%d", i), Ready: i != 1, Claimed: true})
	}
	w.in.Observed.Known = true
	w.run(4)
	if got := w.in.InForce.Revision; got != 1 {
		t.Errorf("revision %d: %s", got, w.last.Reason)
	}
	if got := w.last.Candidate.Verdict; got != "waits: replica 1 is not ready, and nothing is levelled out onto it" {
		t.Errorf("verdict %q", got)
	}
	w.in.Observed.Pods[1].Ready = true
	w.run(2)
	if got := w.in.InForce.Revision; got == 1 {
		t.Error("nothing is levelled out once it is ready")
	}
}

// TestX0YDoesNotStopTheFleetAgainRightAfterItFailed, whoever asks for it: a person's rollback asks at every cycle.
func TestX0YDoesNotStopTheFleetAgainRightAfterItFailed(t *testing.T) {
	w := newWorld(9, 1, 1, 1, 1, 1)
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
	w.in.Config.Evaluate.MostWanted.MinSamples = 1000
	w.cycle()
	w.run(1)
	earlier := w.in.InForce.Clone()
	for name, row := range earlier.Clusters {
		row.Replica = (row.Replica + 1) % 3
		earlier.Clusters[name] = row
	}
	w.in.Rollback, w.in.Memory.HoldOff = &input.Rollback{Revision: 1, Plan: &earlier}, w.in.Now
	w.run(29)
	if w.in.InForce.Rollout != nil || w.in.InForce.Revision != 1 {
		t.Fatalf("revision %d, rollout %+v: replicas were stopped again within half an hour", w.in.InForce.Revision, w.in.InForce.Rollout)
	}
	w.run(2)
	if r := w.in.InForce.Rollout; r == nil || r.Mode != plan.ModeX0Y {
		t.Errorf("rollout %+v after half an hour, want x0y", r)
	}
}
