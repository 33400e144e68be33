// Package layout changes which replica the plan's rows have while a rollout goes on.
package layout

import (
	"cmp"
	"maps"
	"slices"

	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout/answers"
	"ballast/planner/rollout/basis"
)

// Layout changes which replica the plan's rows have.
type Layout struct{ *basis.Basis }

// settle asks placement for the replica of each row, below a number of replicas, by the one that it belongs on and how
// firmly. A row whose Secret is gone follows the others of its server: nobody runs it, and should the Secret come back,
// its replica must be there.
func (l Layout) settle(replicas int, belongs func(name string) (int, placement.Claim)) map[string]int {
	stamps := make(map[string]observed.Secret, len(l.Seen.Secrets))
	clusters := make([]placement.Cluster, 0, len(l.Plan.Clusters))
	for _, s := range l.Seen.Sorted() {
		stamps[s.Name] = s
		if _, known := l.Plan.Clusters[s.Name]; !known && !s.Managed() && s.Valid {
			fixed := placement.Cluster{Name: s.Name, Server: s.Together(), At: s.Shard, Claim: placement.Fixed,
				Apart: s.Apart}
			clusters = append(clusters, fixed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Plan.Clusters)) {
		row := l.Plan.Clusters[name]
		c := placement.Cluster{Name: name, Server: l.Together(name), Load: plan.LoadOf(row.Load),
			Apart: stamps[name].Apart}
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
	for i, replica := range placement.Settle(clusters, l.bins(replicas), placement.Policy{MaxClusters: l.Options.MaxClusters}) {
		to[clusters[i].Name] = replica
	}
	return to
}

// bins are replicas that carry nothing yet; those that may not receive now are closed.
func (l Layout) bins(replicas int) []placement.Bin {
	bins := make([]placement.Bin, replicas)
	for replica := range bins {
		bins[replica].Open = !l.Options.Closed[replica] && answers.Answers(l).CannotReceive(replica) == ""
	}
	return bins
}

// Destinations are where the rows' clusters go among the replicas that stay.
func (l Layout) Destinations() map[string]int {
	return l.settle(l.Plan.Rollout.Replicas, l.destination)
}

// destination is where a cluster belongs: its pin, the decision, or where it is. What must leave its replica does not
// wait for one that may receive nothing.
func (l Layout) destination(name string) (int, placement.Claim) {
	end := l.Plan.Rollout.Replicas
	now, _, _ := l.View.Effective(name)
	if pin, pinned := l.View.Pin(name); pinned && pin < end {
		return pin, placement.Pinned
	}
	to, decided := l.Target[name]
	open := now < end || !l.Options.Closed[to]
	if decided && open && to < end {
		return to, placement.Decided
	}
	return now, placement.Stands
}

// SettleGone gives rows whose Secret is gone their destination.
func (l Layout) SettleGone() {
	to := l.Destinations()
	for _, s := range l.Seen.Secrets {
		delete(to, s.Name)
	}
	for name, replica := range to {
		if l.Plan.Clusters[name].Replica != replica { // else the pin of a Secret that is not seen would be lost
			l.SetRow(name, replica)
		}
	}
}

// Move gives the rows their new replica, and those that came meanwhile that of their server. A row that was left out
// until now comes in if its Secret is still there.
func (l Layout) Move(moves map[string]int) {
	for _, s := range l.Seen.Secrets {
		_, known := l.Plan.Clusters[s.Name]
		if to, due := moves[s.Name]; due && !known {
			l.Plan.Clusters[s.Name] = plan.Row{Replica: to, Server: basis.ServerHash(s)}
		}
	}
	for name, replica := range moves {
		if row, known := l.Plan.Clusters[name]; known {
			row.Replica = replica
			l.Plan.Clusters[name] = row
		}
	}
	if len(l.Seen.Secrets) > 0 { // else the rollout only begins, with rows that are settled
		l.Reassign(l.Plan.Rollout.Replicas, moves)
	}
}

// Reassign gives rows that go back theirs, and those at or above a number of replicas one below it; what has the server
// of such a row goes with it.
func (l Layout) Reassign(replicas int, back map[string]int) {
	due := map[string]bool{}
	server := func(name string) string { return cmp.Or(l.Together(name), name) }
	to := l.settle(replicas, func(name string) (int, placement.Claim) {
		row := l.Plan.Clusters[name]
		was, returns := back[name]
		due[server(name)] = due[server(name)] || returns || row.Replica >= replicas
		switch {
		case returns:
			return was, placement.Decided
		case row.Pinned || l.PinnedTo(name, row.Replica):
			return row.Replica, placement.Pinned
		}
		return row.Replica, placement.Stands
	})
	for name := range l.Plan.Clusters {
		if due[server(name)] && l.Plan.Clusters[name].Replica != to[name] {
			l.SetRow(name, to[name])
		}
	}
}

// SettleBelow gives clusters that appeared on a replica that is to go, since the decision, one that stays.
func (l Layout) SettleBelow(limit int) {
	for _, s := range l.Seen.Secrets {
		if _, known := l.Plan.Clusters[s.Name]; !known && s.Managed() && s.Valid && s.Shard >= limit {
			l.Plan.Clusters[s.Name] = plan.Row{Replica: s.Shard, Server: basis.ServerHash(s)}
		}
	}
	l.Reassign(limit, nil)
}

// SetRow gives a cluster a replica; whether that is a person's pin goes with it.
func (l Layout) SetRow(name string, replica int) {
	row := l.Plan.Clusters[name]
	pin, pinned := l.View.Pin(name)
	row.Replica, row.Pinned = replica, pinned && pin == replica
	l.Plan.Clusters[name] = row
}

// Occupied reports whether a row is at or above a number of replicas, or a Secret that ballast may not write. A pin
// there never holds before the rollout has ended, nor does it afterwards if they go.
func (l Layout) Occupied(replicas int) bool {
	for _, row := range l.Plan.Clusters {
		if row.Replica >= replicas {
			return true
		}
	}
	return slices.ContainsFunc(l.Seen.Secrets, func(s observed.Secret) bool {
		return !s.Managed() && s.Valid && s.Shard >= replicas && s.Shard < l.Plan.Replicas
	})
}
