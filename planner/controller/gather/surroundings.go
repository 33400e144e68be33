package gather

import (
	"context"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/size/inputs"
)

// The nodes of a large cluster are megabytes of answers, and change slowly.
const (
	manyNodes  = 500
	nodesEvery = 5 * time.Minute
)

// around is what was seen last beside the workload.
type around struct {
	at   time.Time
	of   plan.Target
	want inputs.Wants
	seen inputs.Surroundings
}

// lasts is how long it is planned with.
func (a around) lasts(interval time.Duration) time.Duration {
	if n := a.seen.Nodes; n != nil && n.Count > manyNodes {
		return max(interval, nodesEvery)
	}
	return interval
}

// Surroundings asks once an interval for what size rules read beside loads, of large clusters less often. While the API server does
// not answer, what was seen last stands, with the time at which it was.
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
