package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/change"
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
	worth    worth          // of moves that were weighed
	last     *failover.Last // what counts as the last failover: if this one begins, or at once where nothing is failed over
}

// proposal is one that a cycle considers: the actions of which a gate must leave one open, and the change, if there is
// any.
type proposal struct {
	asks action
	made func(*snapshot) *proposed
}

// proposals are in the order of their urgency: an env that gives clusters several owners, or none, is mended by its
// change alone; what must be at once comes before what a person asks for, that before what an unwell replica needs, and
// all of it before what was elected.
func proposals() []proposal {
	return []proposal{
		{setEnv, prepare},
		{followUp | followOut, peoplesReplicas},
		{pinOut, pinsBeyond},
		{rollBack, rollback},
		{failOver | drain, evacuation},
		{balance, level},
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
	chosen := s.chosen(*s.elected)
	w := s.wantOf(s.elected.Replicas, chosen)
	moves := s.moves(chosen)
	if len(moves) == 0 && w.Replicas == s.next.Replicas && w.ControllerReplicas == s.next.ControllerReplicas {
		return nil
	}
	fixed := s.in.Config.Partition.Replicas
	asked := fixed != nil && fixed.Fixed == w.Replicas && w.Replicas != s.next.Replicas
	why := fmt.Sprintf("moves %d of %d clusters, %d replicas instead of %d: makespan over mean %.2f instead of %.2f",
		serversOf(s.beside, clustersOf(moves), s.next), serversOf(s.beside, maps.Keys(s.next.Clusters), s.next), w.Replicas, s.next.Replicas, Imbalance(s.candidate.Replicas), Imbalance(s.now))
	if s.worth.said != "" {
		why += "; " + s.worth.said
	}
	if waits := s.restartPays(w); waits != "" {
		return &proposed{verdict: waits}
	}
	return &proposed{want: w, cause: change.Balance, asked: asked, why: why, worth: s.worth}
}

// down names a replica that nobody works for now, as far as pods are seen: a new leader does not know for how long it
// has been so, and would undo what the last one did about it.
func down(s *snapshot) (int, bool) {
	if !s.in.Observed.Known {
		return 0, false
	}
	for replica := range s.next.Replicas {
		if !works(s.in.Observed.Pods, replica) {
			return replica, true
		}
	}
	return 0, false
}

// rollback is the earlier plan that a person asks for: its rows for the clusters that are still there, its replicas
// within today's bounds. Once it holds, the balance is left alone for as long as after a rollout that failed, or
// ballast would undo at once what the person asked for.
func rollback(s *snapshot) *proposed {
	r := s.in.Rollback
	if r == nil || s.done {
		return nil
	}
	if why := r.Refused(s.next); why != "" {
		return &proposed{done: true, told: []problem.Problem{{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackRefused", Message: why}}}
	}
	replicas := r.Plan.Replicas
	if s.next.FreeReplicas {
		replicas = s.next.Replicas
	}
	back, closed := map[string]int{}, s.closed()
	var stay []string
	for _, cl := range s.fleet.Clusters {
		name := cl.Shard.ID
		now, present := s.next.Clusters[name]
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
		if pin, pinned := s.pins[name]; pinned && pin < s.next.MaxReplicas && !s.next.FreeReplicas {
			replicas = max(replicas, pin+1)
		}
	}
	var told []problem.Problem
	if len(stay) > 0 {
		told = append(told, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: the replica is unwell or cordoned", r.Revision, problem.ClipList(stay))})
	}
	if beside := s.keepApart(back, replicas); len(beside) > 0 {
		told = append(told, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: a group keeps them apart from what is there", r.Revision, problem.ClipList(beside))})
	}
	if full := s.keepWithin(back, replicas); len(full) > 0 {
		told = append(told, problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: the replica has not the memory", r.Revision, problem.ClipList(full))})
	}
	w := s.wantOf(replicas, back)
	if len(rollout.Moves(s.next, plan.Plan{Clusters: w.Rows})) == 0 && replicas == s.next.Replicas {
		return &proposed{done: true, holds: true, told: told}
	}
	return &proposed{want: w, cause: change.Rollback, told: told, why: fmt.Sprintf("goes back to revision %d, as a person asked", r.Revision)}
}

// keepApart takes out of back what would share a replica with another one of its group, and names that.
func (s *snapshot) keepApart(back map[string]int, replicas int) (stay []string) {
	for again := len(s.groups) > 0; again; {
		again = false
		rows := s.wantOf(replicas, back).Rows
		for _, g := range s.groups {
			for _, name := range s.crowded(g, rows) {
				if to, goes := back[name]; goes && to != s.next.Clusters[name].Replica {
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
func (s *snapshot) crowded(g group, rows map[string]plan.Row) (names []string) {
	if !g.apart {
		return nil
	}
	on := map[int][]string{}
	for _, i := range g.members {
		name, at := s.fleet.Clusters[i].Shard.ID, s.standing(i)
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
	if !s.next.FreeReplicas {
		return nil
	}
	found := s.peoples()
	fewer := found < s.next.Replicas && s.may(followOut)
	more := found > s.next.Replicas && s.may(followUp)
	if !fewer && !more {
		return nil
	}
	return &proposed{want: s.wantOf(found, nil), cause: change.Pin, why: fmt.Sprintf("the workload has %d replicas instead of %d", standing.Replicas(s.in.Workload), s.next.Replicas)}
}

// pinsBeyond are the replicas that pins ask for, where they are ballast's to bring about: the modes x0y and default
// restart the others for replicas that come.
func pinsBeyond(s *snapshot) *proposed {
	if s.next.FreeReplicas || s.next.Unmanaged || stranded(s.next, s.replicas) {
		return nil
	}
	byPlan := func(name string) bool { _, known := s.in.Pins[name]; return known }
	if replicas, why := s.pinnedBeyond(byPlan); why != "" { // what waits for a Secret's must not make these wait
		return &proposed{want: s.wantOf(replicas, nil), cause: change.Pin, why: why}
	}
	replicas, why := s.pinnedBeyond(func(name string) bool { return !byPlan(name) })
	if why == "" {
		return nil
	}
	return &proposed{want: s.wantOf(replicas, nil), cause: change.Pin, why: why, bySecret: true}
}

// pinnedBeyond is how many replicas the pins of those clusters ask for, and why that is more than there are; empty: it is not.
func (s *snapshot) pinnedBeyond(counts func(name string) bool) (replicas int, why string) {
	replicas = s.next.Replicas
	for _, name := range slices.Sorted(maps.Keys(s.pins)) {
		if _, known := s.next.Clusters[name]; !known || !counts(name) {
			continue
		}
		if pin := s.pins[name]; pin >= replicas && pin < s.next.MaxReplicas {
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
	if !s.prepares() {
		return nil
	}
	w := s.wantOf(s.next.Replicas, nil)
	why := fmt.Sprintf("%s becomes %d instead of %s, which restarts the application-controller: below the number of replicas it gives clusters several owners",
		plan.EnvReplicas, w.ControllerReplicas, envFound(s.next.ControllerReplicas))
	if s.in.Config.Rollout.Live != nil {
		why = fmt.Sprintf("prepares live rollouts: %s becomes %d for good, "+
			"which restarts the application-controller once, and scaling restarts nothing afterwards", plan.EnvReplicas, s.constantEnv())
	}
	return &proposed{want: w, cause: change.Balance, why: why, atOnce: s.envTooLow()}
}

// evacuation is where the clusters of replicas go that are unwell, or that a person wants empty.
func evacuation(s *snapshot) *proposed {
	var unwell []int
	if s.may(failOver) {
		unwell = s.replicas.Unwell()
	}
	if len(unwell) == 0 && (len(s.cordoned) == 0 || !s.may(drain)) {
		return nil
	}
	e := failover.Evacuate(request(s, unwell), s.in.Now)
	p := &proposed{last: &e.Last, cause: change.Failover}
	for _, n := range e.Notes {
		p.told = append(p.told, problem.Problem{Phase: problem.PhaseRollout, Subject: cmp.Or(n.Cluster, fmt.Sprintf("replica %d", n.Replica)), Kind: string(n.Kind), Message: n.Message})
	}
	if e.FailedOver == 0 {
		p.cause = change.Drain
	}
	if len(e.Moves) == 0 || p.cause == change.Drain && !s.may(drain) {
		return p
	}
	asked := ""
	if p.cause == change.Drain {
		asked = " as asked"
	}
	p.why = "empties " + replicaList(append(slices.Clone(unwell), s.cordoned...)) + asked + ": moves " + problem.Plural(serversOf(s.beside, maps.Keys(e.Moves), s.next), "cluster")
	p.want = s.wantOf(s.next.Replicas, e.Moves)
	p.want.ControllerReplicas = s.next.ControllerReplicas
	return p
}

func request(s *snapshot, unwell []int) failover.Request {
	again := map[string]bool{}
	for name, at := range s.changes.Failed {
		again[name] = s.in.Now.Sub(at) < failedOnce
	}
	working := map[int]bool{}
	for _, replica := range unwell {
		working[replica] = works(s.in.Observed.Pods, replica) || s.changes.Replicas.Recovers(replica, time.Duration(s.in.Config.Failover.After), s.in.Now)
	}
	r := failover.Request{View: plan.NewView(s.next.Clone(), s.pins), Again: again, Unwell: unwell, Works: working, Shut: s.shut(),
		MaxClusters: s.mostClusters(), Budget: s.budgetOf(change.Drain).Left, Rescue: s.budgetOf(change.Failover).Left,
		Last:    s.in.Memory.Changes.Failover,
		Servers: s.gathered(unwell, working), Apart: map[string][]string{}, Beyond: make([][]string, s.next.Replicas), Fixed: map[string]bool{}, Gone: map[string]bool{}, Loads: map[string]plan.Load{}, Beside: make([]plan.Load, s.next.Replicas)}
	if s.may(drain) {
		r.Cordoned = s.cordoned
	} else {
		r.Shut = append(r.Shut, s.cordoned...)
	}
	// as the partition has it
	r.Capacity = cmp.Or(boundsOf(s.in.Config.Partition, s.in.Workload, s.adoption).Capacity, s.capacity)
	r.Memory, r.Bytes, r.BytesBeside = s.memoryRoom(), s.byName, make([]plan.Bytes, s.next.Replicas)
	optedOut := map[string]bool{} // what stays together with a Secret that nobody may move stays with it
	of := func(cl discover.Cluster) string { return r.Servers.Of(cl.Shard.ID, "") }
	for _, cl := range s.fleet.Clusters {
		if together := of(cl); cl.Unmanaged && together != "" {
			optedOut[together] = true
		}
	}
	for name := range s.next.Clusters {
		r.Gone[name] = !standing.Has(s.fleet, name)
	}
	for i, cl := range s.fleet.Clusters {
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
		if _, row := s.next.Clusters[name]; row || s.owners[i] < 0 || s.owners[i] >= len(r.Beside) {
			continue
		}
		r.Beyond[s.owners[i]] = placement.Joined(r.Beyond[s.owners[i]], cl.Apart)
		r.BytesBeside[s.owners[i]] = r.BytesBeside[s.owners[i]].Plus(s.takes(i))
		if s.loads != nil {
			r.Beside[s.owners[i]] += s.loads[i]
		}
	}
	if s.partial {
		s.fromMemory(&r)
	}
	return r
}

// gathered is what leaves a replica together: the clusters of one server, and those of a group wherever they are, so that they
// join the others. A group with a cluster that cannot leave a replica for which nobody works lets the others go: no cluster
// is without an owner for a group's sake.
func (s *snapshot) gathered(unwell []int, works map[int]bool) *placement.Servers {
	if len(s.groups) == 0 {
		return s.beside
	}
	holds := map[string]bool{} // groups, by name
	for _, g := range s.groups {
		for _, i := range g.members {
			at := s.firm(i).At
			holds[g.name] = holds[g.name] || slices.Contains(unwell, at) && !works[at]
		}
	}
	free := slices.DeleteFunc(slices.Clone(s.groups), func(g group) bool { return holds[g.name] })
	joined := s.links(free, whole)
	clusters := slices.Clone(s.fleet.Clusters)
	for i := range clusters {
		clusters[i].Bound = joined.leads(clusters[i])
	}
	return standing.Servers(discover.Fleet{Clusters: clusters})
}

func replicaList(replicas []int) string {
	slices.Sort(replicas)
	names := make([]string, 0, len(replicas))
	for _, r := range slices.Compact(replicas) {
		names = append(names, strconv.Itoa(r))
	}
	return "replica " + strings.Join(names, ", ")
}

// envOf is the env that goes with so many replicas, since an Argo CD without one believes in one replica; one that was
// found larger stays as large, so that no pod restarts for it; so does one that an autoscaler has gone up to, which goes down and up
// again.
func (a *adoption) envOf(replicas int) int {
	switch {
	case a.next.Unmanaged && replicas == a.next.Replicas:
		return a.next.ControllerReplicas // people's
	case a.in.Config.Rollout.Live != nil:
		return max(replicas, a.constantEnv())
	case (a.next.ControllerReplicas > a.next.Replicas || a.next.FreeReplicas) && a.inClusterBelow(replicas):
		return max(replicas, a.next.ControllerReplicas)
	}
	return replicas
}

// inClusterBelow reports whether an implicit in-cluster, whose shard only the env decides, is on one of these replicas.
func (a *adoption) inClusterBelow(replicas int) bool {
	for _, c := range a.fleet.Clusters {
		if c.FixedAt != nil && *c.FixedAt >= replicas {
			return false
		}
	}
	return true
}
