package rollout

import (
	"context"
	"testing"
	"time"

	"ballast/planner/plan"
)

type text string

type panickingNudger struct{}

func (panickingNudger) Nudge(context.Context, string, string, string, string) (string, error) {
	panic(text("CANARY"))
}

// Steps run in goroutines of their own, where a panic would end the process.
func TestANudgeThatPanicsHasFailed(t *testing.T) {
	a := NewApplier(ApplierOptions{Nudger: panickingNudger{}})
	got := a.Apply(t.Context(), plan.Target{Namespace: "argocd"}, []Step{Nudge{Cluster: "c", Since: time.Now()}}).Results[0]
	if want := `nudging an Application of cluster "c": a panic of type rollout.text`; got.Outcome != Failed || got.Err == nil || got.Err.Error() != want {
		t.Errorf("the outcome is %s (%v), want %s (%s)", got.Outcome, got.Err, Failed, want)
	}
}
