package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/installed"
	"ballast/planner/cycle/problem"
	"ballast/planner/status"
)

// TestWhatThePlannerMayNotListIsToldWithItsMend, of all problems that the leader has.
func TestWhatThePlannerMayNotListIsToldWithItsMend(t *testing.T) {
	s := healthy(t)
	if s.Said == nil {
		s.Said = &status.Status{}
	}
	s.Said.LookedAt = s.Now
	s.Said.Problems = []problem.Problem{{Kind: "PodsUnseen", Message: "a pod is silent"},
		{Kind: "ApplicationsUnseen", Message: "add component nudge-any-namespace"}}
	want := []finding.Finding{{Result: finding.Warning, Message: "ApplicationsUnseen: add component nudge-any-namespace",
		Mend: "docs/rollouts.md, Applications in other namespaces"}}
	if diff := cmp.Diff(want, installed.CheckLeader(s)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
