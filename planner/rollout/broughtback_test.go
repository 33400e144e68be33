package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/diff"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// TestWhatPeopleBroughtBackIsNotStoppedAgain: no planner led for so long that the webhook let people scale the workload up.
// The one that leads then finds its stop as it left it, and turns back without a second one, neither by a cycle nor by a
// repair before it.
func TestWhatPeopleBroughtBackIsNotStoppedAgain(t *testing.T) {
	const hour = time.Hour
	draining := stopped(plan.Draining, old, func(p *plan.Plan) { p.Rollout.Moves = shards{"b": 2} })
	rewriting := stopped(plan.Assigning, grown, func(p *plan.Plan) { p.Rollout.Was = shards{"b": 1} })
	for name, test := range map[string]struct {
		plan   plan.Plan
		stamps shards
		asked  int // by people
		want   []int
	}{
		"while the pods were to stop":                     {draining, old, 2, []int{2}},
		"with more than there were":                       {draining, old, 6, []int{6, 2}},
		"with fewer":                                      {draining, old, 1, []int{1, 2}},
		"while Secrets were to be written":                {rewriting, old, 2, []int{2}},
		"and all of them were":                            {rewriting, grown, 2, []int{2}},
		"and all of them were, with more than there were": {rewriting, grown, 6, []int{6, 2}},
	} {
		for _, timeout := range []time.Duration{10 * time.Minute, hour} {
			t.Run(fmt.Sprintf("%s, stages of %s", name, timeout), func(t *testing.T) {
				f, p, now := newFleet(test.asked, 2, test.stamps), test.plan.Clone(), start.Add(plan.StopHeld+time.Second)
				f.act(diff.Between(plan.NewView(p, nil), f.seen(), diff.Options{Now: now}))
				counts, outcomes := []int{f.Replicas}, []Outcome{}
				for range 60 {
					var progress Progress
					p, progress = Advance(plan.NewView(p, nil), f.seen(), nil, basis.Options{Mode: plan.ModeX0Y, StageTimeout: timeout}, now)
					if progress.Outcome != Waiting && progress.Outcome != Idle {
						outcomes = append(outcomes, progress.Outcome)
					}
					f.act(diff.Between(plan.NewView(p, nil), f.seen(), diff.Options{Now: now}))
					if counts[len(counts)-1] != f.Replicas {
						counts = append(counts, f.Replicas)
					}
					f.tick()
					now = now.Add(10 * time.Second)
				}
				if diff := cmp.Diff(test.want, counts) + cmp.Diff([]Outcome{TurnedBack, Reverted}, outcomes); diff != "" {
					t.Errorf("replicas one after the other, and outcomes (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(newPlan(2, 2, old), p) + cmp.Diff(old, f.shards()) + f.misowned(); diff != "" {
					t.Errorf("in the end (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestAStopIsHeldForAWhile: before that, replicas that come are put back to 0, and a stop whose time lies in the future goes on.
func TestAStopIsHeldForAWhile(t *testing.T) {
	p := stopped(plan.Draining, old, nil)
	for after, want := range map[time.Duration][]diff.Step{
		-time.Hour:                  {diff.PatchWorkload{Replicas: ptr(0), Why: diff.Rolling}},
		plan.StopHeld:               {diff.PatchWorkload{Replicas: ptr(0), Why: diff.Rolling}},
		plan.StopHeld + time.Second: nil,
	} {
		got := diff.Between(plan.NewView(p, nil), fit(2, 2, old), diff.Options{Now: start.Add(after)}).Steps
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s after its begin (-want +got):\n%s", after, diff)
		}
	}
}

func (f *fleet) act(a diff.Result) {
	for _, s := range a.Steps {
		f.do(s)
	}
}
