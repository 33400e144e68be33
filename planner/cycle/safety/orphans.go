package safety

import (
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// WaveOrphans are the orphans that a wave may have made: what the plan does not have and what ballast cannot write is
// people's, what Argo CD cannot read has no owner anywhere, what nobody had nobody took away, and others are excused.
func WaveOrphans(fleet discover.Fleet, v ownership.Verdict, excused map[string]bool) []string {
	if len(v.Orphans) == 0 {
		return nil
	}
	peoples := map[string]bool{}
	for _, cl := range fleet.Clusters {
		peoples[cl.Shard.ID] = cl.Immutable || cl.Unread || excused[cl.Shard.ID]
	}
	var names []string
	for _, o := range v.Orphans {
		planned, had := o.Intended != plan.NoReplica, o.Last != plan.NoReplica
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

// Excused are the orphans that keep nothing waiting, by name: those that have been ones for long, and those that Argo
// CD may take for a second Secret of their server, which it cannot read, or which is gone. Whoever breaks a cluster of
// his own, or another's, must not keep everybody's where they are; nor must he who breaks many have nobody look at what
// becomes of them.
func Excused(fleet discover.Fleet, v ownership.Verdict, known discover.Known, now time.Time) map[string]bool {
	if len(v.Orphans) == 0 {
		return nil
	}
	misled := misled(fleet)
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

// misled are the clusters that Argo CD may take for another Secret of their server.
func misled(fleet discover.Fleet) map[string]bool {
	misled := map[string]bool{}
	for _, cl := range fleet.Clusters {
		if cl.Misled {
			misled[cl.Shard.ID] = true
		}
	}
	return misled
}

// Stops reports whether ballast may decide nothing by itself.
func Stops(in input.Inputs, c memory.Changes) bool { return in.Paused || Tripped(in, c) }

// Tripped reports whether ballast stopped itself, and nobody has cleared that.
func Tripped(in input.Inputs, c memory.Changes) bool { return in.Tripped != "" || c.Trip != nil }

// StopsFor reports whether ballast may not even move what nobody has. A trip stops that where nobody knows why, or
// where it is for memory and does not say which failovers could hand that on; whoever breaks a cluster of his own after
// a wave must not keep all others' on replicas that are dead.
func StopsFor(cause change.Cause, in input.Inputs, c memory.Changes) bool {
	known := c.Trip != nil && (c.Trip.Reason != harm.OOMKilled || c.Trip.Bounds(c.TripMoved))
	if cause == change.Failover && known {
		return in.Paused
	}
	return Stops(in, c)
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
