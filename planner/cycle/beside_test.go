package cycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
)

// TestConflictsAndTheInstallationAreTold as Problems of a rollout that keep nothing from being done: first who else has
// a say over the workload, then where the installation is not the shipped one, each in the order of the Inputs.
func TestConflictsAndTheInstallationAreTold(t *testing.T) {
	w := newWorld()
	w.in.Conflicts = []input.Finding{{Kind: "Resized", Subject: "VPA argocd/a", Message: "it resizes"},
		{Kind: "Autoscaled", Subject: "HPA argocd/b", Message: "it scales"}}
	w.in.Installation = []input.Finding{{Kind: "KubernetesTooOld", Subject: "Kubernetes", Message: "upgrade it"}}
	want := []problem.Problem{
		{Phase: problem.PhaseRollout, Kind: "Resized", Subject: "VPA argocd/a", Message: "it resizes"},
		{Phase: problem.PhaseRollout, Kind: "Autoscaled", Subject: "HPA argocd/b", Message: "it scales"},
		{Phase: problem.PhaseRollout, Kind: "KubernetesTooOld", Subject: "Kubernetes", Message: "upgrade it"},
	}
	if diff := cmp.Diff(want, Run(w.in).Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
