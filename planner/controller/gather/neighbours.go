package gather

import (
	"context"
	"time"

	"ballast/planner/conflicts"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/size/inputs"
)

// A look that lasts longer than besideFor is given up, and what was seen last stands: who may make what is looked at
// may make any number of it, and no cycle may wait for that. It is tried again a minute later.
const (
	besideFor   = 20 * time.Second
	besideAgain = time.Minute
)

// conflictsEvery is how long what else has a say over the workload is believed.
const conflictsEvery = 5 * time.Minute

// FindConflicts looks for autoscalers and disruption budgets from time to time.
func (a *Asker) FindConflicts(ctx context.Context, in input.Inputs) (found []input.Finding) {
	for _, f := range a.neighbours(ctx, in) {
		found = append(found, input.Finding{Kind: string(f.Kind), Subject: f.Subject, Message: f.Message})
	}
	return found
}

// neighbours are what was found last, or is found now where that is too old.
func (a *Asker) neighbours(ctx context.Context, in input.Inputs) []conflicts.Finding {
	if a.Conflicts == nil || in.InForce == nil {
		return nil
	}
	if since := a.Clock.Since(a.conflictsAt); !a.conflictsAt.IsZero() && since >= 0 && since < conflictsEvery {
		return a.found
	}
	ctx, end := context.WithTimeout(ctx, besideFor)
	defer end()
	found, err := a.Conflicts(ctx, *in.InForce)
	if err != nil {
		a.Log.Error(err, "looking for autoscalers and disruption budgets; it is tried again")
		a.found, a.conflictsAt = conflicts.Standing(found, a.found), a.Clock.Now().Add(besideAgain-conflictsEvery)
		return a.found
	}
	a.found, a.conflictsAt = found, a.Clock.Now()
	return found
}

// Surroundings asks once an interval for what size rules read beside loads, of large clusters less often. While the API
// server does not answer, what was seen last stands, with the time at which it was.
func (a *Asker) Surroundings(ctx context.Context, in input.Inputs) inputs.Surroundings {
	want, of := inputs.WantsOf(in.Config.Size), standing.TargetOf(in.Workload)
	if a.Surround == nil || !want.Any() {
		a.around = around{}
		return inputs.Surroundings{}
	}
	last := a.around
	if last.want != want || last.of != of {
		last = around{want: want, of: of}
	}
	if age := in.Now.Sub(last.at); age >= 0 && age < last.lasts(time.Duration(in.Config.Interval)) {
		return last.seen
	}
	ctx, end := context.WithTimeout(ctx, besideFor)
	defer end()
	seen, err := a.Surround(ctx, of, want)
	if err != nil {
		a.Log.Error(err, "looking at nodes and autoscalers for size rules; what was seen last stands")
	}
	last.at, last.seen = in.Now, seen.Or(last.seen)
	a.around = last
	return last.seen
}
