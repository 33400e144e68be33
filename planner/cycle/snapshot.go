package cycle

import (
	"slices"

	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/sizing"
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
// before it decides. They change nothing of it: decide fills it in, in order, and the Next of what begins is its last change.
type snapshot struct {
	*ground.Ground
	loads     []plan.Load // of fleet.Clusters; nil while the metrics say nothing
	objects   []float64   // that their replicas keep; nil where no default metric says it
	verdict   ownership.Verdict
	replicas  failover.Verdict
	cordoned  []int
	budget    change.Budget
	changes   memory.Changes
	known     discover.Known
	done      bool   // what a person asked for holds, or was refused
	turnsBack string // why a rollout that has stopped every replica brings them back as they were
	unsaid    string // why nobody could tell whether a live rollout does well

	ungrown map[int]string // replicas that may not grow now as they would have to, and why

	verdicts  gate.Verdicts // of the gates
	now       []plan.Replica
	candidate *outcome.Candidate
	line      *outcome.Line       // what a replica may carry, or is known to; nil: nothing says it
	elected   *evaluate.Candidate // also while nothing may begin
	worth     worth               // of the elected, where it was weighed

	paced      change.Block // what levels and waits for a rate, and how many moves that is
	pacedMoves int
}

// snapshotOf is what is known of an outcome so far.
func snapshotOf(out outcome.Outcome, g *ground.Ground) *snapshot {
	return &snapshot{Ground: g, loads: out.Loads, objects: loads.Objects(g.In.Config, out.Table),
		verdict: out.Verdict, replicas: out.Replicas, cordoned: out.Cordoned, budget: out.Budget,
		changes: out.Memory.Changes, known: out.Memory.Known, done: out.Done, now: out.Now, candidate: out.Candidate}
}

// may reports whether an action may begin.
func (s *snapshot) may(act gate.Action) bool { return s.verdicts[act] == "" }

// mayAny reports whether one of those actions may begin.
func (s *snapshot) mayAny(actions gate.Action) bool {
	for act := gate.SetEnv; act != 0; act <<= 1 {
		if actions&act != 0 && s.may(act) {
			return true
		}
	}
	return false
}

// seen is what stands, with what the pods say of themselves.
func (s *snapshot) seen() observed.State {
	seen := standing.Seen(s.Next.Clusters, s.Fleet, s.known, s.In.Workload)
	seen.Pods, seen.OwnersKnown, seen.Owned = s.changes.Replicas.Dated(s.In.Observed.Pods, s.In.Now), s.In.Observed.Reported.Asked, s.verdict.Owned
	let := safety.Excused(s.Fleet, s.verdict, s.known, s.In.Now)
	seen.Orphans = safety.Bereft(s.Fleet, s.verdict, let)
	if len(let) > 0 {
		for i, stamp := range seen.Secrets {
			seen.Secrets[i].Ownerless = let[stamp.Name]
		}
	}
	for _, d := range s.verdict.Doubled {
		seen.Doubled = append(seen.Doubled, d.Cluster)
	}
	seen.InCluster, seen.Accepted = inCluster(s.Fleet, s.In), s.In.Discovered.AcceptDiscovery
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
	for _, p := range s.In.Observed.Pods {
		if s.unsaid != "" && !p.Answered {
			shut = append(shut, p.Replica)
		}
	}
	return shut
}

// bins are replicas that carry nothing yet. Those that are unwell, cordoned, not ready or silent are closed.
func (s *snapshot) bins(replicas int) []placement.Bin {
	bins, closed := make([]placement.Bin, replicas), append(s.shut(), s.cordoned...)
	full := sizing.Cramped(s.In)
	for replica := range bins {
		bins[replica].Open, bins[replica].Cramped = !slices.Contains(closed, replica), full[replica]
	}
	return bins
}
