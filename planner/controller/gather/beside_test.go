package gather

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"ballast/planner/config"
	"ballast/planner/conflicts"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// TestNoLookBesideLastsLong: who may make autoscalers and budgets may make any number of them, and no cycle waits for all. What was seen
// last stands, and it is tried again a minute later.
func TestNoLookBesideLastsLong(t *testing.T) {
	clock := testingclock.NewFakeClock(epoch)
	answer := []conflicts.Finding{{Kind: conflicts.Autoscaled, Subject: "hpa/one", Message: "it scales"}}
	failure, looks := error(nil), 0
	bounded := func(ctx context.Context) {
		t.Helper()
		if until, is := ctx.Deadline(); !is || time.Until(until) > besideFor {
			t.Errorf("it may last until %s (%t)", until, is)
		}
	}
	a := &Asker{Options: &wiring.Options{Clock: clock, Log: logr.Discard(),
		Conflicts: func(ctx context.Context, _ plan.Plan) ([]conflicts.Finding, error) {
			looks++
			bounded(ctx)
			return answer, failure
		},
		Surround: func(ctx context.Context, _ plan.Target, _ inputs.Wants) (inputs.Surroundings, error) {
			bounded(ctx)
			return inputs.Surroundings{}, nil
		}}}
	in := input.Inputs{Now: epoch, Config: config.Default(), InForce: &plan.Plan{}}
	found := func(after time.Duration) []input.Finding {
		clock.SetTime(clock.Now().Add(after))
		return a.FindConflicts(t.Context(), in)
	}
	one := input.Finding{Kind: "Autoscaled", Subject: "hpa/one", Message: "it scales"}
	budget := input.Finding{Kind: "PDBBlocks", Subject: "pdb/new"}
	none := input.Finding{Kind: "CannotLook", Subject: "scaledobjects.keda.sh"}
	first := found(0)
	if diff := cmp.Diff([]input.Finding{one}, first); diff != "" {
		t.Errorf("what was found (-want +got):\n%s", diff)
	}
	failure, answer = errors.New("it lasted too long"), nil
	for _, step := range []struct {
		after time.Duration
		looks int
	}{{4 * time.Minute, 1}, {time.Minute, 2}, {59 * time.Second, 2}, {time.Second, 3}} {
		if diff := cmp.Diff(first, found(step.after)); diff != "" || looks != step.looks {
			t.Errorf("%s later, %d looks, want %d (-want +got):\n%s", step.after, looks, step.looks, diff)
		}
	}
	answer = []conflicts.Finding{{Kind: conflicts.PDBBlocks, Subject: "pdb/new"},
		{Kind: conflicts.CannotLook, Subject: "scaledobjects.keda.sh"}}
	if diff := cmp.Diff([]input.Finding{budget, none, one}, found(time.Minute)); diff != "" {
		t.Errorf("what a look that failed did see, and what stood (-want +got):\n%s", diff)
	}
	answer = answer[:1]
	if diff := cmp.Diff([]input.Finding{budget, one}, found(time.Minute)); diff != "" {
		t.Errorf("what is read again is no more said to be unread (-want +got):\n%s", diff)
	}
	in.Config.Size.Policies = []config.SizePolicy{{Name: "a", Rules: []config.SizeRule{{Input: "cores"}}}}
	a.Surroundings(t.Context(), in)
}
