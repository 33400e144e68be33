package snapshot

import (
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/standing"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// settle answers a replica below that number for every row: a pin's, else the decided one, else the one it has, and
// where none of them counts what placement answers. The Secrets of one server have one, and one that ballast may not
// write keeps its own. Parted are clusters that leave a group whose pin keeps it where nobody works.
func (s *Snapshot) settle(replicas int, decided map[string]int, parted map[string]bool) map[string]int {
	clusters := make([]placement.Cluster, 0, len(s.Next.Clusters))
	var last map[string]plan.Load
	if s.Partial {
		last = loads.Last(s.Ground)
	}
	for i := range s.Fleet.Clusters {
		p := s.Cluster(i)
		if parted[p.Name] {
			p.Server = s.Fleet.Clusters[i].OfServer()
		}
		p.Load = last[p.Name]
		if s.Loads != nil {
			p.Load = s.Loads[i]
		}
		_, row := s.Next.Clusters[p.Name]
		pin, pinned := s.Pins[p.Name]
		to, chosen := decided[p.Name]
		switch {
		case row && pinned && pin < replicas:
			p.At, p.Claim = pin, placement.Pinned
		case chosen && p.Claim < placement.Decided:
			p.At, p.Claim = to, placement.Decided
		}
		clusters = append(clusters, p)
	}
	for _, name := range standing.RowsWithoutSecret(s.Next.Clusters, s.Fleet) {
		row := s.Next.Clusters[name]
		gone := placement.Cluster{Name: name, Server: s.Beside.Of(name, row.Server), At: row.Replica,
			Claim: placement.Follows, Load: last[name], Memory: s.ByName[name]}
		clusters = append(clusters, gone)
	}
	of := make(map[string]int, len(clusters))
	for i, to := range placement.Settle(clusters, s.Bins(replicas), placement.Policy{MaxClusters: s.MostClusters(), Memory: s.InUse.Most()}) {
		of[clusters[i].Name] = to
	}
	return of
}

// WantOf words a target for the rollout: clusters whose replica was decided, and all others where they settle.
func (s *Snapshot) WantOf(replicas int, decided map[string]int) *rollout.Proposal {
	return s.WantParted(replicas, decided, nil)
}

// WantParted is WantOf, where some clusters do not stay with their groups.
func (s *Snapshot) WantParted(replicas int, decided map[string]int, parted map[string]bool) *rollout.Proposal {
	rows, of := make(map[string]plan.Row, len(s.Next.Clusters)), s.settle(replicas, decided, parted)
	for name, row := range s.Next.Clusters {
		if !staysAsItIs(s.Ground, name, row, of[name]) {
			row.Replica = of[name]
			pin, pinned := s.Pins[name]
			row.Pinned = pinned && pin == row.Replica
		}
		rows[name] = row
	}
	return &rollout.Proposal{Replicas: replicas, ControllerReplicas: s.Env().Of(replicas), Rows: rows}
}

// staysAsItIs reports whether a row is left alone whose Secret is not seen, and with it the pin that the Secret may
// have.
func staysAsItIs(g *ground.Ground, name string, row plan.Row, replica int) bool {
	return g.Partial && row.Replica == replica && !standing.Has(g.Fleet, name)
}

// Price is what all moves have to pay together where they restart every replica: what all clusters make.
func Price(s *Snapshot) (all plan.Load) {
	if !s.In.Config.Rollout.MovesRestart() && s.In.Config.Rollout.Live != nil && s.Next.Target.Kind != plan.Deployment {
		return 0
	}
	for _, r := range s.Now {
		all += r.TotalLoad
	}
	return all
}
