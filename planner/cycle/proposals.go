package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// proposed is what a proposal answers: a change that the cycle may begin, where it goes, why and for whose sake;
// without one, what people are to be told all the same.
type proposed struct {
	want    *rollout.Proposal // nil: nothing is to begin
	why     string
	cause   change.Cause
	told    []problem.Problem
	verdict string // of the candidate
	done    bool   // what a person asked for holds, or is refused
	holds   bool   // it holds: what is elected is left alone for a while

	atOnce   bool           // clusters have several owners until then: no restart of before makes it wait
	asked    bool           // a person wrote the number of replicas: nor does one make it wait where it comes about
	bySecret bool           // a Secret's annotation asks for it
	follows  bool           // Argo CD has it so already
	worth    worth          // of moves that were weighed
	last     *failover.Last // what counts as the last failover: if this one begins, or at once where nothing is failed over
}

// proposal is one that a cycle considers: the actions of which a gate must leave one open, and the change, if there is
// any.
type proposal struct {
	asks gate.Action
	made func(*snapshot) *proposed
}

// proposals are in the order of their urgency: an env that gives clusters several owners, or none, is mended by its
// change alone; what must be at once comes before what a person asks for, that before what an unwell replica needs, and
// all of it before what was elected.
func proposals() []proposal {
	return []proposal{
		{gate.SetEnv, prepare},
		{gate.FollowUp | gate.FollowOut, peoplesReplicas},
		{gate.PinOut, pinsBeyond},
		{gate.RollBack, rollback},
		{gate.FailOver | gate.Drain, evacuation},
		{gate.Balance, followAstray},
		{gate.Balance, makeRoom},
		{gate.Balance, level},
	}
}

// level is what was elected.
func level(s *snapshot) *proposed {
	if s.elected == nil {
		return nil
	}
	if len(s.cordoned)+len(s.replicas.Sick) > 0 {
		return &proposed{verdict: "waits: a replica is unwell or cordoned, and nothing is levelled out meanwhile"}
	}
	if replica, down := down(s); down {
		return &proposed{verdict: fmt.Sprintf("waits: replica %d is not ready, and nothing is levelled out onto it", replica)}
	}
	fixed, replicas := s.In.Config.Partition.Replicas, s.elected.Replicas
	asked := fixed != nil && fixed.Fixed == replicas && replicas != s.Next.Replicas
	most := s.In.Config.Partition.MaxReplicas
	beyond := most != nil && s.Next.Replicas > *most && replicas < s.Next.Replicas
	insists := asked || beyond
	chosen, waits := withRoom(s, division.Chosen(s.Ground, *s.elected), insists)
	if insists { // what stays may be on a replica that is to go: it goes where there is room
		maps.DeleteFunc(chosen, func(_ string, at int) bool { return at >= replicas })
	}
	w := s.wantOf(replicas, chosen)
	if insists {
		for name, row := range w.Rows {
			chosen[name] = row.Replica
		}
	}
	moves := s.Moves(chosen)
	nothing := len(moves) == 0 && w.Replicas == s.Next.Replicas && w.ControllerReplicas == s.Next.ControllerReplicas
	switch {
	case waits != "" && (nothing || replicas < s.Next.Replicas && !insists):
		return &proposed{verdict: "waits: " + waits}
	case nothing:
		return nil
	}
	why := fmt.Sprintf("moves %d of %d clusters, %d replicas instead of %d",
		ledger.ServersOf(s.Beside, outcome.ClustersOf(moves), s.Next), ledger.ServersOf(s.Beside, maps.Keys(s.Next.Clusters), s.Next), w.Replicas, s.Next.Replicas)
	pays := s.worth
	if waits == "" {
		why += fmt.Sprintf(": makespan over mean %.2f instead of %.2f", outcome.Imbalance(s.candidate.Replicas), outcome.Imbalance(s.now))
		if room := s.line.Headroom(s.now, s.candidate.Replicas); room != "" {
			why += ", " + room
		}
	} else {
		why += "; other moves wait: " + waits
		pays = pays.of(moves)
	}
	if s.worth.said != "" {
		why += "; " + s.worth.said
	}
	why += bill(s, w, moves)
	if waits := restartPays(s, w); waits != "" {
		return &proposed{verdict: waits}
	}
	return &proposed{want: w, cause: change.Balance, asked: asked, why: why, worth: pays}
}

// down names a replica that nobody works for now, as far as pods are seen: a new leader does not know for how long it
// has been so, and would undo what the last one did about it.
func down(s *snapshot) (int, bool) {
	if !s.In.Observed.Known {
		return 0, false
	}
	for replica := range s.Next.Replicas {
		if !standing.Works(s.In.Observed.Pods, replica) {
			return replica, true
		}
	}
	return 0, false
}

// rollback is the earlier plan that a person asks for: its rows for the clusters that are still there, its replicas
// within today's bounds. Once it holds, the balance is left alone for as long as after a rollout that failed, or
// ballast would undo at once what the person asked for.
func rollback(s *snapshot) *proposed {
	r := s.In.Rollback
	if r == nil || s.done {
		return nil
	}
	if why := r.Refused(s.Next); why != "" {
		return &proposed{done: true, told: []problem.Problem{{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackRefused", Message: why}}}
	}
	replicas := r.Plan.Replicas
	if s.Next.FreeReplicas {
		replicas = s.Next.Replicas
	}
	back, closed := map[string]int{}, s.closed()
	var stay []string
	for _, cl := range s.Fleet.Clusters {
		name := cl.Shard.ID
		now, present := s.Next.Clusters[name]
		if !present {
			continue
		}
		if row, known := r.Plan.Clusters[name]; known && row.Replica < replicas {
			if now.Replica != row.Replica && closed[row.Replica] {
				stay = append(stay, name)
				continue
			}
			back[name] = row.Replica
		}
		if pin, pinned := s.Pins[name]; pinned && s.Holds(name, pin) {
			replicas = max(replicas, pin+1)
		}
	}
	var told []problem.Problem
	if len(stay) > 0 {
		told = append(told, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: the replica is unwell or cordoned", r.Revision, problem.ClipList(stay))})
	}
	if beside := keepApart(s, back, replicas); len(beside) > 0 {
		told = append(told, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: a group keeps them apart from what is there", r.Revision, problem.ClipList(beside))})
	}
	if full := keepWithin(s, back, replicas); len(full) > 0 {
		told = append(told, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: the replica has not the memory", r.Revision, problem.ClipList(full))})
	}
	w := s.wantOf(replicas, back)
	if len(rollout.Moves(s.Next, plan.Plan{Clusters: w.Rows})) == 0 && replicas == s.Next.Replicas {
		return &proposed{done: true, holds: true, told: told}
	}
	return &proposed{want: w, cause: change.Rollback, told: told, why: fmt.Sprintf("goes back to revision %d, as a person asked", r.Revision)}
}

// keepApart takes out of back what would share a replica with another one of its group, and names that.
func keepApart(s *snapshot, back map[string]int, replicas int) (stay []string) {
	for again := len(s.Groups) > 0; again; {
		again = false
		rows := s.wantOf(replicas, back).Rows
		for _, g := range s.Groups {
			for _, name := range crowded(s, g, rows) {
				if to, goes := back[name]; goes && to != s.Next.Clusters[name].Replica {
					delete(back, name)
					stay, again = append(stay, name), true
				}
			}
		}
	}
	slices.Sort(stay)
	return stay
}

// crowded are the clusters of a group that is kept apart which share a replica by those rows.
func crowded(s *snapshot, g ground.Group, rows map[string]plan.Row) (names []string) {
	if !g.Apart {
		return nil
	}
	on := map[int][]string{}
	for _, i := range g.Members {
		name, at := s.Fleet.Clusters[i].Shard.ID, s.Standing(i)
		if row, planned := rows[name]; planned {
			at = row.Replica
		}
		on[at] = append(on[at], name)
	}
	for _, sharing := range on {
		if len(sharing) > 1 {
			names = append(names, sharing...)
		}
	}
	slices.Sort(names)
	return names
}

// peoplesReplicas are replicas that people changed themselves, where they are the workload's. A freeze and a trip keep
// no replicas waiting that stand as they do; after a rollout that failed only those that people took away are urgent,
// for their clusters have no owner.
func peoplesReplicas(s *snapshot) *proposed {
	if !s.Next.FreeReplicas {
		return nil
	}
	found := s.Peoples()
	fewer := found < s.Next.Replicas && s.may(gate.FollowOut)
	more := found > s.Next.Replicas && s.may(gate.FollowUp)
	if !fewer && !more {
		return nil
	}
	return &proposed{want: s.wantOf(found, nil), cause: change.Pin, why: fmt.Sprintf("the workload has %d replicas instead of %d", standing.Replicas(s.In.Workload), s.Next.Replicas)}
}

// pinsBeyond are the replicas that pins ask for, where they are ballast's to bring about: the modes x0y and default
// restart the others for replicas that come.
func pinsBeyond(s *snapshot) *proposed {
	if s.Next.FreeReplicas || s.Next.Unmanaged || stranded(s.Next, s.replicas) {
		return nil
	}
	byPlan := func(name string) bool { return !s.BySecret(name) }
	if replicas, why := pinnedBeyond(s, byPlan); why != "" { // what waits for a Secret's must not make these wait
		return &proposed{want: s.wantOf(replicas, nil), cause: change.Pin, why: why}
	}
	replicas, why := pinnedBeyond(s, s.BySecret)
	if why == "" {
		return nil
	}
	return &proposed{want: s.wantOf(replicas, nil), cause: change.Pin, why: why, bySecret: true}
}

// pinnedBeyond is how many replicas the pins of those clusters ask for, and why that is more than there are; empty: it is not.
func pinnedBeyond(s *snapshot, counts func(name string) bool) (replicas int, why string) {
	replicas = s.Next.Replicas
	for _, name := range slices.Sorted(maps.Keys(s.Pins)) {
		if _, known := s.Next.Clusters[name]; !known || !counts(name) {
			continue
		}
		if pin := s.Pins[name]; pin >= replicas && pin < s.Next.MaxReplicas {
			replicas, why = pin+1, fmt.Sprintf("%s is pinned to replica %d", name, pin)
		}
	}
	return replicas, why
}

// stranded reports whether a replica that does not work has clusters: they leave it before pods are added for a pin.
func stranded(p plan.Plan, v failover.Verdict) bool {
	off := slices.Clone(v.Down)
	for _, s := range v.Sick {
		off = append(off, s.Replica)
	}
	if len(off) == 0 || v.Held == failover.WholeFleet {
		return false
	}
	for _, row := range p.Clusters {
		if slices.Contains(off, row.Replica) {
			return true
		}
	}
	return false
}

// prepare is the env that the mode live needs once, and in the others one that gives each cluster one owner.
func prepare(s *snapshot) *proposed {
	if !s.Env().Prepares() {
		return nil
	}
	w := s.wantOf(s.Next.Replicas, nil)
	why := fmt.Sprintf("%s becomes %d instead of %s, which restarts the application-controller: below the number of replicas it gives clusters several owners",
		plan.EnvReplicas, w.ControllerReplicas, envFound(s.Next.ControllerReplicas))
	if s.In.Config.Rollout.Live != nil {
		why = fmt.Sprintf("prepares live rollouts: %s becomes %d for good, "+
			"which restarts the application-controller once, and scaling restarts nothing afterwards", plan.EnvReplicas, s.Env().Constant())
	}
	return &proposed{want: w, cause: change.Balance, why: why, atOnce: s.Env().TooLow()}
}

// evacuation is where the clusters of replicas go that are unwell, or that a person wants empty.
func evacuation(s *snapshot) *proposed {
	var unwell []int
	if s.may(gate.FailOver) {
		unwell = s.replicas.Unwell()
	}
	if len(unwell) == 0 && (len(s.cordoned) == 0 || !s.may(gate.Drain)) {
		return nil
	}
	e := failover.Evacuate(request(s, unwell), s.In.Now)
	p := &proposed{last: &e.Last, cause: change.Failover}
	for _, n := range e.Notes {
		p.told = append(p.told, problem.Problem{Phase: problem.PhaseRollout, Subject: cmp.Or(n.Cluster, fmt.Sprintf("replica %d", n.Replica)), Kind: string(n.Kind), Message: n.Message})
	}
	if e.FailedOver == 0 {
		p.cause = change.Drain
	}
	if len(e.Moves) == 0 || p.cause == change.Drain && !s.may(gate.Drain) {
		return p
	}
	asked := ""
	if p.cause == change.Drain {
		asked = " as asked"
	}
	p.why = "empties " + division.ReplicaList(append(slices.Clone(unwell), s.cordoned...)) + asked + ": moves " + problem.Plural(ledger.ServersOf(s.Beside, maps.Keys(e.Moves), s.Next), "cluster")
	p.want = s.wantParted(s.Next.Replicas, e.Moves, pinnedBack(s, unwell))
	p.want.ControllerReplicas = s.Next.ControllerReplicas
	return p
}

// pinnedBack are the clusters on unwell replicas whose group a pin keeps there: they leave without it.
func pinnedBack(s *snapshot, unwell []int) map[string]bool {
	parted := map[string]bool{}
	for _, g := range s.Groups {
		held := map[int]bool{}
		for _, i := range g.Members {
			if pin, pinned := s.Pins[s.Fleet.Clusters[i].Shard.ID]; pinned && pin == s.Standing(i) {
				held[pin] = slices.Contains(unwell, pin)
			}
		}
		for _, i := range g.Members {
			if !g.Apart && held[s.Standing(i)] {
				parted[s.Fleet.Clusters[i].Shard.ID] = true
			}
		}
	}
	return parted
}

func request(s *snapshot, unwell []int) failover.Request {
	again := map[string]bool{}
	for name, at := range s.changes.Failed {
		again[name] = s.In.Now.Sub(at) < ledger.FailedOnce
	}
	working := map[int]bool{}
	for _, replica := range unwell {
		working[replica] = standing.Works(s.In.Observed.Pods, replica) || s.changes.Replicas.Recovers(replica, time.Duration(s.In.Config.Failover.After), s.In.Now)
	}
	r := failover.Request{View: plan.NewView(s.Next.Clone(), s.Pins), Again: again, Unwell: unwell, Works: working, Shut: s.shut(),
		MaxClusters: s.MostClusters(), Budget: budgetOf(s, change.Drain).Left, Rescue: rescueOf(s), Whole: budgetOf(s, change.Failover).Left,
		Last:    s.In.Memory.Changes.Failover,
		Servers: gathered(s, unwell, working), Apart: map[string][]string{}, Beyond: make([][]string, s.Next.Replicas), Fixed: map[string]bool{}, Gone: map[string]bool{}, Loads: map[string]plan.Load{}, Beside: make([]plan.Load, s.Next.Replicas)}
	if s.may(gate.Drain) {
		r.Cordoned = s.cordoned
	} else {
		r.Shut = append(r.Shut, s.cordoned...)
	}
	// as the partition has it
	r.Capacity = cmp.Or(division.Capacity(s.Ground), s.Capacity)
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
		if s.loads != nil {
			r.Loads[name] = s.loads[i]
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
		r.Beyond[s.Owners[i]] = placement.Joined(r.Beyond[s.Owners[i]], cl.Apart)
		r.BytesBeside[s.Owners[i]] = r.BytesBeside[s.Owners[i]].Plus(s.InUse.Takes(i))
		if s.loads != nil {
			r.Beside[s.Owners[i]] += s.loads[i]
		}
	}
	if s.Partial {
		fromMemory(s.Ground, &r)
	}
	return r
}

// gathered is what leaves a replica together: the clusters of one server, and those of a group wherever they are, so that they
// join the others. A group with a cluster that cannot leave a replica for which nobody works lets the others go: no cluster
// is without an owner for a group's sake.
func gathered(s *snapshot, unwell []int, works map[int]bool) *placement.Servers {
	if len(s.Groups) == 0 {
		return s.Beside
	}
	holds := map[string]bool{} // groups, by name
	for _, g := range s.Groups {
		for _, i := range g.Members {
			at := s.Firm(i).At
			holds[g.Name] = holds[g.Name] || slices.Contains(unwell, at) && !works[at]
		}
	}
	free := slices.DeleteFunc(slices.Clone(s.Groups), func(g ground.Group) bool { return holds[g.Name] })
	joined := s.Units().Links(free, ground.Whole)
	clusters := slices.Clone(s.Fleet.Clusters)
	for i := range clusters {
		clusters[i].Bound = joined.Leads(clusters[i])
	}
	return standing.Servers(discover.Fleet{Clusters: clusters})
}
