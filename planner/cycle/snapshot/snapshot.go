// Package snapshot is what gates and proposals look at: the plan in force brought up to date, and what this cycle found
// out before it decides.
package snapshot

import (
	"ballast/planner/change"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/failover/health"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// Snapshot is what gates and proposals look at: the plan in force brought up to date, and what this cycle found out
// before it decides. They change nothing of it: decide fills it in, in order, and the Next of what begins is its last
// change.
type Snapshot struct {
	*ground.Ground
	Loads     []plan.Load // of fleet.Clusters; nil while the metrics say nothing
	Objects   []float64   // that their replicas keep; nil where no default metric says it
	Verdict   ownership.Verdict
	Replicas  health.Verdict
	Cordoned  []int
	Own       map[int]bool // replicas whose pods show that they are theirs, where pods that start would be one; see standing.OwnShards
	Budget    change.Budget
	Changes   memory.Changes
	known     discover.Known
	Done      bool   // what a person asked for holds, or was refused
	TurnsBack string // why a rollout that has stopped every replica brings them back as they were

	Ungrown map[int]string // replicas that may not grow now as they would have to, and why

	Looked    gate.Situation // what the gates looked at
	Verdicts  gate.Verdicts  // of the gates
	Now       []plan.Replica
	Candidate *outcome.Candidate
	Line      *outcome.Line       // what a replica may carry, or is known to; nil: nothing says it
	Elected   *evaluate.Candidate // also while nothing may begin
	Worth     Worth               // of the elected, where it was weighed

	Paced      change.Block // what levels and waits for a rate, and how many moves that is
	PacedMoves int
}

// Of is what is known of an outcome so far.
func Of(out outcome.Outcome, g *ground.Ground) *Snapshot {
	var own map[int]bool
	if g.In.Workload.Renumbered(g.Next.Widest()) != "" {
		own = standing.OwnShards(g.In, g.Fleet)
	}
	return &Snapshot{Ground: g, Loads: out.Loads, Objects: loads.Objects(g.In.Config, out.Table),
		Verdict: out.Verdict, Replicas: out.Replicas, Cordoned: out.Cordoned, Own: own, Budget: out.Budget,
		Changes: out.Memory.Changes, known: out.Memory.Known, Done: out.Done, Now: out.Now, Candidate: out.Candidate}
}

// May reports whether an action may begin.
func (s *Snapshot) May(act gate.Action) bool { return s.Verdicts[act] == "" }

// MayAny reports whether one of those actions may begin.
func (s *Snapshot) MayAny(actions gate.Action) bool {
	for act := gate.SetEnv; act != 0; act <<= 1 {
		if actions&act != 0 && s.May(act) {
			return true
		}
	}
	return false
}

// Seen is what stands, with what the pods say of themselves.
func (s *Snapshot) Seen() observed.State {
	seen := standing.Seen(s.Next.Clusters, s.Fleet, s.known, s.In.Workload)
	seen.Pods, seen.OwnersKnown, seen.Owned = s.Changes.Replicas.Dated(s.In.Observed.Pods, s.In.Now),
		s.In.Observed.Reported.Asked, s.Verdict.Owned
	let := safety.Excused(s.Fleet, s.Verdict, s.known, s.In.Now)
	seen.Orphans = safety.WaveOrphans(s.Fleet, s.Verdict, let)
	if len(let) > 0 {
		for i, stamp := range seen.Secrets {
			seen.Secrets[i].Ownerless = let[stamp.Name]
		}
	}
	for _, d := range s.Verdict.Doubled {
		seen.Doubled = append(seen.Doubled, d.Cluster)
	}
	seen.InCluster, seen.Accepted = inCluster(s.Fleet, s.In), s.In.Discovered.AcceptDiscovery
	return seen
}

// Knows reports whether a cluster was there for an hour.
func (s *Snapshot) Knows(name string) bool { return s.known.Has(name) }

func inCluster(fleet discover.Fleet, in input.Inputs) observed.InCluster {
	for _, cl := range fleet.Clusters {
		if cl.Implicit {
			return observed.InCluster{Implicit: true, Algorithm: string(standing.Algorithm(in))}
		}
	}
	return observed.InCluster{}
}

// Worth is why what was elected pays, in words, what it costs, and what it would have saved, in load times seconds.
// What a rule or a person asks for pays whatever it restarts.
type Worth struct {
	Said   string
	Spends map[int]evaluate.Offer
	Saved  float64
	Asked  bool
}

// Of is what those moves alone cost: a replica that none of them relieves or fills goes on saving.
func (w Worth) Of(moves []outcome.Move) Worth {
	spends := make(map[int]evaluate.Offer, len(w.Spends))
	for _, m := range moves {
		for _, replica := range []int{m.From, m.To} {
			if o, offered := w.Spends[replica]; offered {
				spends[replica] = o
			}
		}
	}
	w.Spends = spends
	return w
}
