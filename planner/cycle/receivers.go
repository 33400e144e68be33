package cycle

import (
	"fmt"
	"maps"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/input"
	"ballast/planner/diff"
	"ballast/planner/plan"
)

// receiversOf are the replicas that clusters are about to come to, by the rollout under way; target is where it goes as a whole.
func receiversOf(p plan.Plan, target map[string]int) map[int]bool {
	r := p.Rollout
	if r == nil {
		return nil
	}
	to := map[int]bool{}
	for name, row := range p.Clusters {
		for _, moves := range []map[string]int{target, r.Moves} {
			if replica, goes := moves[name]; goes && (replica != row.Replica || r.Was[name] != replica) {
				to[replica] = true
			}
		}
	}
	return to
}

// giversOf are the replicas that clusters are about to leave, or are leaving.
func giversOf(p plan.Plan, target map[string]int) map[int]bool {
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

// sizeOptions is what is known of what pods can be given.
func sizeOptions(in input.Inputs) diff.Options {
	return diff.Options{BreakGlass: in.BreakGlass, NoResize: in.Resizes != nil && !*in.Resizes, Now: in.Now, KeepsLimits: in.KeepsLimits,
		Refused: in.Unsized, Roomless: in.Roomless}
}

// unmet are the pods that have not got the size that a plan holds them at.
func unmet(in input.Inputs, p plan.Plan) []diff.Unmet {
	return diff.Unmets(p, in.Observed.Pods, in.Workload.Unmanaged, sizeOptions(in))
}

// small are the replicas that no wave moves clusters to yet, since they are to be larger than their pods are. A node that says nothing is
// waited for as long as package diff waits; one that has no room ends what levels, and holds up nobody who has to move.
func small(s *snapshot, cause change.Cause) map[int]string {
	r := s.Next.Rollout
	if r == nil || s.Next.Sizes == nil || s.In.BreakGlass {
		return nil
	}
	patient := s.In.Now.Sub(r.Since) < min(diff.GrowsWithin, time.Duration(s.In.Config.Rollout.StageTimeout)/2)
	small := map[int]string{}
	for _, u := range unmet(s.In, s.Next) {
		if u.Coming() && (patient || u.NoRoom() && levels(cause)) {
			small[u.Replica] = u.String()
		}
	}
	return small
}

// levels reports whether a rollout for that cause only levels loads: it can be given up.
func levels(cause change.Cause) bool { return cause == change.Balance || cause == "" }

// tooLarge says why a rollout that levels is to end: a node has no room for what is to come to it. A node that may yet have room is
// given some time.
func tooLarge(s *snapshot) string {
	r := s.Next.Rollout
	if r == nil {
		return ""
	}
	receivers := receiversOf(s.Next, s.changes.Target)
	for _, u := range unmet(s.In, s.Next) {
		lasts := u.State == diff.PodInfeasible || s.In.Now.Sub(r.Since) >= diff.GrowsWithin
		if u.NoRoom() && lasts && receivers[u.Replica] {
			return fmt.Sprintf("the node of replica %d has no room for the size that it needs (%s)", u.Replica, u.State)
		}
	}
	return ""
}

// cramped are the replicas whose nodes had no room for their size within the last hour, or that clusters left for that within the last
// day: nothing is levelled to them.
func cramped(in input.Inputs) map[int]bool {
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
