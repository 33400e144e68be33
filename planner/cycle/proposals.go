package cycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// proposed is a change that a cycle may begin: where it goes, why, and for whose sake.
type proposed struct {
	want  *rollout.Want
	why   string
	cause change.Cause
}

// proposal is one that a cycle considers: the actions of which a gate must leave one open, and the change, if there is any.
type proposal struct {
	asks action
	made func(*cycle, *adoption) *proposed
}

// proposals are in the order of their urgency: an env that gives clusters several owners, or none, is mended by its change
// alone; what must be at once comes before what a person asks for, that before what an unwell replica needs, and all of it
// before what was elected.
func proposals() []proposal {
	return []proposal{
		{setEnv, (*cycle).prepare},
		{followUp | followOut, (*cycle).peoplesReplicas},
		{pinOut, (*cycle).pinsBeyond},
		{rollBack, (*cycle).rollback},
		{failOver | drain, (*cycle).evacuation},
		{balance, (*cycle).level},
	}
}

// level is what was elected.
func (c *cycle) level(a *adoption) *proposed {
	if c.winner == nil {
		return nil
	}
	if len(c.out.Cordoned)+len(c.out.Replicas.Sick) > 0 {
		c.out.Candidate.Verdict = "waits: a replica is unwell or cordoned, and nothing is levelled out meanwhile"
		return nil
	}
	if replica, down := c.down(a); down {
		c.out.Candidate.Verdict = fmt.Sprintf("waits: replica %d is not ready, and nothing is levelled out onto it", replica)
		return nil
	}
	w := c.wantOf(a, c.winner.Replicas, c.winner.Of)
	moves := a.moves(c.winner.Of)
	if len(moves) == 0 && w.Replicas == a.next.Replicas && w.ControllerReplicas == a.next.ControllerReplicas {
		return nil
	}
	return &proposed{w, fmt.Sprintf("moves %d of %d clusters, %d replicas instead of %d: makespan over mean %.2f instead of %.2f",
		c.servers(clustersOf(moves), a.next), c.servers(maps.Keys(a.next.Clusters), a.next), w.Replicas, a.next.Replicas, Imbalance(c.out.Candidate.Replicas), Imbalance(c.out.Now)), change.Balance}
}

// down names a replica that nobody works for now, as far as pods are seen: a new leader does not know for how long it
// has been so, and would undo what the last one did about it.
func (c *cycle) down(a *adoption) (int, bool) {
	if !c.in.Observed.Known {
		return 0, false
	}
	for replica := range a.next.Replicas {
		if !c.works(replica) {
			return replica, true
		}
	}
	return 0, false
}

func (c *cycle) works(replica int) bool {
	return slices.ContainsFunc(c.in.Observed.Pods, func(p rollout.Pod) bool { return p.Replica == replica && p.Ready && p.Claimed })
}

// rollback is the earlier plan that a person asks for: its rows for the clusters that are still there, its replicas
// within today's bounds. Once it holds, the balance is left alone for as long as after a rollout that failed, or
// ballast would undo at once what the person asked for.
func (c *cycle) rollback(a *adoption) *proposed {
	r := c.in.Rollback
	if r == nil || c.out.Done {
		return nil
	}
	if why := r.refused(a.next); why != "" {
		c.problem(Problem{Phase: PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackRefused", Message: why})
		c.out.Done = true
		return nil
	}
	replicas := r.Plan.Replicas
	if a.next.FreeReplicas {
		replicas = a.next.Replicas
	}
	back, closed := map[string]int{}, c.closed()
	var stay []string
	for _, cl := range c.out.Fleet.Clusters {
		name := cl.Shard.ID
		now, present := a.next.Clusters[name]
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
		if pin, pinned := a.pins[name]; pinned && pin < a.next.MaxReplicas && !a.next.FreeReplicas {
			replicas = max(replicas, pin+1)
		}
	}
	if len(stay) > 0 {
		c.problem(Problem{Phase: PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: the replica is unwell or cordoned", r.Revision, ClipList(stay))})
	}
	w := c.wantOf(a, replicas, back)
	if len(rollout.Moves(a.next, plan.Plan{Clusters: w.Rows})) == 0 && replicas == a.next.Replicas {
		c.out.Done, c.out.Memory.HoldOff, c.out.Memory.Votes = true, c.in.Now, evaluate.History{}
		return nil
	}
	return &proposed{w, fmt.Sprintf("goes back to revision %d, as a person asked", r.Revision), change.Rollback}
}

// refused says why a plan cannot be gone back to; empty where it can.
func (r *Rollback) refused(now plan.Plan) string {
	switch {
	case r.Plan == nil:
		return r.Problem
	case r.Plan.Rollout != nil:
		return fmt.Sprintf("revision %d was written in the middle of a rollout, and says nothing of where that went; `ballast rollback` lists those at rest", r.Revision)
	case r.Plan.Target != now.Target:
		return fmt.Sprintf("revision %d is for another workload, %s %q", r.Revision, r.Plan.Target.Kind, r.Plan.Target.Name)
	case r.Plan.Replicas < 1 || r.Plan.Replicas > now.MaxReplicas:
		return fmt.Sprintf("revision %d has %d replicas, and partition.maxReplicas is %d: raise it first", r.Revision, r.Plan.Replicas, now.MaxReplicas)
	}
	return ""
}

// peoplesReplicas are replicas that people changed themselves, where they are the workload's. A freeze and a trip keep no replicas
// waiting that stand as they do; after a rollout that failed only those that people took away are urgent, for their clusters have
// no owner.
func (c *cycle) peoplesReplicas(a *adoption) *proposed {
	if !a.next.FreeReplicas {
		return nil
	}
	found := min(foundReplicas(c.in.Workload), a.next.MaxReplicas)
	fewer := found < a.next.Replicas && c.may(followOut)
	more := found > a.next.Replicas && c.may(followUp)
	if !fewer && !more {
		return nil
	}
	return &proposed{c.wantOf(a, found, nil), fmt.Sprintf("the workload has %d replicas instead of %d", found, a.next.Replicas), change.Pin}
}

// pinsBeyond are the replicas that pins ask for, where they are ballast's to bring about: the modes x0y and default restart the
// others for replicas that come.
func (c *cycle) pinsBeyond(a *adoption) *proposed {
	if a.next.FreeReplicas || a.next.Unmanaged {
		return nil
	}
	replicas, why := a.next.Replicas, ""
	for _, name := range sortedNames(a.pins) {
		_, known := a.next.Clusters[name]
		if pin := a.pins[name]; known && pin >= replicas && pin < a.next.MaxReplicas {
			replicas, why = pin+1, fmt.Sprintf("%s is pinned to replica %d", name, pin)
		}
	}
	if why == "" {
		return nil
	}
	return &proposed{c.wantOf(a, replicas, nil), why, change.Pin}
}

// settle answers a replica below that number for every row: a pin's, else the decided one, else the one it has, and
// where none of them counts what placement answers. The Secrets of one server have one, and one that ballast may not
// write keeps its own.
func (c *cycle) settle(a *adoption, replicas int, decided map[string]int) map[string]int {
	clusters := make([]placement.Cluster, 0, len(a.next.Clusters))
	for i := range a.fleet.Clusters {
		p := a.cluster(i)
		if c.out.Loads != nil {
			p.Load = c.out.Loads[i]
		}
		_, row := a.next.Clusters[p.Name]
		pin, pinned := a.pins[p.Name]
		to, chosen := decided[p.Name]
		switch {
		case row && pinned && pin < replicas:
			p.At, p.Claim = pin, placement.Pinned
		case chosen && p.Claim < placement.Decided:
			p.At, p.Claim = to, placement.Decided
		}
		clusters = append(clusters, p)
	}
	for _, name := range a.orphanedRows() {
		row := a.next.Clusters[name]
		gone := placement.Cluster{Name: name, Server: a.beside.Of(name, row.Server), At: row.Replica, Claim: placement.Follows}
		clusters = append(clusters, gone)
	}
	of := make(map[string]int, len(clusters))
	policy := placement.Policy{MaxClusters: c.in.Config.Partition.MaxClustersPerReplica}
	for i, to := range placement.Settle(clusters, c.bins(replicas), policy) {
		of[clusters[i].Name] = to
	}
	return of
}

// bins are replicas that carry nothing yet. Those that are unwell, cordoned, not ready or silent are closed.
func (c *cycle) bins(replicas int) []placement.Bin {
	bins, closed := make([]placement.Bin, replicas), append(c.shut(), c.out.Cordoned...)
	for replica := range bins {
		bins[replica].Open = !slices.Contains(closed, replica)
	}
	return bins
}

// wantOf words a target for the rollout: clusters whose replica was decided, and all others where they settle.
func (c *cycle) wantOf(a *adoption, replicas int, decided map[string]int) *rollout.Want {
	rows, of := make(map[string]plan.Row, len(a.next.Clusters)), c.settle(a, replicas, decided)
	for name, row := range a.next.Clusters {
		row.Replica = of[name]
		pin, pinned := a.pins[name]
		row.Pinned = pinned && pin == row.Replica
		rows[name] = row
	}
	return &rollout.Want{Replicas: replicas, ControllerReplicas: a.envOf(replicas), Rows: rows}
}

// envOf is the env that goes with so many replicas, since an Argo CD without one believes in one replica; one that was
// found larger stays as large, so that no pod restarts for it.
func (a *adoption) envOf(replicas int) int {
	switch {
	case a.next.Unmanaged && replicas == a.next.Replicas:
		return a.next.ControllerReplicas // people's
	case a.in.Config.Rollout.Live != nil:
		return max(replicas, a.constantEnv())
	case a.next.ControllerReplicas > a.next.Replicas && a.inClusterBelow(replicas):
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

// limit leaves moves for later that the budget has no room for. It answers what all of it waits for, "" where it may
// begin: mode live, which looks at the budget before each wave, for room for one move; x0y, which stops every replica,
// and should do so once, for room for all of them.
func (c *cycle) limit(a *adoption, w *rollout.Want, cause change.Cause, o rollout.Options) string {
	moves := rollout.Moves(a.next, plan.Plan{Clusters: w.Rows})
	servers := a.servers(moves)
	switch {
	case !cause.Limited() || servers <= o.Budget:
		return ""
	case o.Mode == plan.ModeX0Y:
		return c.room(servers, ", since every replica stops for it", ", or set rollout.live, which moves some at a time")
	case o.Mode == plan.ModeLive:
		if o.Budget < 1 {
			return c.room(1, "", "")
		}
		return ""
	}
	cut(a, w, moves, o.Budget)
	if o.Budget < 1 && w.Replicas == a.next.Replicas {
		return c.room(1, "", "")
	}
	return ""
}

// room says when the budget has room for so many moves at once, and where it never has, with the mend.
func (c *cycle) room(moves int, since, mend string) string {
	at, ok := change.When(c.out.Memory.Changes.Ledger, c.rates(), c.size(), c.in.Now, moves)
	switch {
	case moves == 1:
		return "waits for the move budget: " + c.out.Budget.String()
	case ok:
		return fmt.Sprintf("waits until %s for a move budget of %d at once%s: %s", at.UTC().Format(time.RFC3339), moves, since, c.out.Budget)
	}
	never := fmt.Sprintf("waits for a move budget of %d at once%s, and change.moves.rate never has room for them: raise it%s: %s", moves, since, mend, c.out.Budget)
	c.problem(Problem{Phase: PhaseRollout, Kind: "BudgetTooSmall", Message: "what is to move " + never})
	return never
}

// cut takes moves out of what is wanted until the budget has room: those off replicas that go come first, then the
// heaviest, and the clusters of one server stay together. Replicas go only when all that is on them can leave at once;
// until then some of it leaves before.
func cut(a *adoption, w *rollout.Want, moves []rollout.Move, budget int) {
	goes := func(m rollout.Move) bool { return m.From >= w.Replicas }
	slices.SortStableFunc(moves, func(x, y rollout.Move) int {
		return cmp.Or(discover.FalseFirst(!goes(x), !goes(y)), cmp.Compare(plan.LoadOf(y.Load), plan.LoadOf(x.Load)))
	})
	leaving := slices.DeleteFunc(slices.Clone(moves), func(m rollout.Move) bool { return !goes(m) })
	if a.servers(leaving) > budget {
		w.Replicas, w.ControllerReplicas = a.next.Replicas, a.next.ControllerReplicas
	}
	for _, unit := range placement.Group(len(moves), func(i int) string { return a.beside.Of(moves[i].Cluster, w.Rows[moves[i].Cluster].Server) }) {
		if budget > 0 {
			budget--
			continue
		}
		for _, i := range unit {
			row := w.Rows[moves[i].Cluster]
			row.Replica = moves[i].From
			w.Rows[moves[i].Cluster] = row
		}
	}
}
