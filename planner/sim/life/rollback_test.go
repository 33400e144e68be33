package life

import (
	"testing"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
)

// TestARollbackAndAFailoverDoNotFight: a person asks for the plan of before a failover, whose replica is dead, comes back, and dies
// again. What is asked for holds in the end, and each cluster moved a few times.
func TestARollbackAndAFailoverDoNotFight(t *testing.T) {
	l := level(4, 100, config.Default().Rollout)
	l.judged(t)
	l.Pass(time.Hour)
	earlier := l.Plan.Clone()
	l.dies(1)
	l.Pass(30 * time.Minute)
	l.Rollback = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}
	l.Pass(time.Hour)
	if plans := l.Counts["plans"]; l.Rollback != nil || plans > 20 {
		t.Fatalf("beside the dead replica %d plans, and the rollback stands: %t", plans, l.Rollback != nil)
	}
	clear(l.Broken)
	l.Pass(20 * time.Minute)
	l.Rollback = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}
	l.Pass(2 * time.Minute)
	l.dies(1) // in the middle of the way back
	l.Pass(2 * time.Hour)
	if n := l.Moves[change.Failover] + l.Moves[change.Rollback]; n > 40 || l.Rollback != nil {
		t.Errorf("%v moves of 40 clusters, and the rollback stands: %t", l.Moves, l.Rollback != nil)
	}
	plans := l.Counts["plans"]
	l.Pass(2 * time.Hour)
	if l.Counts["plans"] != plans {
		t.Errorf("%d plans in two hours of nothing new", l.Counts["plans"]-plans)
	}
	clear(l.Broken)
	if err := l.rests(); err != nil {
		t.Error(err)
	}
}
