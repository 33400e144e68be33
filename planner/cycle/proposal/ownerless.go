package proposal

import (
	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
)

// noOwner is why the waves of what a person asked for end where they may.
const noOwner = "clusters of a replica that nobody works for leave it first"

// YieldsToFailover says why waves that a person asked for end: a failover of what nobody has would begin now. What is
// left of them is proposed again once that is over. Empty: they go on.
func YieldsToFailover(s *snapshot.Snapshot) string {
	cause := s.Changes.Cause
	asked := cause == change.Rollback || cause == change.Drain
	if !asked || len(s.Replicas.Unwell()) == 0 {
		return ""
	}
	rest, g := *s, *s.Ground
	g.Next.Rollout = nil
	rest.Ground = &g
	rest.Judge(func(problem.Problem) {})
	if ownerlessFailover(&rest) == nil {
		return ""
	}
	return noOwner
}

// first is a failover of what nobody has, before the rollback that a person asks for.
func first(s *snapshot.Snapshot) *Proposed {
	if s.In.Rollback == nil {
		return nil // it is what comes next
	}
	return ownerlessFailover(s)
}

// ownerlessFailover is a failover off a replica that nobody works for, of a cluster at least that was there for an hour
// and has Applications as far as anybody knows: who may create Secrets must not keep people from going back. One that
// failed a short while ago does not count: it would fail again, and keep people from going back.
func ownerlessFailover(s *snapshot.Snapshot) *Proposed {
	if failedLast(s) || !s.May(gate.FailOver) {
		return nil
	}
	p := evacuation(s)
	if p == nil || p.Want == nil || p.Cause != change.Failover {
		return nil
	}
	for _, replica := range s.Replicas.Unwell() {
		if works(s, replica) {
			continue
		}
		for name, row := range s.Next.Clusters {
			served := s.Knows(name) && !s.Changes.Ownership.Idle(s.In.Observed.Reported, name)
			if served && row.Replica == replica && p.Want.Rows[name].Replica != replica {
				return p
			}
		}
	}
	return nil
}

// failedLast reports whether the rollout that failed a short while ago is a failover.
func failedLast(s *snapshot.Snapshot) bool {
	failures := s.In.Memory.Changes.Failures
	held := !s.In.Memory.HeldUntil(s.In.Now).IsZero()
	return held && len(failures) > 0 && failures[len(failures)-1].Cause == change.Failover
}
