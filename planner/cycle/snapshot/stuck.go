package snapshot

import (
	"slices"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// Stuck are the clusters, by name, that Argo CD has where its algorithm does, since their Secrets name no replica and
// ballast cannot write one there, and those that stay together with such a one.
func (s *Snapshot) Stuck() map[string]bool {
	with := func(name string) string { return s.Beside.Of(name, s.Next.Clusters[name].Server) }
	stuck, those := map[string]bool{}, map[string]bool{}
	for _, c := range s.Fleet.Clusters {
		peoples := (c.Immutable || c.Unmanaged) && !c.Implicit
		if name := c.Shard.ID; peoples && c.Explicit.State != discover.ShardValid {
			stuck[name], those[with(name)] = true, true
		}
	}
	for name := range s.Next.Clusters {
		if key := with(name); key != "" && those[key] {
			stuck[name] = true
		}
	}
	return stuck
}

// Vain reports whether all that is wanted are moves of such clusters, which no wave makes: a rollout for them would end
// with everything as it was, and begin anew.
func (s *Snapshot) Vain(w *rollout.Proposal) bool {
	counts := w.Replicas != s.Next.Replicas || w.ControllerReplicas != s.Next.ControllerReplicas
	moves := rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})
	if counts || len(moves) == 0 {
		return false
	}
	stuck := s.Stuck()
	return !slices.ContainsFunc(moves, func(m rollout.Move) bool { return !stuck[m.Cluster] })
}
