package cycle

import (
	"iter"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
)

// works reports whether a pod works for a replica now.
func works(pods []observed.Pod, replica int) bool {
	return slices.ContainsFunc(pods, func(p observed.Pod) bool { return p.Replica == replica && p.Ready && p.Claimed })
}

// bereft are the orphans that a wave may have made: what the plan does not have and what ballast cannot write is
// people's, what Argo CD cannot read has no owner anywhere, what nobody had nobody took away, and others are excused.
func bereft(fleet discover.Fleet, v ownership.Verdict, excused map[string]bool) []string {
	if len(v.Orphans) == 0 {
		return nil
	}
	peoples := map[string]bool{}
	for _, cl := range fleet.Clusters {
		peoples[cl.Shard.ID] = cl.Immutable || cl.Unread || excused[cl.Shard.ID]
	}
	var names []string
	for _, o := range v.Orphans {
		planned, had := o.Intended != ownership.NoReplica, o.Last != ownership.NoReplica
		if planned && had && !peoples[o.Cluster] {
			names = append(names, o.Cluster)
		}
	}
	return names
}

const (
	// orphanLasts is how long a cluster has had no owner once nothing else waits for it: a wave that made it would have
	// been taken back, or have tripped the breaker, by then.
	orphanLasts = time.Hour
	// mostExcused is the share of the known clusters, in percent, beyond which orphans are no single clusters' matter.
	mostExcused = 10
)

// excused are the orphans that keep nothing waiting, by name: those that have been ones for long, and those that Argo
// CD may take for a second Secret of their server, which it cannot read. Whoever breaks a cluster of his own, or
// another's, must not keep everybody's where they are; nor must he who breaks many have nobody look at what becomes of
// them.
func excused(fleet discover.Fleet, v ownership.Verdict, known discover.Known, now time.Time) map[string]bool {
	if len(v.Orphans) == 0 {
		return nil
	}
	misled := map[string]bool{}
	for _, cl := range fleet.Clusters {
		if cl.Misled {
			misled[cl.Shard.ID] = true
		}
	}
	excused := map[string]bool{}
	for _, o := range v.Orphans {
		if misled[o.Cluster] || now.Sub(o.Since) >= orphanLasts {
			excused[o.Cluster] = true
		}
	}
	if len(excused) > max(1, len(known.Clusters)*mostExcused/100) {
		return nil
	}
	return excused
}

// stops reports whether ballast may decide nothing by itself.
func stops(in input.Inputs, c memory.Changes) bool { return in.Paused || tripped(in, c) }

func tripped(in input.Inputs, c memory.Changes) bool { return in.Tripped != "" || c.Trip != nil }

// stopsFor reports whether ballast may not even move what nobody has. A trip stops that where it is for memory, which
// the next replica would run out of too, or where nobody knows why; whoever breaks a cluster of his own after a wave
// must not keep all others' on replicas that are dead.
func stopsFor(cause change.Cause, in input.Inputs, c memory.Changes) bool {
	known := c.Trip != nil && c.Trip.Reason != change.OOMKilled
	if cause == change.Failover && known {
		return in.Paused
	}
	return stops(in, c)
}

// keepUnseen keeps what was remembered of the owners of clusters that are not seen: whoever comes back is as before.
func keepUnseen(g *ground.Ground, now, before ownership.Memory) {
	for name := range g.Next.Clusters {
		if standing.Has(g.Fleet, name) {
			continue
		}
		if last, known := before.Last[name]; known {
			now.Last[name] = last
		}
		if since, known := before.Lost[name]; known {
			now.Lost[name] = since
		}
	}
}

func clustersOf(moves []outcome.Move) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range moves {
			if !yield(m.Cluster) {
				return
			}
		}
	}
}
