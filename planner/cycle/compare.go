package cycle

import (
	"maps"
	"slices"
	"strings"

	"ballast/planner/change"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// Comparison is what stands against the plan in force.
type Comparison struct {
	Replicas []plan.Replica // what each replica carries under the plan, by the rows' loads
	Pins     plan.Pins      // data.pins and the Secrets' annotations together
	Agenda   diff.Result
	Problems []Problem
}

// Compare says what differs between what stands and the plan in force, without asking Prometheus. Of in it takes the
// Secrets, the workload, the plan, the pins, break-glass, and of the memory what ReadSaved read.
func Compare(in Inputs) Comparison {
	fleet := StandingFleet(in)
	c := Comparison{Pins: AllPins(in.Pins, fleet.Clusters)}
	for _, p := range fleet.Problems {
		c.Problems = append(c.Problems, Problem{Phase: PhaseDiscover, Subject: p.Secret, Kind: string(p.Kind), Message: p.Message}.Printable())
	}
	if in.InForce == nil {
		return c
	}
	view := plan.NewView(*in.InForce, c.Pins)
	seen := Seen(in.InForce.Clusters, fleet, in.Memory.Known, in.Workload)
	seen.Accepted = in.Discovered.AcceptDiscovery
	c.Agenda = diff.Steps(view, seen, diff.Options{BreakGlass: in.BreakGlass, Now: in.Now})
	loads, owners, replicas := make([]plan.Load, len(fleet.Clusters)), make([]int, len(fleet.Clusters)), in.InForce.Replicas
	for i, cl := range fleet.Clusters {
		// A row's load is for display; one that cannot be read counts as nothing.
		loads[i] = plan.LoadOf(in.InForce.Clusters[cl.Shard.ID].Load)
		owners[i] = discover.Nobody
		if replica, _, ok := view.Effective(cl.Shard.ID); ok {
			owners[i] = replica
			replicas = max(replicas, replica+1) // x0y holds the workload at 0, and its rows stay
		}
	}
	c.Replicas = replicasOf(loadIndexes(fleet, loads), replicas, func(i int) int { return owners[i] })
	return c
}

// StandingFleet is the fleet as it stands, however much of it went; nothing is missed in it. Which Secret leads its
// server's others goes by what the leader remembers, as far as the inputs have that.
func StandingFleet(in Inputs) discover.Fleet {
	m := in.Memory
	o := discover.Options{MaxShrink: 1, Before: m.Servers, Made: m.Made, Had: in.had}
	fleet, _, _ := discover.Discover(in.Discovered, discover.Known{Leaders: m.Known.Leaders}, o, in.Now)
	return fleet
}

// Course is how far changes are, as far as it shows outside the leader.
type Course struct {
	Progress rollout.Progress // what the rollout under way would do now; its Why without a prefix
	Hidden   bool             // all that shows is done: it waits for what the pods tell the leader
	Moves    []Move           // of the rollout, in mode live of its present wave; From is discover.Nobody where nobody knows any more
	After    int              // clusters that move after the present wave, as far as the leader saved that
	Budget   change.Budget
	Replicas failover.Verdict // as the leader had it when it looked last
	Waits    []Problem        // at rest: what keeps changes from beginning, as far as it shows outside the leader
}

// Follow judges it. Of in it takes what Compare takes, people's annotations, the configuration, the pods if they were
// listed, and the memory that ReadSaved read.
func Follow(in Inputs) Course {
	fleet := StandingFleet(in)
	v := Course{Budget: savedBudget(in, fleet), Replicas: savedVerdict(in)}
	if in.InForce == nil || in.InForce.Rollout == nil {
		v.Waits = waitsOf(in, fleet)
		return v
	}
	view := plan.NewView(*in.InForce, AllPins(in.Pins, fleet.Clusters))
	v.Moves = movesUnderWay(view)
	moving := map[string]bool{}
	for _, m := range v.Moves {
		moving[m.Cluster] = true
	}
	for name, to := range in.Memory.Changes.Target {
		if at, _, known := view.Effective(name); known && at != to && !moving[name] && in.InForce.Rollout.Mode == plan.ModeLive {
			v.After++
		}
	}
	v.Progress, v.Hidden = progressOf(in, fleet, view, v.Budget)
	return v
}

// waitsOf asks the gates. What the pods say, only the leader knows.
func waitsOf(in Inputs, fleet discover.Fleet) (told []Problem) {
	if in.InForce == nil {
		return nil
	}
	now := snapshotOf(Outcome{Memory: in.Memory}, &adoption{in: in, fleet: fleet, next: *in.InForce}).situation()
	now.unsaid, now.fault = "", ""
	judge(gates(), now, func(p Problem) { told = append(told, p.Printable()) })
	return told
}

// progressOf asks the rollout itself what it waits for. Which replica owns what only the pods tell, and they tell the
// leader alone; so they are taken to say that all is as it should be. What is waited for then is what shows, and where
// nothing is, hidden says that it may be for the pods.
func progressOf(in Inputs, fleet discover.Fleet, view *plan.View, budget change.Budget) (p rollout.Progress, hidden bool) {
	if in.BreakGlass && !view.Plan.StopsAll() {
		return rollout.Progress{Outcome: rollout.Waiting, Stage: view.Plan.Rollout.Stage, Why: "enforcement is off, so the rollout stays where it is"}, false
	}
	out := Outcome{Memory: in.Memory, Budget: budget, Replicas: savedVerdict(in)}
	if cordons, err := plan.ParseCordons(in.Cordon); err == nil {
		out.Cordoned = plan.Cordoned(cordons, in.Now)
	}
	s := snapshotOf(out, &adoption{in: in, fleet: fleet, next: *in.InForce})
	if in.BreakGlass {
		s.turnsBack = glassOpened
	}
	seen := s.seen()
	seen.OwnersKnown, seen.Owned = true, map[string]observed.Owned{}
	for _, stamp := range seen.Secrets {
		if replica, _, known := view.Effective(stamp.Name); known {
			seen.Owned[stamp.Name] = observed.Owned{Owners: []int{replica}, Live: []int{replica}}
		}
	}
	if !in.Observed.Known {
		seen.Pods = nil
		for replica := range max(in.InForce.Replicas, in.InForce.Rollout.Replicas, in.Workload.Replicas) {
			seen.Pods = append(seen.Pods, observed.Pod{Replica: replica, Ready: true, Claimed: true})
		}
	}
	_, p = rollout.Advance(view, seen, in.Memory.Changes.Target, s.rolloutOptions(s.changes.Cause), in.Now)
	p.Why = strings.TrimPrefix(p.Why, "waiting: ")
	goesOn := p.Outcome == rollout.Advanced || p.Outcome == rollout.Finished || p.Outcome == rollout.Reverted
	return p, goesOn && asksPods(*view.Plan.Rollout)
}

// asksPods reports whether the stage waits for what the pods say of their clusters.
func asksPods(r plan.Rollout) bool {
	switch r.Stage {
	case plan.Moving, plan.Reverting:
		return len(r.Moves) > 0
	case plan.Verifying:
		return true
	}
	return false
}

// movesUnderWay are the moves of the rollout under way, by cluster. While rows are the old ones they say where clusters
// come from, and afterwards Was does; the way back of x0y says only where they go.
func movesUnderWay(v *plan.View) []Move {
	r := v.Plan.Rollout
	names := map[string]bool{}
	for name := range r.Moves {
		names[name] = true
	}
	for name := range r.Was {
		names[name] = true
	}
	var moves []Move
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row, known := v.Plan.Clusters[name]
		m := Move{Cluster: name, From: discover.Nobody, To: row.Replica}
		was, left := r.Was[name]
		to, goes := r.Moves[name]
		switch {
		case goes && left:
			m.From, m.To = was, to
		case goes && known && row.Replica != to:
			m.From, m.To = row.Replica, to
		case goes:
			m.To = to
		case r.Stage == plan.Reverting:
			m.From, m.To = row.Replica, was
		default:
			m.From = was
		}
		if m.From != m.To && (known || goes) {
			moves = append(moves, m)
		}
	}
	return moves
}
