package apply

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

type text string

type panickingNudger struct{}

func (panickingNudger) Nudge(context.Context, string, string, string, string) (string, error) {
	panic(text("CANARY"))
}

// panickingReader stands in for an object that the code which reads it cannot bear.
type panickingReader struct{ client.Reader }

func (panickingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic(text("CANARY"))
}

func TestAStampThatPanicsHasFailed(t *testing.T) {
	a := New(Options{Reader: panickingReader{}})
	for name, step := range map[string]diff.Step{"a Secret's": diff.PatchShard{Secret: "c"}, "the workload's": diff.PatchWorkload{}} {
		t.Run(name, func(t *testing.T) {
			got := a.Apply(t.Context(), plan.Target{Namespace: "argocd", Kind: plan.StatefulSet, Name: "controller"}, []diff.Step{step}).Results[0]
			if want := "a panic of type apply.text"; got.Outcome != Failed || got.Err == nil || got.Err.Error() != want {
				t.Errorf("the outcome is %s (%v), want %s (%s)", got.Outcome, got.Err, Failed, want)
			}
		})
	}
}

// Steps run in goroutines of their own, where a panic would end the process.
func TestANudgeThatPanicsHasFailed(t *testing.T) {
	a := New(Options{Nudger: panickingNudger{}})
	got := a.Apply(t.Context(), plan.Target{Namespace: "argocd"}, []diff.Step{diff.Nudge{Cluster: "c", Since: time.Now()}}).Results[0]
	if want := `nudging an Application of cluster "c": a panic of type apply.text`; got.Outcome != Failed || got.Err == nil || got.Err.Error() != want {
		t.Errorf("the outcome is %s (%v), want %s (%s)", got.Outcome, got.Err, Failed, want)
	}
}
