package status

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/sim"
	"ballast/planner/sim/life"
)

// TestTheDecisionsSentenceOutlivesItsStages: whoever asks why the plan is as it is reads what was decided, not what the last stage found.
func TestTheDecisionsSentenceOutlivesItsStages(t *testing.T) {
	c, one := config.Default(), sim.Config()
	c.Mode, c.Poll.Prometheus.Metrics, c.Index.PNorm.Weights = plan.Enforce, one.Poll.Prometheus.Metrics, one.Index.PNorm.Weights
	c.Change.Moves.Rate = nil
	l := life.New(1, c, 3, "3", map[string]float64{"a": 10, "b": 10, "c": 10, "d": 10, "e": 10, "f": 10})
	l.Pass(2 * time.Hour)
	leave := 0
	for _, row := range l.Plan.Clusters {
		if row.Replica == 1 {
			leave++
		}
	}
	l.Cordon = "1=" + l.Now.Add(4*time.Hour).UTC().Format(time.RFC3339)
	before, reason := l.Counts["plans"], ""
	l.Watch = func(l *life.Life) {
		if l.Last.Changed {
			reason = l.Last.Reason
		}
	}
	l.Pass(30 * time.Minute)
	if stages := l.Counts["plans"] - before; stages < 2 || l.Plan.Rollout != nil || leave == 0 {
		t.Fatalf("%d plans for %d clusters, under way %+v", stages, leave, l.Plan.Rollout)
	}
	w := fixture.QuietWorld()
	w.Plan, w.People[plan.AnnotationReason] = *l.Plan, reason
	s := look(t, w)
	if want := "empties replica 1 as asked: moves "; !strings.HasPrefix(s.Reason, want) {
		t.Errorf("the reason is %q, want %q and how many", s.Reason, want)
	}
	var table bytes.Buffer
	fixture.MustDo(t, s.WriteTable(&table))
	if !strings.Contains(table.String(), "\n  "+reason+"\n") {
		t.Errorf("people read\n%s\nand not %q", table.String(), reason)
	}
}
