package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// fromMemory has a failover go by the loads that were believed last. What is not seen may be there all the same: its
// load counts for the replica that its row has, or half a list would show room where there is none.
func fromMemory(g *ground.Ground, r *failover.Request) {
	last := loads.Last(g)
	if g.In.Config.Partition.Capacity == nil {
		r.Capacity = g.In.Memory.Heaviest.Capacity(slices.Collect(maps.Values(last)))
	}
	for name := range g.Next.Clusters {
		r.Loads[name] = last[name]
	}
	for i, cl := range g.Fleet.Clusters {
		_, planned := g.Next.Clusters[cl.Shard.ID]
		if at := g.Owners[i]; !planned && at != plan.NoReplica && at < len(r.Beside) {
			r.Beside[at] += last[cl.Shard.ID]
		}
	}
}

// evacuation is where the clusters of replicas go that are unwell, or that a person wants empty.
func evacuation(s *snapshot.Snapshot) *Proposed {
	var unwell []int
	if s.May(gate.FailOver) {
		unwell = slices.DeleteFunc(s.Replicas.Unwell(), s.Changes.Stay().Killed)
	}
	if len(unwell) == 0 && (len(s.Cordoned) == 0 || !s.May(gate.Drain)) {
		return nil
	}
	e := failover.Evacuate(Request(s, unwell), s.In.Now)
	p := &Proposed{Last: &e.Last, Cause: change.Failover}
	for _, n := range e.Notes {
		p.Told = append(p.Told, problem.Problem{Phase: problem.PhaseRollout,
			Subject: cmp.Or(n.Cluster, fmt.Sprintf("replica %d", n.Replica)), Kind: string(n.Kind), Message: n.Message})
	}
	if e.FailedOver == 0 {
		p.Cause = change.Drain
	}
	if len(e.Moves) == 0 || p.Cause == change.Drain && !s.May(gate.Drain) {
		return p
	}
	asked := ""
	if p.Cause == change.Drain {
		asked = " as asked"
	}
	p.Why = "empties " + division.ReplicaList(append(slices.Clone(unwell), s.Cordoned...)) + asked + ": moves " +
		plural.Of(ledger.ServersOf(s.Beside, maps.Keys(e.Moves), s.Next), "cluster")
	p.Want = s.WantParted(s.Next.Replicas, e.Moves, pinnedBack(s, unwell))
	p.Want.ControllerReplicas = s.Next.ControllerReplicas
	return p
}

// pinnedBack are the clusters on unwell replicas whose group a pin keeps there: they leave without it.
func pinnedBack(s *snapshot.Snapshot, unwell []int) map[string]bool {
	parted := map[string]bool{}
	for _, g := range s.Groups {
		held, all := map[int]bool{}, secretsOf(s, g)
		for _, i := range all {
			if pin, pinned := s.Pins[s.Fleet.Clusters[i].Shard.ID]; pinned && pin == s.Standing(i) {
				held[pin] = slices.Contains(unwell, pin)
			}
		}
		for _, i := range all {
			if !g.Apart && held[s.Standing(i)] {
				parted[s.Fleet.Clusters[i].Shard.ID] = true
			}
		}
	}
	return parted
}

// secretsOf are a group's clusters with whatever follows one of them: a server is bound by any Secret that is.
func secretsOf(s *snapshot.Snapshot, g ground.Group) (all []int) {
	members := map[string]bool{}
	for _, i := range g.Members {
		members[s.Fleet.Clusters[i].Shard.Server] = true
	}
	for i, c := range s.Fleet.Clusters {
		if members[c.Shard.Server] && !c.Alone {
			all = append(all, i)
		}
	}
	return all
}

// Seen is what a rollout sees that is under way. What leaves a dead replica without its group goes without it in the
// waves, too: they would leave it with the one that is pinned there, and the failover would end and begin without an end;
// so would the drain of a replica that died.
func Seen(s *snapshot.Snapshot) observed.State {
	seen := s.Seen()
	if s.Changes.Cause != change.Failover && s.Changes.Cause != change.Drain {
		return seen
	}
	parted := pinnedBack(s, s.Replicas.Unwell())
	for i := range seen.Secrets {
		if parted[seen.Secrets[i].Name] {
			seen.Secrets[i].Bound = ""
		}
	}
	return seen
}

// works reports whether a replica has its clusters, or had them until a moment ago and may have them again.
func works(s *snapshot.Snapshot, replica int) bool {
	return standing.Works(s.In.Observed.Pods, replica) ||
		s.Changes.Replicas.Recovers(replica, time.Duration(s.In.Config.Failover.After), s.In.Now)
}

// Request is what failover is asked, with these replicas unwell.
func Request(s *snapshot.Snapshot, unwell []int) failover.Request {
	again := map[string]bool{}
	for name, at := range s.Changes.Suspect {
		again[name] = s.In.Now.Sub(at) < ledger.FailedOnce
	}
	working := map[int]bool{}
	for _, replica := range unwell {
		working[replica] = works(s, replica)
	}
	held := map[string]bool{}
	for name, row := range s.Next.Clusters {
		held[name] = s.HeldByTrip(name, row.Replica)
	}
	r := failover.Request{Held: held, View: plan.NewView(s.Next.Clone(), s.Pins), Suspects: again, Unwell: unwell,
		Recovered: working, CannotReceive: s.CannotReceive(),
		MaxClusters: s.MostClusters(), BudgetDrain: snapshot.BudgetOf(s, change.Drain).Left,
		BudgetRescue: snapshot.RescueOf(s), BudgetSuspect: snapshot.BudgetOf(s, change.Failover).Left,
		Last: s.Changes.Failover, Dead: s.Changes.Replicas.Dead(),
		Servers: gathered(s, unwell, working, held), Apart: map[string][]string{},
		ApartBesidePlan: make([][]string, s.Next.Replicas), Fixed: map[string]bool{}, Gone: map[string]bool{},
		Loads: map[string]plan.Load{}, Beside: make([]plan.Load, s.Next.Replicas)}
	if s.May(gate.Drain) {
		r.Cordoned = s.Cordoned
	} else {
		r.CannotReceive = append(r.CannotReceive, s.Cordoned...)
	}
	if len(unwell) > 0 { // those that were killed are full, also where they work again
		r.Killed = s.Changes.Stay().Replicas
	}
	// as the partition has it
	r.Capacity = cmp.Or(bounds.Capacity(s.Ground), s.Capacity)
	r.Memory, r.Bytes, r.BytesBeside = s.InUse.Most(), s.ByName, make([]plan.Bytes, s.Next.Replicas)
	optedOut := map[string]bool{} // what stays together with a Secret that nobody may move stays with it
	of := func(cl discover.Cluster) string { return r.Servers.Of(cl.Shard.ID, "") }
	for _, cl := range s.Fleet.Clusters {
		if together := of(cl); cl.Unmanaged && together != "" {
			optedOut[together] = true
		}
	}
	for name := range s.Next.Clusters {
		r.Gone[name] = !standing.Has(s.Fleet, name)
	}
	for i, cl := range s.Fleet.Clusters {
		name := cl.Shard.ID
		if s.Loads != nil {
			r.Loads[name] = s.Loads[i]
		}
		if cl.Immutable || cl.Unmanaged || optedOut[of(cl)] {
			r.Fixed[name] = true
		}
		if len(cl.Apart) > 0 {
			r.Apart[name] = cl.Apart
		}
		if _, row := s.Next.Clusters[name]; row || s.Owners[i] < 0 || s.Owners[i] >= len(r.Beside) {
			continue
		}
		r.ApartBesidePlan[s.Owners[i]] = placement.Joined(r.ApartBesidePlan[s.Owners[i]], cl.Apart)
		r.BytesBeside[s.Owners[i]] = r.BytesBeside[s.Owners[i]].Plus(s.InUse.Takes(i))
		if s.Loads != nil {
			r.Beside[s.Owners[i]] += s.Loads[i]
		}
	}
	if s.Partial {
		fromMemory(s.Ground, &r)
	}
	return r
}

// gathered is what leaves a replica together: the clusters of one server, and those of a group wherever they are, so
// that they join the others. A group with a cluster that cannot leave a replica for which nobody works lets the others
// go: no cluster is without an owner for a group's sake.
func gathered(s *snapshot.Snapshot, unwell []int, works map[int]bool, held map[string]bool) *placement.Servers {
	if len(s.Groups) == 0 {
		return s.Beside
	}
	holds := map[string]bool{} // groups, by name
	for _, g := range s.Groups {
		for _, i := range secretsOf(s, g) {
			at := s.Fixed().To(i).At
			holds[g.Name] = holds[g.Name] || slices.Contains(unwell, at) && !works[at]
		}
	}
	free := slices.DeleteFunc(slices.Clone(s.Groups), func(g ground.Group) bool { return holds[g.Name] })
	joined := s.Units().Links(free, func(i int) int {
		if held[s.Fleet.Clusters[i].Shard.ID] { // the others go without what a trip holds
			return plan.NoReplica
		}
		return ground.Whole(i)
	})
	clusters := slices.Clone(s.Fleet.Clusters)
	for i := range clusters {
		clusters[i].Bound = joined.Leads(clusters[i])
	}
	return standing.Servers(discover.Fleet{Clusters: clusters})
}
