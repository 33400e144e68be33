package snapshot

import (
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// unwritten are the clusters, by name, that Argo CD has where its algorithm does: their Secrets name no replica, and
// ballast cannot write one there.
func (s *Snapshot) unwritten() map[string]bool {
	those := map[string]bool{}
	for _, c := range s.Fleet.Clusters {
		if standing.LeftToAlgorithm(c) {
			those[c.Shard.ID] = true
		}
	}
	return those
}

// Stuck are the clusters, by name, whose Secrets name no replica and that ballast cannot write, and those that stay
// together with such a one.
func (s *Snapshot) Stuck() map[string]bool {
	with := func(name string) string { return s.Beside.Of(name, s.Next.Clusters[name].Server) }
	stuck, keys := s.unwritten(), map[string]bool{}
	for name := range stuck {
		keys[with(name)] = true
	}
	for name := range s.Next.Clusters {
		if key := with(name); key != "" && keys[key] {
			stuck[name] = true
		}
	}
	return stuck
}

// Vain are the clusters, by name, that are wanted elsewhere, where all of them have Secrets that ballast cannot write: no
// wave moves those, and a rollout for them would end with everything as it was, and begin anew. Empty: it does something.
func (s *Snapshot) Vain(w *rollout.Proposal) (names []string) {
	if w.Replicas != s.Next.Replicas || w.ControllerReplicas != s.Next.ControllerReplicas {
		return nil
	}
	unwritten := s.unwritten()
	for _, m := range rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows}) {
		if !unwritten[m.Cluster] {
			return nil
		}
		names = append(names, m.Cluster)
	}
	return names
}
