package sizing

import (
	"maps"

	"ballast/planner/cycle/input"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// ReceiversOf are the replicas that clusters are about to come to, by the rollout under way; target is where it goes as
// a whole.
func ReceiversOf(p plan.Plan, target map[string]int) map[int]bool {
	r := p.Rollout
	if r == nil {
		return nil
	}
	to := map[int]bool{}
	for name, row := range p.Clusters {
		was, moving := r.Was[name] // of this wave: what moved in one before has arrived
		for _, moves := range []map[string]int{target, r.Moves} {
			replica, goes := moves[name]
			if arrives := moving && was != replica; goes && (arrives || replica != row.Replica) {
				to[replica] = true
			}
		}
	}
	return to
}

// GiversOf are the replicas that clusters are about to leave, or are leaving.
func GiversOf(p plan.Plan, target map[string]int) map[int]bool {
	r := p.Rollout
	if r == nil {
		return nil
	}
	from := map[int]bool{}
	for name, row := range p.Clusters {
		for _, moves := range []map[string]int{target, r.Moves} {
			if to, goes := moves[name]; goes && to != row.Replica {
				from[row.Replica] = true
			}
		}
	}
	maps.Copy(from, leaversOf(p))
	return from
}

// leaversOf are the replicas that clusters have left by the plan, in the wave under way.
func leaversOf(p plan.Plan) map[int]bool {
	if p.Rollout == nil {
		return nil
	}
	left := map[int]bool{}
	for name, was := range p.Rollout.Was {
		if row, known := p.Clusters[name]; known && row.Replica != was {
			left[was] = true
		}
	}
	return left
}

// Options is what is known of what pods can be given.
func Options(in input.Inputs) diff.Options {
	return diff.Options{BreakGlass: in.BreakGlass, NoResize: in.Resizes != nil && !*in.Resizes, Now: in.Now,
		KeepsLimits: in.KeepsLimits,
		Refused:     in.Unsized, Roomless: in.Roomless}
}

// Unmet are the pods that have not got the size that a plan holds them at.
func Unmet(in input.Inputs, p plan.Plan) []diff.Unmet {
	return diff.Unmets(p, in.Observed.Pods, in.Workload.Unmanaged, Options(in))
}

// Cramped are the replicas whose nodes had no room for their size within the last hour, or that clusters left for that
// within the last day: nothing is levelled to them.
func Cramped(in input.Inputs) map[int]bool {
	full := map[int]bool{}
	if len(in.Config.Size.All()) == 0 {
		return full
	}
	for replica := range in.Memory.Sizes.NoRoom {
		full[replica] = true
	}
	for replica, c := range in.Memory.Sizes.Cramped {
		full[replica] = full[replica] || in.Config.Size.MoveAway != nil && !c.Left.IsZero()
	}
	return full
}
