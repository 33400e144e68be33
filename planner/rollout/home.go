package rollout

import (
	"cmp"
	"maps"
	"slices"

	"ballast/planner/placement"
	"ballast/planner/plan"
)

// settle asks placement for the replica of each cluster, below a number of replicas, by name. Replicas that may not receive now
// are closed.
func (t *turn) settle(clusters []placement.Cluster, replicas int) map[string]int {
	bins := make([]placement.Bin, replicas)
	for replica := range bins {
		bins[replica].Open = !t.o.Closed[replica] && t.cannotReceive(replica) == ""
	}
	to := make(map[string]int, len(clusters))
	for i, replica := range placement.Settle(clusters, bins, placement.Policy{MaxClusters: t.o.MaxClusters}) {
		to[clusters[i].Name] = replica
	}
	return to
}

// destinations are where the rows' clusters go among the replicas that stay: their pin, the decision, or where they are. What
// must leave its replica does not wait for one that may receive nothing. A row whose Secret is gone follows the others of its
// server: nobody runs it, and should the Secret come back, its replica must be there.
func (t *turn) destinations() map[string]int {
	present := map[string]bool{}
	clusters := make([]placement.Cluster, 0, len(t.p.Clusters))
	for _, s := range sorted(t.seen.Secrets) {
		_, known := t.p.Clusters[s.Name]
		switch present[s.Name] = true; {
		case !s.managed() && s.Valid:
			clusters = append(clusters, placement.Cluster{Name: s.Name, Server: t.server(s), At: s.Shard, Claim: placement.Fixed})
		case known:
			clusters = append(clusters, t.destination(s.Name, t.server(s)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.p.Clusters)) {
		if !present[name] {
			c := t.destination(name, t.p.Clusters[name].Server)
			c.Claim = placement.Follows
			clusters = append(clusters, c)
		}
	}
	return t.settle(clusters, t.p.Rollout.Replicas)
}

func (t *turn) destination(name, server string) placement.Cluster {
	end := t.p.Rollout.Replicas
	now, _, _ := t.v.Effective(name)
	c := placement.Cluster{Name: name, Server: server, Load: load(t.p.Clusters[name]), At: now, Claim: placement.Stands}
	if pin, pinned := t.v.Pin(name); pinned && pin < end {
		c.At, c.Claim = pin, placement.Pinned
		return c
	}
	if to, decided := t.target[name]; decided && to >= 0 && to < end && (now < end || !t.o.Closed[to]) {
		c.At, c.Claim = to, placement.Decided
	}
	return c
}

// server is what a Secret's clusters share.
func (t *turn) server(s Stamp) string { return cmp.Or(t.p.Clusters[s.Name].Server, serverHash(s)) }

// settleGone gives rows whose Secret is gone their destination.
func (t *turn) settleGone() {
	to := t.destinations()
	for _, s := range t.seen.Secrets {
		delete(to, s.Name)
	}
	for name, replica := range to {
		t.setRow(name, replica)
	}
}

// move gives the rows their new replica, and those that came meanwhile that of their server. A row that was left out until now
// comes in if its Secret is still there.
func (t *turn) move(moves map[string]int) {
	for _, s := range t.seen.Secrets {
		_, known := t.p.Clusters[s.Name]
		if to, due := moves[s.Name]; due && !known {
			t.p.Clusters[s.Name] = plan.Row{Replica: to, Server: serverHash(s)}
		}
	}
	for name, replica := range moves {
		if row, known := t.p.Clusters[name]; known {
			row.Replica = replica
			t.p.Clusters[name] = row
		}
	}
	t.rehouse(t.p.Rollout.Replicas, moves)
}

// rehouse gives rows that go back theirs, and those at or above a number of replicas one below it; what has the server of such a
// row goes with it.
func (t *turn) rehouse(replicas int, back map[string]int) {
	clusters := make([]placement.Cluster, 0, len(t.p.Clusters))
	due := map[string]bool{}
	server := func(name string) string { return cmp.Or(t.p.Clusters[name].Server, name) }
	for _, name := range slices.Sorted(maps.Keys(t.p.Clusters)) {
		row := t.p.Clusters[name]
		c := placement.Cluster{Name: name, Server: row.Server, Load: load(row), At: row.Replica, Claim: placement.Stands}
		was, returns := back[name]
		switch {
		case returns:
			c.At, c.Claim = was, placement.Decided
		case row.Pinned || t.pinnedTo(name, row.Replica):
			c.Claim = placement.Pinned
		}
		due[server(name)] = due[server(name)] || returns || row.Replica >= replicas
		clusters = append(clusters, c)
	}
	for name, replica := range t.settle(clusters, replicas) {
		if due[server(name)] && t.p.Clusters[name].Replica != replica {
			t.setRow(name, replica)
		}
	}
}

// settleBelow gives clusters that appeared on a replica that is to go, since the decision, one that stays.
func (t *turn) settleBelow(limit int) {
	for _, s := range t.seen.Secrets {
		if _, known := t.p.Clusters[s.Name]; !known && s.managed() && s.Valid && s.Shard >= limit {
			t.p.Clusters[s.Name] = plan.Row{Replica: s.Shard, Server: serverHash(s)}
		}
	}
	t.rehouse(limit, nil)
}
