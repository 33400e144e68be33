package apply

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"ballast/planner/diff"
)

// hangingNudger lists Applications until it is told to end.
type hangingNudger struct{ calls int }

func (h *hangingNudger) Nudge(ctx context.Context, _, _, _, _ string) (string, error) {
	h.calls++
	<-ctx.Done()
	return "", ctx.Err()
}

// TestANudgeThatHangsHoldsUpNoOther: one waits for its Applications for twenty seconds, and for a minute no other does.
func TestANudgeThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nudger := &hangingNudger{}
		a := New(Options{Nudger: nudger, Clock: clock.RealClock{}})
		start := time.Now()
		nudge := func(cluster string) (Result, time.Duration) {
			began := time.Now()
			r := a.nudge(t.Context(), "argocd", diff.Nudge{Cluster: cluster, Shard: 1, Since: start}, Result{Outcome: Applied})
			return r, time.Since(began)
		}
		if r, took := nudge("a"); r.Outcome != Failed || took != nudgeWithin {
			t.Errorf("the first: %v after %s, want it to fail after %s", r.Outcome, took, nudgeWithin)
		}
		for _, cluster := range []string{"b", "c", "d"} {
			if r, took := nudge(cluster); r.Outcome != Deferred || took != 0 || !r.Until.Equal(time.Now().Add(hangsFor)) {
				t.Errorf("%s: %v after %s until %s", cluster, r.Outcome, took, r.Until)
			}
		}
		<-time.After(hangsFor) // of the bubble's clock
		if r, took := nudge("b"); r.Outcome != Failed || took != nudgeWithin || nudger.calls != 2 {
			t.Errorf("a minute later: %v after %s, %d calls; want a second one", r.Outcome, took, nudger.calls)
		}
		for range 2 * nudgesAtMost {
			<-time.After(hangsFor)
			nudge("b")
		}
		if want := 1 + nudgesAtMost; nudger.calls != want {
			t.Errorf("%d calls, want %d: one that hangs each time leaves room for others", nudger.calls, want)
		}
	})
}
