package rollout

import (
	"cmp"
	"maps"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// settle asks placement for the replica of each row, below a number of replicas, by the one that it belongs on and how
// firmly. A row whose Secret is gone follows the others of its server: nobody runs it, and should the Secret come back,
// its replica must be there.
func (t *transition) settle(replicas int, belongs func(name string) (int, placement.Claim)) map[string]int {
	stamps := make(map[string]observed.Secret, len(t.seen.Secrets))
	clusters := make([]placement.Cluster, 0, len(t.p.Clusters))
	for _, s := range t.seen.Sorted() {
		stamps[s.Name] = s
		if _, known := t.p.Clusters[s.Name]; !known && !s.Managed() && s.Valid {
			fixed := placement.Cluster{Name: s.Name, Server: s.Together(), At: s.Shard, Claim: placement.Fixed, Apart: s.Apart}
			clusters = append(clusters, fixed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.p.Clusters)) {
		row := t.p.Clusters[name]
		c := placement.Cluster{Name: name, Server: t.together(name), Load: plan.LoadOf(row.Load), Apart: stamps[name].Apart}
		c.At, c.Claim = belongs(name)
		switch s, present := stamps[name]; {
		case !present && len(stamps) > 0 && c.Claim != placement.Decided:
			c.Claim = placement.Follows
		case !s.Managed() && s.Valid:
			c.At, c.Claim = s.Shard, placement.Fixed
		case s.Follows && c.Claim == placement.Stands:
			c.Claim = placement.Follows
		}
		clusters = append(clusters, c)
	}
	to := make(map[string]int, len(clusters))
	for i, replica := range placement.Settle(clusters, t.bins(replicas), placement.Policy{MaxClusters: t.o.MaxClusters}) {
		to[clusters[i].Name] = replica
	}
	return to
}

// bins are replicas that carry nothing yet; those that may not receive now are closed.
func (t *transition) bins(replicas int) []placement.Bin {
	bins := make([]placement.Bin, replicas)
	for replica := range bins {
		bins[replica].Open = !t.o.Closed[replica] && t.cannotReceive(replica) == ""
	}
	return bins
}

// destinations are where the rows' clusters go among the replicas that stay.
func (t *transition) destinations() map[string]int {
	return t.settle(t.p.Rollout.Replicas, t.destination)
}

// destination is where a cluster belongs: its pin, the decision, or where it is. What must leave its replica does not
// wait for one that may receive nothing.
func (t *transition) destination(name string) (int, placement.Claim) {
	end := t.p.Rollout.Replicas
	now, _, _ := t.v.Effective(name)
	if pin, pinned := t.v.Pin(name); pinned && pin < end {
		return pin, placement.Pinned
	}
	to, decided := t.target[name]
	open := now < end || !t.o.Closed[to]
	if decided && open && to < end {
		return to, placement.Decided
	}
	return now, placement.Stands
}

// settleGone gives rows whose Secret is gone their destination.
func (t *transition) settleGone() {
	to := t.destinations()
	for _, s := range t.seen.Secrets {
		delete(to, s.Name)
	}
	for name, replica := range to {
		if t.p.Clusters[name].Replica != replica { // else the pin of a Secret that is not seen would be lost
			t.setRow(name, replica)
		}
	}
}

// move gives the rows their new replica, and those that came meanwhile that of their server. A row that was left out
// until now comes in if its Secret is still there.
func (t *transition) move(moves map[string]int) {
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
	if len(t.seen.Secrets) > 0 { // else the rollout only begins, with rows that are settled
		t.reassign(t.p.Rollout.Replicas, moves)
	}
}

// reassign gives rows that go back theirs, and those at or above a number of replicas one below it; what has the server
// of such a row goes with it.
func (t *transition) reassign(replicas int, back map[string]int) {
	due := map[string]bool{}
	server := func(name string) string { return cmp.Or(t.together(name), name) }
	to := t.settle(replicas, func(name string) (int, placement.Claim) {
		row := t.p.Clusters[name]
		was, returns := back[name]
		due[server(name)] = due[server(name)] || returns || row.Replica >= replicas
		switch {
		case returns:
			return was, placement.Decided
		case row.Pinned || t.pinnedTo(name, row.Replica):
			return row.Replica, placement.Pinned
		}
		return row.Replica, placement.Stands
	})
	for name := range t.p.Clusters {
		if due[server(name)] && t.p.Clusters[name].Replica != to[name] {
			t.setRow(name, to[name])
		}
	}
}

// settleBelow gives clusters that appeared on a replica that is to go, since the decision, one that stays.
func (t *transition) settleBelow(limit int) {
	for _, s := range t.seen.Secrets {
		if _, known := t.p.Clusters[s.Name]; !known && s.Managed() && s.Valid && s.Shard >= limit {
			t.p.Clusters[s.Name] = plan.Row{Replica: s.Shard, Server: serverHash(s)}
		}
	}
	t.reassign(limit, nil)
}
