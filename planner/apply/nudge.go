package apply

import (
	"context"
	"fmt"
	"time"

	"ballast/planner/diff"
	"ballast/planner/observed"
)

// nudgesOf are the nudges of clusters whose Secret is written by the same steps: they wait for that.
func nudgesOf(steps []diff.Step) map[string]int {
	written, after := map[string]bool{}, map[string]int{}
	for _, s := range steps {
		if s, ok := s.(diff.PatchShard); ok {
			written[s.Secret] = true
		}
	}
	for i, s := range steps {
		if s, ok := s.(diff.Nudge); ok && written[s.Cluster] {
			after[s.Cluster] = i
		}
	}
	return after
}

// Repaired are the Secrets whose clusters repairs gave another owner lately, as long as there are nudges left for it.
func (a *Applier) Repaired() map[string]observed.Repair { return a.pace.repairs(a.Clock.Now()) }

// nudge wakes a cluster's new owner, at the pace of nudges, unless its Secret was not written just now. One that has no
// Application needs none. Until says when there is another one to be made, if the new owner has not taken it by then.
func (a *Applier) nudge(ctx context.Context, namespace string, s diff.Nudge, written Result) Result {
	now := a.Clock.Now()
	result := Result{Step: s, Outcome: Unchanged}
	switch written.Outcome {
	case Deferred, Refused, Failed:
		result.Outcome, result.Until = Deferred, now.Add(nudgeEvery)
		return result
	}
	if a.Nudger == nil || s.Since.IsZero() && written.Outcome != Applied {
		return result // whoever wrote the Secret before the repair did is not known
	}
	if s.Since.IsZero() {
		s.Since = now
		a.pace.repair(s.Cluster, observed.Repair{Shard: s.Shard, At: now})
	}
	wait, spent := a.pace.nudge(s, now)
	switch {
	case spent:
		return result
	case wait > 0:
		result.Outcome, result.Until = Deferred, now.Add(wait)
		return result
	case a.pace.hangs(now):
		a.pace.missed(s)
		result.Outcome, result.Until = Deferred, now.Add(hangsFor)
		return result
	}
	application, hangs, err := a.wake(ctx, namespace, s)
	switch {
	case err != nil:
		if !hangs { // one that hangs counts, or the same ones would be before all others each time
			a.pace.missed(s)
		}
		result.Outcome, result.Err, result.Until = Failed,
			fmt.Errorf("nudging an Application of cluster %q: %w", s.Cluster, err), now.Add(nudgeEvery)
	case application != "":
		result.Outcome, result.Until = Applied, now.Add(a.pace.again(s))
	default:
		a.pace.leave(s.Cluster)
	}
	return result
}

// nudgeWithin is how long a nudge may keep writes of Secrets waiting: whoever makes Applications until they take
// minutes to list must not hold up a failover.
const nudgeWithin = 20 * time.Second

// wake asks the Nudger, which reads Applications, and those are anybody's: a panic there is a nudge that failed.
func (a *Applier) wake(ctx context.Context, namespace string, s diff.Nudge) (application string, hangs bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a panic of type %T", p)
		}
	}()
	within, cancel := context.WithTimeout(ctx, nudgeWithin)
	defer cancel()
	application, err = a.Nudger.Nudge(within, namespace, s.Cluster, s.Server, s.Name)
	if hangs = err != nil && within.Err() != nil && ctx.Err() == nil; hangs {
		a.pace.hang(a.Clock.Now())
	}
	return application, hangs, err
}
