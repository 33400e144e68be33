package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// away is a Nudger that reaches nobody for a while.
type away struct {
	clock *clocktesting.FakeClock
	until time.Time
	calls int
	woken int
}

func (n *away) Nudge(context.Context, string, string, string, string) (string, error) {
	n.calls++
	if n.clock.Now().Before(n.until) {
		return "", errors.New("the API server is away")
	}
	n.woken++
	return "app", nil
}

func TestANudgeThatReachedNobodyIsMadeUpForAtTheSamePace(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	nudger := &away{clock: clock, until: start.Add(2 * time.Minute)}
	a := New(Options{Nudger: nudger, Clock: clock})
	for range 5 * 60 {
		a.Apply(t.Context(), plan.Target{Namespace: "argocd"}, []diff.Step{diff.Nudge{Cluster: "c", Shard: 1, Since: start}})
		clock.Step(time.Second)
	}
	if missed := int(2 * time.Minute / nudgeEvery); nudger.calls != missed+nudgesAtMost || nudger.woken != nudgesAtMost {
		t.Errorf("%d calls, %d of them heard; want %d and %d", nudger.calls, nudger.woken, missed+nudgesAtMost, nudgesAtMost)
	}
}
