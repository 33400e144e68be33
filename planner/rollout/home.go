package rollout

import (
	"cmp"
	"maps"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// layout changes which replica the plan's rows have.
type layout struct{ *ground }

// settle asks placement for the replica of each row, below a number of replicas, by the one that it belongs on and how
// firmly. A row whose Secret is gone follows the others of its server: nobody runs it, and should the Secret come back,
// its replica must be there.
func (l layout) settle(replicas int, belongs func(name string) (int, placement.Claim)) map[string]int {
	stamps := make(map[string]observed.Secret, len(l.seen.Secrets))
	clusters := make([]placement.Cluster, 0, len(l.p.Clusters))
	for _, s := range l.seen.Sorted() {
		stamps[s.Name] = s
		if _, known := l.p.Clusters[s.Name]; !known && !s.Managed() && s.Valid {
			fixed := placement.Cluster{Name: s.Name, Server: s.Together(), At: s.Shard, Claim: placement.Fixed, Apart: s.Apart}
			clusters = append(clusters, fixed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.p.Clusters)) {
		row := l.p.Clusters[name]
		c := placement.Cluster{Name: name, Server: l.together(name), Load: plan.LoadOf(row.Load), Apart: stamps[name].Apart}
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
	for i, replica := range placement.Settle(clusters, l.bins(replicas), placement.Policy{MaxClusters: l.o.MaxClusters}) {
		to[clusters[i].Name] = replica
	}
	return to
}

// bins are replicas that carry nothing yet; those that may not receive now are closed.
func (l layout) bins(replicas int) []placement.Bin {
	bins := make([]placement.Bin, replicas)
	for replica := range bins {
		bins[replica].Open = !l.o.Closed[replica] && answers(l).cannotReceive(replica) == ""
	}
	return bins
}

// destinations are where the rows' clusters go among the replicas that stay.
func (l layout) destinations() map[string]int {
	return l.settle(l.p.Rollout.Replicas, l.destination)
}

// destination is where a cluster belongs: its pin, the decision, or where it is. What must leave its replica does not
// wait for one that may receive nothing.
func (l layout) destination(name string) (int, placement.Claim) {
	end := l.p.Rollout.Replicas
	now, _, _ := l.v.Effective(name)
	if pin, pinned := l.v.Pin(name); pinned && pin < end {
		return pin, placement.Pinned
	}
	to, decided := l.target[name]
	open := now < end || !l.o.Closed[to]
	if decided && open && to < end {
		return to, placement.Decided
	}
	return now, placement.Stands
}

// settleGone gives rows whose Secret is gone their destination.
func (l layout) settleGone() {
	to := l.destinations()
	for _, s := range l.seen.Secrets {
		delete(to, s.Name)
	}
	for name, replica := range to {
		if l.p.Clusters[name].Replica != replica { // else the pin of a Secret that is not seen would be lost
			l.setRow(name, replica)
		}
	}
}

// move gives the rows their new replica, and those that came meanwhile that of their server. A row that was left out
// until now comes in if its Secret is still there.
func (l layout) move(moves map[string]int) {
	for _, s := range l.seen.Secrets {
		_, known := l.p.Clusters[s.Name]
		if to, due := moves[s.Name]; due && !known {
			l.p.Clusters[s.Name] = plan.Row{Replica: to, Server: serverHash(s)}
		}
	}
	for name, replica := range moves {
		if row, known := l.p.Clusters[name]; known {
			row.Replica = replica
			l.p.Clusters[name] = row
		}
	}
	if len(l.seen.Secrets) > 0 { // else the rollout only begins, with rows that are settled
		l.reassign(l.p.Rollout.Replicas, moves)
	}
}

// reassign gives rows that go back theirs, and those at or above a number of replicas one below it; what has the server
// of such a row goes with it.
func (l layout) reassign(replicas int, back map[string]int) {
	due := map[string]bool{}
	server := func(name string) string { return cmp.Or(l.together(name), name) }
	to := l.settle(replicas, func(name string) (int, placement.Claim) {
		row := l.p.Clusters[name]
		was, returns := back[name]
		due[server(name)] = due[server(name)] || returns || row.Replica >= replicas
		switch {
		case returns:
			return was, placement.Decided
		case row.Pinned || l.pinnedTo(name, row.Replica):
			return row.Replica, placement.Pinned
		}
		return row.Replica, placement.Stands
	})
	for name := range l.p.Clusters {
		if due[server(name)] && l.p.Clusters[name].Replica != to[name] {
			l.setRow(name, to[name])
		}
	}
}

// settleBelow gives clusters that appeared on a replica that is to go, since the decision, one that stays.
func (l layout) settleBelow(limit int) {
	for _, s := range l.seen.Secrets {
		if _, known := l.p.Clusters[s.Name]; !known && s.Managed() && s.Valid && s.Shard >= limit {
			l.p.Clusters[s.Name] = plan.Row{Replica: s.Shard, Server: serverHash(s)}
		}
	}
	l.reassign(limit, nil)
}
