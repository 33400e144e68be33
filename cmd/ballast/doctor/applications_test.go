package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/problem"
	"ballast/planner/status"
)

// TestWhatThePlannerMayNotListIsToldWithItsMend, of all problems that the leader has.
func TestWhatThePlannerMayNotListIsToldWithItsMend(t *testing.T) {
	s := healthy(t)
	if s.said == nil {
		s.said = &status.Status{}
	}
	s.said.LookedAt = s.now
	s.said.Problems = []problem.Problem{{Kind: "PodsUnseen", Message: "a pod is silent"},
		{Kind: "ApplicationsUnseen", Message: "add component nudge-any-namespace"}}
	want := []Finding{{Result: Warning, Message: "ApplicationsUnseen: add component nudge-any-namespace",
		Mend: "docs/rollouts.md, Applications in other namespaces"}}
	if diff := cmp.Diff(want, s.checkLeader()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
