package life

import (
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/plan"
)

// TestABackupOfEverythingEndsWell: a plan and its history are put back together, older than the fleet, and even from the middle
// of a stop of every replica. Nobody can know what came after them; the fleet runs on, and comes to rest.
func TestABackupOfEverythingEndsWell(t *testing.T) {
	x0y := configuration()
	x0y.Rollout.Live, x0y.Rollout.X0Y = nil, &config.X0YRollout{}
	fixed := func(n int) *config.Replicas { return &config.Replicas{Fixed: n} }
	x0y.Partition.Replicas = fixed(3)
	stage := func(s plan.Stage) func(*Life) bool {
		return func(l *Life) bool { return l.Plan != nil && l.Plan.Rollout != nil && l.Plan.Rollout.Stage == s }
	}
	for name, test := range map[string]struct {
		config config.PlannerConfig
		taken  func(*Life) bool // when the backup is taken, after six hours and a person's wish for five replicas
		later  time.Duration
	}{
		"live":                            {configuration(), func(*Life) bool { return true }, 12 * time.Hour},
		"live, in the middle of moves":    {configuration(), stage(plan.Moving), 12 * time.Hour},
		"x0y":                             {x0y, func(*Life) bool { return true }, 12 * time.Hour},
		"x0y, with every replica stopped": {x0y, stage(plan.Draining), 12 * time.Hour},
		"x0y, and at once":                {x0y, stage(plan.Draining), 5 * time.Minute},
		"x0y, while replicas come back":   {x0y, stage(plan.Restoring), 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(4, test.config, 3, "3", loadsOf(4, 20))
			l.Config.Change.Moves.Rate, l.Config.Change.Restarts.Every = nil, 0
			l.Config.Partition, l.Config.Evaluate = voted(time.Hour)
			l.Pass(6 * time.Hour)
			l.Config.Partition.Replicas = fixed(5)
			for begin := l.Now; !test.taken(l); l.step() {
				if l.Now.Sub(begin) > 6*time.Hour {
					t.Fatalf("the moment of the backup never came: %+v, %v", l.Plan.Rollout, l.Last.Problems)
				}
			}
			b, err := l.backup()
			if err != nil {
				t.Fatal(err)
			}
			l.Pass(test.later)
			if err := l.Quiet(); err != nil && test.later > time.Hour {
				t.Fatal(err)
			}
			made := l.Replicas
			if err := l.restore(b); err != nil {
				t.Fatal(err)
			}
			revision, least, since := b.plan.Revision, made, l.Now
			l.Watch = func(l *Life) {
				if l.Now.Sub(since) < 8*time.Minute { // later it may be decided anew, by ten votes
					least = min(least, l.Replicas)
				}
				if l.Plan.Revision < revision {
					t.Fatalf("revision %d after %d", l.Plan.Revision, revision)
				}
				revision = l.Plan.Revision
			}
			l.Pass(12 * time.Hour)
			if err := l.Quiet(); err != nil {
				t.Errorf("%v; tripped: %s", err, l.Tripped)
			}
			t.Logf("%d replicas before, at least %d soon after, %d in the end; revision %d to %d", made, least, l.Replicas, b.plan.Revision, revision)
			if least == 0 {
				t.Error("every replica was stopped")
			}
		})
	}
}
