package cycle

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/failover"
	"ballast/planner/ownership"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// look takes in what the pods say: who has each cluster, which replicas are unwell, whether a wave did harm.
func (c *cycle) look(a *adoption) {
	c.count()
	c.judgeOwners(a)
	c.judgeReplicas(a)
	c.judgeWaves(a)
	for _, n := range c.in.Neighbours {
		c.problem(Problem{Phase: PhaseRollout, Subject: n.Subject, Kind: string(n.Kind), Message: n.Message})
	}
	for _, f := range c.in.Installation {
		c.problem(Problem{Phase: PhaseRollout, Subject: f.Subject, Kind: string(f.Kind), Message: f.Message})
	}
	for _, trouble := range c.in.Observed.Trouble {
		c.problem(Problem{Phase: PhaseOwnership, Kind: "PodsUnseen", Message: trouble})
	}
}

func (c *cycle) rates() []change.Rate {
	rates := make([]change.Rate, len(c.in.Config.Change.Moves.Rate))
	for i, r := range c.in.Config.Change.Moves.Rate {
		rates[i] = change.Rate{Percent: r.Percent, Period: time.Duration(r.Period)}
	}
	return rates
}

// count enters the moves of the stage in force into the ledger, once: what was written counts, whoever wrote it. What
// was decided and lost the race does not: its memory is dropped.
func (c *cycle) count() {
	m := &c.out.Memory.Changes
	m.Ledger = m.Ledger.Kept(c.in.Now, c.rates())
	c.enter(change.Healing, c.in.Healed)
	if p := c.in.InForce; p != nil {
		c.countStage(*p)
	}
	if p := c.in.InForce; p != nil && p.Rollout == nil {
		m.Cause, m.Target = "", nil
	}
	c.out.Budget = change.Look(m.Ledger, c.rates(), c.size(), c.in.Now)
}

// size is how many servers the move budget is a share of: those that ballast moves, and that were there for an hour. Who may
// create Secrets must not lift the budget by it.
func (c *cycle) size() int {
	known := func(yield func(string) bool) {
		for _, cl := range c.out.Fleet.Clusters {
			if Managed(cl) && c.out.Memory.Known.Has(cl.Shard.ID) && !yield(cl.Shard.ID) {
				return
			}
		}
	}
	return c.groups().Count(known, func(string) string { return "" })
}

// groups tells what stays together.
func (c *cycle) groups() *placement.Servers {
	if c.beside == nil {
		c.beside = together(c.out.Fleet)
	}
	return c.beside
}

// servers is how many moves those clusters' are: one for each server, which Argo CD reconciles once, whatever number of Secrets it
// has. Who makes dozens of another's must not make that one too large for the budget.
func (c *cycle) servers(names iter.Seq[string], p plan.Plan) int {
	return c.groups().Count(names, func(name string) string { return p.Clusters[name].Server })
}

// countStage enters the moves that a stage begins with.
func (c *cycle) countStage(p plan.Plan) {
	m, r := &c.out.Memory.Changes, p.Rollout
	if r == nil || r.Since.Equal(m.Counted) {
		return
	}
	if m.Counted = r.Since; m.Cause == change.Pin {
		c.enterPins(maps.Keys(MovedBy(*r)), p)
		return
	}
	c.enter(cmp.Or(m.Cause, change.Balance), c.servers(maps.Keys(MovedBy(*r)), p))
}

// enter adds moves to the ledger.
func (c *cycle) enter(cause change.Cause, moves int) {
	if moves == 0 {
		return
	}
	m := &c.out.Memory.Changes
	m.Ledger = m.Ledger.Add(c.in.Now, cause, moves)
	if c.out.Counted == nil {
		c.out.Counted = map[change.Cause]int{}
	}
	c.out.Counted[cause] += moves
}

// MovedBy is the clusters that a stage gives another replica as it begins.
func MovedBy(r plan.Rollout) map[string]int {
	switch {
	case r.Stage == plan.Moving, r.Stage == plan.Reverting:
		return r.Was
	case r.Stage != plan.Assigning:
		return nil
	case len(r.Was) > len(r.Moves):
		return r.Was
	}
	return r.Moves
}

func (c *cycle) judgeOwners(a *adoption) {
	if len(c.in.Observed.Sight.Pods) == 0 {
		return // nothing was seen, and nothing is forgotten
	}
	v := plan.NewView(a.next.Clone(), a.pins)
	intended := func(name string) (int, bool) {
		replica, _, ok := v.Effective(name)
		return replica, ok
	}
	c.out.Memory.Changes.Ownership, c.out.Verdict = ownership.Judge(c.in.Memory.Changes.Ownership, c.in.Observed.Sight, intended, c.in.Now, ownership.Grace{})
	for _, o := range c.out.Verdict.Orphans {
		c.problem(Problem{Phase: PhaseOwnership, Subject: o.Cluster, Kind: "Orphaned", Message: o.Message()})
	}
	for _, d := range c.out.Verdict.Doubled {
		c.problem(Problem{Phase: PhaseOwnership, Subject: d.Cluster, Kind: "Doubled", Message: d.Message()})
	}
}

func (c *cycle) judgeReplicas(a *adoption) {
	cordons, err := plan.ParseCordons(c.in.Cordon)
	if err != nil {
		c.problem(Problem{Phase: PhaseRollout, Subject: plan.AnnotationCordon, Kind: "CordonRefused", Message: err.Error()})
	}
	c.out.Cordoned = plan.Cordoned(cordons, c.in.Now)
	f := c.in.Config.Failover
	if f == nil || a.next.FreeReplicas && c.in.Workload.Replicas == 0 {
		return
	}
	seen := failover.Fleet{Known: c.in.Observed.Known, Replicas: a.next.Replicas, Dynamic: c.in.Observed.Dynamic, Pods: c.in.Observed.Pods, Rolling: rolling(c.in, a.next)}
	c.out.Replicas, c.out.Memory.Changes.Replicas = failover.Judge(seen,
		failover.Options{After: time.Duration(f.After), Settle: time.Duration(f.Settle), Interval: time.Duration(c.in.Config.Interval)}, c.in.Now, c.in.Memory.Changes.Replicas)
	for _, s := range c.out.Replicas.Sick {
		c.problem(Problem{Phase: PhaseOwnership, Subject: s.Pod, Kind: "Unwell", Message: s.String()})
	}
}

// rolling reports whether the workload's pods are being replaced, by whomever.
func rolling(in Inputs, p plan.Plan) bool {
	w := in.Workload
	if w.ObservedGeneration < w.Generation || w.UpdatedReplicas < min(w.Replicas, w.CurrentReplicas) {
		return true
	}
	if p.Rollout == nil {
		return false
	}
	switch p.Rollout.Stage {
	case plan.Moving, plan.Verifying:
		return false
	case plan.Assigning: // default moves clusters between pods that stay; x0y has stopped them
		return p.Rollout.Mode == plan.ModeX0Y
	case plan.Reverting:
		return p.Rollout.Mode != plan.ModeLive
	}
	return true
}

// judgeWaves stops everything after a wave that did harm, until a person takes the annotation away.
func (c *cycle) judgeWaves(a *adoption) {
	m := &c.out.Memory.Changes
	c.expect(a)
	if m.Trip != nil {
		if m.TripTold = m.TripTold || c.in.Tripped != ""; m.TripTold && c.in.Tripped == "" {
			m.Trip, m.TripTold, m.Watch = nil, false, change.Watch{}
		}
	}
	var signs change.Signs
	if !m.Watch.Ended.IsZero() { // adding up the fleet's work is for what is watched
		signs = c.signs(m.Watch.Apart)
	}
	trip, watch := change.Judge(m.Watch, c.in.Now, signs)
	m.Watch = watch
	if trip != nil && m.Trip == nil {
		m.Trip, m.TripTold = trip, false
	}
	if why := cmp.Or(c.in.Tripped, tripWhy(m.Trip)); why != "" {
		c.problem(Problem{Phase: PhaseRollout, Kind: "Tripped", Message: "nothing moves and nothing scales any more: " + why +
			"; see what happened, then run `ballast resume` (or take the annotation " + plan.AnnotationTripped + " from the plan ConfigMap)"})
	}
}

// expect finds orphans that no wave made: the clusters on replicas that people took away, and those on one that died
// without having received any, whose failover must go on.
func (c *cycle) expect(a *adoption) {
	m := &c.out.Memory.Changes
	received := map[int]bool{}
	for _, replica := range m.Watch.Receivers {
		received[replica] = true
	}
	if r := a.next.Rollout; r != nil {
		for _, replica := range r.Moves {
			received[replica] = true
		}
	}
	for _, o := range c.out.Verdict.Orphans {
		if c.in.Observed.Known && o.Intended != ownership.NoReplica && !received[o.Intended] && !c.works(o.Intended) {
			c.taken = append(c.taken, o.Cluster)
		}
	}
	for name, row := range a.next.Clusters {
		if a.next.FreeReplicas && row.Replica >= c.in.Workload.Replicas {
			c.taken = append(c.taken, name)
		}
	}
	if len(c.taken) > 0 {
		m.Watch.Orphans, m.Began.Orphans = joined(m.Watch.Orphans, c.taken), joined(m.Began.Orphans, c.taken)
	}
}

// joined is all names of both lists, in order.
func joined(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func tripWhy(t *change.Trip) string {
	if t == nil {
		return ""
	}
	return t.Why
}

// signs are what is seen of the fleet. Clusters that move are apart: one that takes long by nature makes neither the
// replica slower that it comes to, nor the one faster that it left.
func (c *cycle) signs(apart []string) change.Signs {
	s := change.Signs{Work: change.Believable(c.work(apart)), Apart: apart}
	s.Orphans = c.bereft()
	for _, p := range c.in.Observed.Pods {
		if p.OOMKilled {
			s.Kills = append(s.Kills, change.Kill{Pod: p.Name, Replica: p.Replica, At: p.KilledAt})
		}
	}
	return s
}

// bereft are the orphans that a wave may have made: what the plan does not have and what ballast cannot write is people's, what
// Argo CD cannot read has no owner anywhere, and what nobody had nobody took away.
func (c *cycle) bereft() []string {
	peoples := map[string]bool{}
	for _, cl := range c.out.Fleet.Clusters {
		peoples[cl.Shard.ID] = cl.Immutable || cl.Unread
	}
	var names []string
	for _, o := range c.out.Verdict.Orphans {
		planned, had := o.Intended != ownership.NoReplica, o.Last != ownership.NoReplica
		if planned && had && !peoples[o.Cluster] {
			names = append(names, o.Cluster)
		}
	}
	return names
}

func (c *cycle) work(without []string) map[int]change.Work {
	moving, apart := map[string]bool{}, map[string]bool{}
	for _, name := range without {
		moving[name] = true
	}
	for _, cl := range c.out.Fleet.Clusters {
		if moving[cl.Shard.ID] {
			apart[cl.Shard.Server] = true
		}
	}
	all := make(map[int]change.Work, len(c.in.Observed.Work))
	for replica, servers := range c.in.Observed.Work {
		var sum change.Work
		for _, server := range slices.Sorted(maps.Keys(servers)) { // in order: sums of fractions depend on it
			if !apart[server] {
				sum = sum.Plus(servers[server])
			}
		}
		all[replica] = sum
	}
	return all
}

// follow notes the waves that began and ended between two plans.
func (c *cycle) follow(before, after *plan.Rollout) {
	m := &c.out.Memory.Changes
	if before != nil && len(before.Was) > 0 && before.Stage == plan.Moving && (after == nil || after.Wave != before.Wave || after.Stage != plan.Moving || len(after.Moves) == 0) {
		m.Watch = m.Watch.After(change.Wave{Began: before.Since, Ended: c.in.Now, Clusters: slices.Sorted(maps.Keys(before.Was)),
			Receivers: slices.Collect(maps.Values(before.Moves)), Orphans: m.Began.Orphans, Work: m.Began.Work, Apart: m.Began.Apart})
	}
	if after != nil && len(after.Was) > 0 && (before == nil || after.Wave != before.Wave) {
		moved := slices.AppendSeq(slices.Clone(m.Watch.Apart), maps.Keys(after.Was))
		m.Began = c.signs(slices.Compact(slices.Sorted(slices.Values(moved))))
		m.Began.Orphans = joined(m.Began.Orphans, c.taken)
	}
}

// evacuation is where the clusters of replicas go that are unwell, or that a person wants empty.
func (c *cycle) evacuation(a *adoption) *proposed {
	var unwell []int
	if c.may(failOver) {
		unwell = c.out.Replicas.Unwell()
	}
	if len(unwell) == 0 && (len(c.out.Cordoned) == 0 || !c.may(drain)) {
		return nil
	}
	e := failover.Evacuate(c.request(a, unwell), c.in.Now)
	for _, n := range e.Notes {
		c.problem(Problem{Phase: PhaseRollout, Subject: cmp.Or(n.Cluster, fmt.Sprintf("replica %d", n.Replica)), Kind: string(n.Kind), Message: n.Message})
	}
	if e.FailedOver == 0 {
		c.out.Memory.Changes.Failover = e.Last
	}
	if len(e.Moves) == 0 {
		return nil
	}
	why := "empties " + replicaList(append(slices.Clone(unwell), c.out.Cordoned...)) + ": moves " + plural(c.servers(maps.Keys(e.Moves), a.next), "cluster")
	c.evacuated = e.Last
	cause := change.Failover
	if e.FailedOver == 0 {
		cause = change.Drain
	}
	if cause == change.Drain && !c.may(drain) {
		return nil
	}
	return &proposed{c.wantOf(a, a.next.Replicas, e.Moves), why, cause}
}

func (c *cycle) request(a *adoption, unwell []int) failover.Request {
	r := failover.Request{View: plan.NewView(a.next.Clone(), a.pins), Unwell: unwell, Shut: c.shut(),
		MaxClusters: c.in.Config.Partition.MaxClustersPerReplica, Budget: c.out.Budget.Left,
		Last: c.in.Memory.Changes.Failover, Servers: a.beside, Fixed: map[string]bool{}, Gone: map[string]bool{}, Loads: map[string]plan.Load{}, Beside: make([]plan.Load, a.next.Replicas)}
	if c.may(drain) {
		r.Cordoned = c.out.Cordoned
	} else {
		r.Shut = append(r.Shut, c.out.Cordoned...)
	}
	r.Capacity = boundsOf(c.in.Config.Partition, c.in.Workload, a).Capacity
	for _, load := range c.out.Loads {
		if c.in.Config.Partition.Capacity == nil {
			r.Capacity = max(r.Capacity, load) // as the partition has it
		}
	}
	optedOut := map[string]bool{} // what has the server of a Secret that nobody may move stays with it
	for _, cl := range c.out.Fleet.Clusters {
		if server := cl.Together(); cl.Unmanaged && server != "" {
			optedOut[server] = true
		}
	}
	for name := range a.next.Clusters {
		r.Gone[name] = !inFleet(c.out.Fleet, name)
	}
	for i, cl := range c.out.Fleet.Clusters {
		name := cl.Shard.ID
		if c.out.Loads != nil {
			r.Loads[name] = c.out.Loads[i]
		}
		if cl.Immutable || cl.Unmanaged || optedOut[cl.Together()] {
			r.Fixed[name] = true
		}
		if _, row := a.next.Clusters[name]; !row && a.owners[i] >= 0 && a.owners[i] < len(r.Beside) && c.out.Loads != nil {
			r.Beside[a.owners[i]] += c.out.Loads[i]
		}
	}
	return r
}

// shut are the replicas that do not work now, unwell or not yet, whatever holds failover back, and those that do not
// say what they own, in mode live, which would not know whether they took a cluster.
func (c *cycle) shut() []int {
	shut := slices.Clone(c.out.Replicas.Down)
	for _, s := range c.out.Replicas.Sick {
		shut = append(shut, s.Replica)
	}
	for _, p := range c.in.Observed.Pods {
		if c.now.unsaid != "" && !p.Answered {
			shut = append(shut, p.Replica)
		}
	}
	return shut
}

func replicaList(replicas []int) string {
	slices.Sort(replicas)
	names := make([]string, 0, len(replicas))
	for _, r := range slices.Compact(replicas) {
		names = append(names, strconv.Itoa(r))
	}
	return "replica " + strings.Join(names, ", ")
}

// pinnedOnce is for how long a pin of a cluster counts for its next ones, too: whoever turns one Secret's pin to and fro must not take
// the budget of all others by it.
const pinnedOnce = 24 * time.Hour

// countAdopted enters what moved without a rollout, by pins, and by what Secrets of one server say.
func (c *cycle) countAdopted(a *adoption) {
	if c.in.InForce != nil && c.in.InForce.Mode.Enforced() && a.next.Mode.Enforced() {
		c.enterPins(clustersOf(a.moved), a.next)
	}
}

// enterPins enters the moves of pins: of clusters that were there for an hour, of which the budget is a share, and each once a day.
func (c *cycle) enterPins(names iter.Seq[string], p plan.Plan) {
	before := maps.Clone(c.out.Memory.Changes.Pinned)
	maps.DeleteFunc(before, func(_ string, at time.Time) bool { return c.in.Now.Sub(at) >= pinnedOnce || c.in.Now.Before(at) })
	var counted []string
	for name := range names {
		if _, known := before[name]; !known && c.out.Memory.Known.Has(name) {
			counted = append(counted, name)
		}
	}
	for _, name := range counted {
		if before == nil {
			before = map[string]time.Time{}
		}
		before[name] = c.in.Now
	}
	if c.out.Memory.Changes.Pinned = before; len(before) == 0 {
		c.out.Memory.Changes.Pinned = nil
	}
	c.enter(change.Pin, c.servers(slices.Values(counted), p))
}
