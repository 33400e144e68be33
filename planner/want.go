package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// want is where to go, and why: what must be at once comes before what a person asks for, that before what an unwell
// replica needs, and all of it before what was elected.
func (c *cycle) want(a *adoption) (*rollout.Want, string, change.Cause) {
	if c.may(setEnv) && c.prepares(a) { // an env that gives clusters several owners, or none, is mended by this alone
		w, why := c.prepare(a)
		return w, why, change.Balance
	}
	if w, why := c.urgent(a); w != nil { // people's replicas are not waited for
		return w, why, change.Pin
	}
	if c.may(rollBack) {
		if w, why := c.rollback(a); w != nil || c.out.Done {
			return w, why, change.Rollback // once it is done, what was elected beforehand must not undo it
		}
	}
	if w, why, cause := c.evacuation(a); w != nil && (cause == change.Failover || c.may(drain)) {
		return w, why, cause
	}
	if c.winner == nil || !c.may(balance) {
		return nil, "", ""
	}
	if len(c.out.Cordoned)+len(c.out.Replicas.Sick) > 0 {
		c.out.Candidate.Verdict = "waits: a replica is unwell or cordoned, and nothing is levelled out meanwhile"
		return nil, "", ""
	}
	if replica, down := c.down(a); down {
		c.out.Candidate.Verdict = fmt.Sprintf("waits: replica %d is not ready, and nothing is levelled out onto it", replica)
		return nil, "", ""
	}
	w := a.wantOf(c.winner.Replicas, c.winner.Of)
	moves := a.moves(c.winner.Of)
	if len(moves) == 0 && w.Replicas == a.next.Replicas && w.ControllerReplicas == a.next.ControllerReplicas {
		return nil, "", ""
	}
	return w, fmt.Sprintf("moves %d of %d clusters, %d replicas instead of %d: makespan over mean %.2f instead of %.2f",
		len(moves), len(a.next.Clusters), w.Replicas, a.next.Replicas, Imbalance(c.out.Candidate.Replicas), Imbalance(c.out.Now)), change.Balance
}

// down names a replica that nobody works for now, as far as pods are seen: a new leader does not know for how long it has
// been so, and would undo what the last one did about it.
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

// rollback is the earlier plan that a person asks for: its rows for the clusters that are still there, its replicas within
// today's bounds. Once it holds, the balance is left alone for as long as after a rollout that failed, or ballast would undo
// at once what the person asked for.
func (c *cycle) rollback(a *adoption) (*rollout.Want, string) {
	r := c.in.Rollback
	if r == nil || c.out.Done {
		return nil, ""
	}
	if why := r.refused(a.next); why != "" {
		c.problem(Problem{Phase: PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackRefused", Message: why})
		c.out.Done = true
		return nil, ""
	}
	replicas := r.Plan.Replicas
	if a.next.FreeReplicas {
		replicas = a.next.Replicas
	}
	of, closed := a.present(), c.closed()
	var stay []string
	for _, cl := range c.out.Fleet.Clusters {
		name := cl.Shard.ID
		if _, present := of[name]; !present {
			continue
		}
		if row, known := r.Plan.Clusters[name]; known && row.Replica < replicas && !cl.Immutable {
			if of[name] != row.Replica && closed[row.Replica] {
				stay = append(stay, name)
				continue
			}
			of[name] = row.Replica
		}
		if pin, pinned := a.pins[name]; pinned && pin < a.next.MaxReplicas && !a.next.FreeReplicas {
			of[name] = pin
			replicas = max(replicas, pin+1)
		}
	}
	if len(stay) > 0 {
		c.problem(Problem{Phase: PhaseRollout, Subject: plan.AnnotationRollback, Kind: "RollbackSkips", Message: fmt.Sprintf(
			"of what is to go back to revision %d, %s stay: the replica is unwell or cordoned", r.Revision, clipList(stay))})
	}
	c.evacuate(a, of, replicas)
	w := a.wantOf(replicas, of)
	if len(rollout.Moves(a.next, plan.Plan{Clusters: w.Rows})) == 0 && replicas == a.next.Replicas {
		c.out.Done, c.out.Memory.HoldOff, c.out.Memory.Votes = true, c.in.Now, evaluate.History{}
		return nil, ""
	}
	return w, fmt.Sprintf("goes back to revision %d, as a person asked", r.Revision)
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

// urgent is a change that no vote may delay: a pin beyond the replicas, or replicas that people changed themselves where they
// are the workload's. A freeze and a trip keep a pin waiting, but no replicas that stand as they do; after a rollout that failed
// only replicas that people took away are urgent, for their clusters have no owner.
func (c *cycle) urgent(a *adoption) (*rollout.Want, string) {
	replicas, why := a.next.Replicas, ""
	if a.next.FreeReplicas {
		if found := min(foundReplicas(c.in.Workload), a.next.MaxReplicas); found < replicas && c.may(followOut) || found > replicas && c.may(followUp) {
			why = fmt.Sprintf("the workload has %d replicas instead of %d", found, replicas)
			replicas = found
		}
	}
	pins := sortedNames(a.pins)
	if !c.may(pinOut) { // replicas that come restart the others in the modes x0y and default
		pins = nil
	}
	for _, name := range pins {
		_, known := a.next.Clusters[name]
		if pin := a.pins[name]; known && pin >= replicas && pin < a.next.MaxReplicas && !a.next.FreeReplicas && !a.next.Unmanaged {
			replicas, why = pin+1, fmt.Sprintf("%s is pinned to replica %d", name, pin)
		}
	}
	if why == "" {
		return nil, ""
	}
	of := make(map[string]int, len(a.next.Clusters))
	for name, row := range a.next.Clusters {
		of[name] = row.Replica
		if pin, ok := a.pins[name]; ok && pin < replicas {
			of[name] = pin
		}
	}
	c.evacuate(a, of, replicas)
	return a.wantOf(replicas, of), why
}

// evacuate gives every cluster of replicas that go away to the lightest that stay, if one is open to an open one.
func (c *cycle) evacuate(a *adoption, of map[string]int, replicas int) {
	carried, closed := make([]plan.Load, replicas), c.closed()
	loads := map[string]plan.Load{}
	for i, cl := range a.fleet.Clusters {
		if c.out.Loads != nil {
			loads[cl.Shard.ID] = c.out.Loads[i]
		}
		if r, ok := of[cl.Shard.ID]; ok && r < replicas {
			carried[r] += loads[cl.Shard.ID] + 1 // clusters count where loads are unknown or alike
		}
	}
	for _, name := range sortedNames(of) {
		if of[name] < replicas {
			continue
		}
		lightest := 0
		for r := range carried {
			if closed[r] == closed[lightest] && carried[r] < carried[lightest] || !closed[r] && closed[lightest] {
				lightest = r
			}
		}
		of[name] = lightest
		carried[lightest] += loads[name] + 1
	}
}

// wantOf words a target for the rollout. The env goes with the replicas, since an Argo CD without one believes in one
// replica; one that was found larger stays as large, so that no pod restarts for it.
func (a *adoption) wantOf(replicas int, of map[string]int) *rollout.Want {
	rows := make(map[string]plan.Row, len(a.next.Clusters))
	for name, row := range a.next.Clusters {
		if to, ok := of[name]; ok {
			row.Replica = to
		} else if row.Replica >= replicas {
			row.Replica = 0 // a row whose Secret is gone; nobody runs it, and it must stay in range
		}
		pin, pinned := a.pins[name]
		row.Pinned = pinned && pin == row.Replica
		rows[name] = row
	}
	env := replicas
	if a.in.Config.Rollout.Live != nil {
		env = max(env, a.constantEnv())
	} else if a.next.ControllerReplicas > a.next.Replicas && a.inClusterBelow(replicas) {
		env = max(env, a.next.ControllerReplicas)
	}
	return &rollout.Want{Replicas: replicas, ControllerReplicas: env, Rows: rows}
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

// limit leaves moves for later that the budget has no room for. It answers what all of it waits for, "" where it may begin:
// mode live, which looks at the budget before each wave, for room for one move; x0y, which stops every replica, and should
// do so once, for room for all of them.
func (c *cycle) limit(a *adoption, w *rollout.Want, cause change.Cause, o rollout.Options) string {
	moves := rollout.Moves(a.next, plan.Plan{Clusters: w.Rows})
	switch {
	case !cause.Limited() || len(moves) <= o.Budget:
		return ""
	case o.Mode == plan.ModeX0Y:
		return c.room(len(moves), ", since every replica stops for it", ", or set rollout.live, which moves some at a time")
	case o.Mode == plan.ModeLive:
		if o.Budget < 1 {
			return c.room(1, "", "")
		}
		return ""
	}
	least := cut(a, w, moves, o.Budget)
	if least > o.Budget && w.Replicas == a.next.Replicas {
		return c.room(least, "", "")
	}
	return ""
}

// room says when the budget has room for so many moves at once, and where it never has, with the mend.
func (c *cycle) room(moves int, since, mend string) string {
	at, ok := change.When(c.out.Memory.Changes.Ledger, c.rates(), len(c.out.Fleet.Clusters), c.in.Now, moves)
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

// cut takes moves out of what is wanted until the budget has room: those off replicas that go come first, then the heaviest,
// and the clusters of one server stay together. Replicas go only when all that is on them can leave at once; until then some of
// it leaves before. It answers how many moves the smallest part of it has.
func cut(a *adoption, w *rollout.Want, moves []rollout.Move, budget int) (least int) {
	goes := func(m rollout.Move) bool { return m.From >= w.Replicas }
	slices.SortStableFunc(moves, func(x, y rollout.Move) int {
		return cmp.Or(trueFirst(goes(x), goes(y)), cmp.Compare(loadOf(y), loadOf(x)))
	})
	leaving := 0
	units := map[string][]rollout.Move{}
	var order []string
	for _, m := range moves {
		if goes(m) {
			leaving++
		}
		unit := cmp.Or(w.Rows[m.Cluster].Server, m.Cluster)
		if units[unit] == nil {
			order = append(order, unit)
		}
		units[unit] = append(units[unit], m)
	}
	if leaving > budget {
		w.Replicas, w.ControllerReplicas = a.next.Replicas, a.next.ControllerReplicas
	}
	least = len(moves)
	for _, unit := range order {
		n := len(units[unit])
		least = min(least, n)
		if n <= budget {
			budget -= n
			continue
		}
		for _, m := range units[unit] {
			row := w.Rows[m.Cluster]
			row.Replica = m.From
			w.Rows[m.Cluster] = row
		}
	}
	return least
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// loadOf is a move's load; without one it weighs nothing.
func loadOf(m rollout.Move) plan.Load {
	var l plan.Load
	_ = l.UnmarshalText([]byte(m.Load))
	return l
}
