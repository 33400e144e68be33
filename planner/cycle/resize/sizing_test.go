package resize

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/size"
)

// TestMovesThatWaitInWords: the annotation has no number that changes from cycle to cycle.
func TestMovesThatWaitInWords(t *testing.T) {
	since := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for to, want := range map[string][2]string{
		"1":  {"levelling by 1 move waits since 2026-11-20T09:00:00Z: UpdatePolicy (the mode is Off)", "levelling by 1 move waits since 2026-11-20T09:00:00Z: UpdatePolicy"},
		"4":  {"levelling by 4 moves waits since 2026-11-20T09:00:00Z: UpdatePolicy (the mode is Off)", "levelling by up to 4 moves waits since 2026-11-20T09:00:00Z: UpdatePolicy"},
		"17": {"levelling by 17 moves waits since 2026-11-20T09:00:00Z: UpdatePolicy (the mode is Off)", "levelling by up to 32 moves waits since 2026-11-20T09:00:00Z: UpdatePolicy"},
	} {
		b := Blocked{Replica: size.All, Resource: ResourceClusters, Direction: change.Moves, Reason: change.UpdatePolicy, From: "0", To: to, Since: since, Why: "the mode is Off"}
		if got := [2]string{b.String(), b.Steady().String()}; got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
}

// TestEachRuleSaysWhosePolicyItIs: of two with a rule of one name, the one that holds.
func TestEachRuleSaysWhosePolicyItIs(t *testing.T) {
	f := newFleet(2)
	f.Size.Policies = append(f.Size.Policies, config.SizePolicy{Name: "overlay", Priority: 5, Rules: []config.SizeRule{
		{List: config.Requests, Resource: "memory", Base: "2Gi"}}})
	f.run(1, 1)
	got := map[string]string{}
	for _, row := range f.last.Sizing.Rules {
		got[row.Rule] += row.Policy + " "
	}
	want := map[string]string{"requests/memory": "overlay ", "requests/memory/apps": "ours ours "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
