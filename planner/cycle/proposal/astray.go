package proposal

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/rollout"
	"ballast/planner/rollout/answers"
)

// followsAgain is how long after the plan followed one owner that was astray it follows no other: whoever makes and
// deletes Secrets over and over must not take up the move budget by it.
const followsAgain = 6 * time.Hour

// followAstray has the plan give one cluster whose owner is astray to the replica that has it. That moves nothing, and
// the write of its Secret makes every pod work out the replica of each cluster anew, so that the others that are astray
// are where the plan has them again. Where it is too much there, it is levelled off like any other. In the other modes
// a move restarts pods: people are told.
func followAstray(s *snapshot.Snapshot) *Proposed {
	last := s.Changes.Ownership.Followed
	lately := !last.IsZero() && s.In.Now.Sub(last) < followsAgain
	if s.In.Config.Rollout.Live == nil || len(s.Verdict.Astray) == 0 || lately {
		return nil
	}
	if s.LevelWaits() != "" {
		return nil
	}
	for _, a := range s.Verdict.Astray {
		if want := following(s, a); want != nil {
			return &Proposed{Want: want, Cause: change.Balance, Follows: true, Why: fmt.Sprintf(
				"follows Argo CD, which has cluster %q on replica %d and not, as its Secret says, on %d: one write makes its pods agree again", a.Cluster, a.Owners[0], a.Intended)}
		}
	}
	return nil
}

// following is what the plan is to be once it has followed one owner; nil: it cannot.
func following(s *snapshot.Snapshot, a ownership.Astray) *rollout.Proposal {
	to := a.Owners[0]
	if len(a.Owners) > 1 || to < 0 || to >= s.Next.Replicas {
		return nil
	}
	full := func(p observed.Pod) bool { return p.Replica == to && answers.NearsLimit(p) }
	if slices.ContainsFunc(s.In.Observed.Pods, full) { // which receives no wave
		return nil
	}
	for i, cl := range s.Fleet.Clusters {
		if cl.Shard.ID == a.Cluster && s.Fixed().To(i).At != plan.NoReplica {
			return nil
		}
	}
	decided := map[string]int{a.Cluster: to}
	if len(keepApart(s, decided, s.Next.Replicas))+len(KeepWithin(s, decided, s.Next.Replicas)) > 0 {
		return nil
	}
	want, on := s.WantOf(s.Next.Replicas, decided), 0
	want.ControllerReplicas = s.Next.ControllerReplicas
	for _, row := range want.Rows {
		if row.Replica == to {
			on++
		}
	}
	if most := s.MostClusters(); most > 0 && on > most {
		return nil
	}
	if want.Rows[a.Cluster].Replica != to || !hasAll(s, a, to, want) {
		return nil
	}
	return want
}

// hasAll reports whether the replica has all that would come to it already: of a group that is to be together the
// others would move.
func hasAll(s *snapshot.Snapshot, a ownership.Astray, to int, want *rollout.Proposal) bool {
	server := s.Next.Clusters[a.Cluster].Server
	return !slices.ContainsFunc(rollout.Moves(s.Next, plan.Plan{Clusters: want.Rows}), func(m rollout.Move) bool {
		twin := server != "" && s.Next.Clusters[m.Cluster].Server == server
		there := m.To == to && slices.Equal(s.Verdict.Owned[m.Cluster].Owners, []int{to})
		return !twin && !there
	})
}
