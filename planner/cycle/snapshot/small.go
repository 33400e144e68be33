package snapshot

import (
	"fmt"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/sizing"
	"ballast/planner/diff"
)

// small are the replicas that no wave moves clusters to yet, since they are to be larger than their pods are. A node that says nothing is
// waited for as long as package diff waits; one that has no room ends what levels, and holds up nobody who has to move.
func small(s *Snapshot, cause change.Cause) map[int]string {
	r := s.Next.Rollout
	if r == nil || s.Next.Sizes == nil || s.In.BreakGlass {
		return nil
	}
	patient := s.In.Now.Sub(r.Since) < min(diff.GrowsWithin, time.Duration(s.In.Config.Rollout.StageTimeout)/2)
	small := map[int]string{}
	for _, u := range sizing.Unmet(s.In, s.Next) {
		if u.Coming() && (patient || u.NoRoom() && cause.Levels()) {
			small[u.Replica] = u.String()
		}
	}
	return small
}

// tooLarge says why a rollout that levels is to end: a node has no room for what is to come to it. A node that may yet have room is
// given some time.
func tooLarge(s *Snapshot) string {
	r := s.Next.Rollout
	if r == nil {
		return ""
	}
	receivers := sizing.ReceiversOf(s.Next, s.Changes.Target)
	for _, u := range sizing.Unmet(s.In, s.Next) {
		lasts := u.State == diff.PodInfeasible || s.In.Now.Sub(r.Since) >= diff.GrowsWithin
		if u.NoRoom() && lasts && receivers[u.Replica] {
			return fmt.Sprintf("the node of replica %d has no room for the size that it needs (%s)", u.Replica, u.State)
		}
	}
	return ""
}
