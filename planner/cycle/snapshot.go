package cycle

import (
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// snapshot is what gates and proposals look at: the plan in force brought up to date, and what this cycle found out
// before it decides. Nothing changes it.
type snapshot struct {
	*adoption
	loads     []plan.Load // of fleet.Clusters; nil while the metrics say nothing
	verdict   ownership.Verdict
	replicas  failover.Verdict
	cordoned  []int
	budget    change.Budget
	changes   memory.Changes
	known     discover.Known
	done      bool   // what a person asked for holds, or was refused
	turnsBack string // why a rollout that has stopped every replica brings them back as they were
	unsaid    string // why nobody could tell whether a live rollout does well

	verdicts  verdicts // of the gates
	now       []plan.Replica
	candidate *Candidate
	elected   *evaluate.Candidate
	worth     worth // of the elected, where it was weighed
}

// snapshotOf is what is known of an outcome so far.
func snapshotOf(out Outcome, a *adoption) *snapshot {
	return &snapshot{adoption: a, loads: out.Loads, verdict: out.Verdict, replicas: out.Replicas, cordoned: out.Cordoned, budget: out.Budget,
		changes: out.Memory.Changes, known: out.Memory.Known, done: out.Done, now: out.Now, candidate: out.Candidate}
}

// may reports whether an action may begin.
func (s *snapshot) may(act action) bool { return s.verdicts[act] == "" }

// mayAny reports whether one of those actions may begin.
func (s *snapshot) mayAny(actions action) bool {
	for act := setEnv; act != 0; act <<= 1 {
		if actions&act != 0 && s.may(act) {
			return true
		}
	}
	return false
}

// seen is what stands, with what the pods say of themselves.
func (s *snapshot) seen() observed.State {
	seen := standing.Seen(s.next.Clusters, s.fleet, s.known, s.in.Workload)
	seen.Pods, seen.OwnersKnown, seen.Owned = s.in.Observed.Pods, s.in.Observed.Reported.Asked, s.verdict.Owned
	let := excused(s.fleet, s.verdict, s.known, s.in.Now)
	seen.Orphans = bereft(s.fleet, s.verdict, let)
	if len(let) > 0 {
		for i, stamp := range seen.Secrets {
			seen.Secrets[i].Ownerless = let[stamp.Name]
		}
	}
	for _, d := range s.verdict.Doubled {
		seen.Doubled = append(seen.Doubled, d.Cluster)
	}
	seen.InCluster, seen.Accepted = inCluster(s.fleet, s.in), s.in.Discovered.AcceptDiscovery
	return seen
}

// closed are the replicas that may receive nothing: those that are unwell, whatever holds failover back, and the
// cordoned.
func (s *snapshot) closed() map[int]bool {
	closed := s.unwell()
	for _, replica := range s.cordoned {
		closed[replica] = true
	}
	return closed
}

func (s *snapshot) unwell() map[int]bool {
	unwell := map[int]bool{}
	for _, s := range s.replicas.Sick {
		unwell[s.Replica] = true
	}
	return unwell
}

// shut are the replicas that do not work now, unwell or not yet, whatever holds failover back, and those that do not
// say what they own, in mode live, which would not know whether they took a cluster.
func (s *snapshot) shut() []int {
	shut := slices.Clone(s.replicas.Down)
	for _, s := range s.replicas.Sick {
		shut = append(shut, s.Replica)
	}
	for _, p := range s.in.Observed.Pods {
		if s.unsaid != "" && !p.Answered {
			shut = append(shut, p.Replica)
		}
	}
	return shut
}

// bins are replicas that carry nothing yet. Those that are unwell, cordoned, not ready or silent are closed.
func (s *snapshot) bins(replicas int) []placement.Bin {
	bins, closed := make([]placement.Bin, replicas), append(s.shut(), s.cordoned...)
	for replica := range bins {
		bins[replica].Open = !slices.Contains(closed, replica)
	}
	return bins
}

// works reports whether a pod works for a replica now.
func works(pods []observed.Pod, replica int) bool {
	return slices.ContainsFunc(pods, func(p observed.Pod) bool { return p.Replica == replica && p.Ready && p.Claimed })
}

// bereft are the orphans that a wave may have made: what the plan does not have and what ballast cannot write is
// people's, what Argo CD cannot read has no owner anywhere, what nobody had nobody took away, and others are excused.
func bereft(fleet discover.Fleet, v ownership.Verdict, excused map[string]bool) []string {
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
