// Package apply carries out what planner/diff says differs: it writes the shards of cluster Secrets, the workload's
// replicas, env and resources and the size of running pods, each for what was read just before, and nudges the new
// owners of clusters. It never fights: whoever
// writes something back is waited for longer each time, and named.
package apply

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ballast/planner/diff"
	"ballast/planner/plan"
)

// Apply writes steps against the target's namespace: the pods' sizes side by side, then the workload's in their order
// and the Secrets' side by side. Each
// reads what stands just before it writes, and no failure keeps the others from being tried. A cluster is nudged as
// soon as its own Secret is written.
func (a *Applier) Apply(ctx context.Context, target plan.Target, steps []diff.Step) Report {
	report := Report{Results: make([]Result, len(steps))}
	a.pace.forget(a.Clock.Now())
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(a.Concurrency)
	run := func(i int, w write) Result {
		result, contested := a.paced(ctx, w)
		result.Step = steps[i]
		mu.Lock()
		defer mu.Unlock()
		report.Results[i] = result
		if contested != nil {
			report.Contested = append(report.Contested, *contested)
		}
		return result
	}
	after := nudgesOf(steps)
	for i, s := range steps { // a replica is larger before it gets more
		if s, ok := s.(diff.PatchPod); ok {
			group.Go(func() error {
				run(i, a.podWrite(target, s))
				return nil
			})
		}
	}
	_ = group.Wait()
	for i, s := range steps {
		switch s := s.(type) {
		case diff.PatchWorkload:
			run(i, a.workloadWrite(target, s))
		case diff.PatchShard:
			group.Go(func() error {
				written := run(i, a.shardWrite(target.Namespace, s))
				if n, moves := after[s.Secret]; moves {
					report.Results[n] = a.nudge(ctx, target.Namespace, steps[n].(diff.Nudge), written)
				}
				return nil
			})
		case diff.Nudge:
			if _, waits := after[s.Cluster]; !waits {
				group.Go(func() error {
					report.Results[i] = a.nudge(ctx, target.Namespace, s, Result{})
					return nil
				})
			}
		}
	}
	_ = group.Wait() // a step's error is in its result
	slices.SortFunc(report.Contested, func(x, y Contested) int {
		return cmp.Or(cmp.Compare(x.Secret, y.Secret), cmp.Compare(x.Pod, y.Pod))
	})
	return report
}
