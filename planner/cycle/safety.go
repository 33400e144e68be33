package cycle

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover"
	"ballast/planner/ownership"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// look takes in what the pods say: who has each cluster, which replicas are unwell, whether a wave did harm.
func (c *cycle) look(a *adoption) {
	c.count(a.beside)
	c.judgeOwners(a)
	c.judgeReplicas(a)
	c.judgeWaves(a)
	for _, n := range c.in.Neighbours {
		c.problem(problem.Problem{Phase: problem.PhaseRollout, Subject: n.Subject, Kind: string(n.Kind), Message: n.Message})
	}
	for _, f := range c.in.Installation {
		c.problem(problem.Problem{Phase: problem.PhaseRollout, Subject: f.Subject, Kind: string(f.Kind), Message: f.Message})
	}
	if n := c.in.Observed.Reported.ByName(); n >= manyByName {
		c.problem(problem.Problem{Phase: problem.PhaseOwnership, Kind: "DestServerEmpty", Message: fmt.Sprintf("%d Applications have an empty dest_server in the metrics of their owners, as Argo CD 3.0.0 to 3.0.5 shows those "+
			"that name their cluster: their clusters seem to have no load and no owner; upgrade Argo CD to 3.0.6 or later", n)})
	}
	for _, trouble := range c.in.Observed.Trouble {
		c.problem(problem.Problem{Phase: problem.PhaseOwnership, Kind: "PodsUnseen", Message: trouble})
	}
}

// manyByName is more than the pods' pages, read one after the other, differ by in Applications that come and go.
const manyByName = 5

func ratesOf(in input.Inputs) []change.Rate {
	rates := make([]change.Rate, len(in.Config.Change.Moves.Rate))
	for i, r := range in.Config.Change.Moves.Rate {
		rates[i] = change.Rate{Percent: r.Percent, Period: time.Duration(r.Period)}
	}
	return rates
}

// fleetSize is how many servers the move budget is a share of: those that ballast moves, and that were there for an hour.
// Who may create Secrets must not lift the budget by it. What is gone is known while a discovery is refused, and counts
// by its rows.
func fleetSize(fleet discover.Fleet, known discover.Known, beside *placement.Servers, p *plan.Plan) int {
	gone := unseenRows(fleet, known, p)
	names := func(yield func(string) bool) {
		for _, cl := range fleet.Clusters {
			if standing.Managed(cl) && known.Has(cl.Shard.ID) && !yield(cl.Shard.ID) {
				return
			}
		}
		for name := range gone {
			if !yield(name) {
				return
			}
		}
	}
	return beside.Count(names, func(name string) string { return gone[name].Server })
}

// unseenRows are the rows of known clusters that are gone, while that is not believed.
func unseenRows(fleet discover.Fleet, known discover.Known, p *plan.Plan) map[string]plan.Row {
	if known.ShrunkFirst.IsZero() || p == nil {
		return nil
	}
	rows := map[string]plan.Row{}
	for _, name := range known.Clusters {
		if row, planned := p.Clusters[name]; planned && !standing.Has(fleet, name) {
			rows[name] = row
		}
	}
	return rows
}

// serversOf is how many moves those clusters' are: one for each server, which Argo CD reconciles once, whatever number
// of Secrets it has. Who makes dozens of another's must not make that one too large for the budget.
func serversOf(beside *placement.Servers, names iter.Seq[string], p plan.Plan) int {
	return beside.Count(names, func(name string) string { return p.Clusters[name].Server })
}

// count enters the moves of the stage in force into the ledger, once: what was written counts, whoever wrote it. What
// was decided and lost the race does not: its memory is dropped.
func (c *cycle) count(beside *placement.Servers) {
	m := &c.out.Memory.Changes
	m.Ledger = m.Ledger.Kept(c.in.Now, ratesOf(c.in))
	if p := c.in.InForce; p != nil {
		c.enterAsked(change.Healing, slices.Values(c.in.Healed), *p, beside)
		c.countStage(*p, beside)
	}
	if p := c.in.InForce; p != nil && p.Rollout == nil {
		m.Cause, m.Target = "", nil
	}
	c.out.Budget = change.Look(m.Ledger, ratesOf(c.in), fleetSize(c.out.Fleet, c.out.Memory.Known, beside, c.in.InForce), c.in.Now)
}

// countStage enters the moves that a stage begins with.
func (c *cycle) countStage(p plan.Plan, beside *placement.Servers) {
	m, r := &c.out.Memory.Changes, p.Rollout
	if r == nil || r.Since.Equal(m.Counted) {
		return
	}
	if m.Counted = r.Since; m.Cause == change.Pin {
		c.enterAsked(change.Pin, maps.Keys(MovedBy(*r)), p, beside)
		return
	}
	if m.Cause == change.Failover {
		c.noteFailed(maps.Keys(MovedBy(*r)))
	}
	c.enter(cmp.Or(m.Cause, change.Balance), serversOf(beside, maps.Keys(MovedBy(*r)), p))
}

// failedOnce is for how long a cluster that a failover moved waits for the budget before another one moves it.
const failedOnce = 24 * time.Hour

// noteFailed remembers what a failover moves, as long as that counts.
func (c *cycle) noteFailed(names iter.Seq[string]) {
	failed := map[string]time.Time{}
	for name, at := range c.out.Memory.Changes.Failed {
		if since := c.in.Now.Sub(at); since >= 0 && since < failedOnce {
			failed[name] = at
		}
	}
	for name := range names {
		failed[name] = c.in.Now
	}
	c.out.Memory.Changes.Failed = failed
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
	if len(c.in.Observed.Reported.Pods) == 0 {
		return // nothing was seen, and nothing is forgotten
	}
	v := plan.NewView(a.next.Clone(), a.pins)
	intended := func(name string) (int, bool) {
		replica, _, ok := v.Effective(name)
		return replica, ok
	}
	before := c.in.Memory.Changes.Ownership
	now, verdict := ownership.Judge(before, c.in.Observed.Reported, intended, c.in.Now, ownership.Grace{})
	if a.partial {
		a.keepUnseen(now, before)
	}
	c.out.Memory.Changes.Ownership, c.out.Verdict = now, verdict
	for _, o := range c.out.Verdict.Orphans {
		c.problem(problem.Problem{Phase: problem.PhaseOwnership, Subject: o.Cluster, Kind: "Orphaned", Message: o.Message()})
	}
	for _, d := range c.out.Verdict.Doubled {
		c.problem(problem.Problem{Phase: problem.PhaseOwnership, Subject: d.Cluster, Kind: "Doubled", Message: d.Message()})
	}
}

func (c *cycle) judgeReplicas(a *adoption) {
	cordons, err := plan.ParseCordons(c.in.Cordon)
	if err != nil {
		c.problem(problem.Problem{Phase: problem.PhaseRollout, Subject: plan.AnnotationCordon, Kind: "CordonRefused", Message: err.Error()})
	}
	c.out.Cordoned = plan.Cordoned(cordons, c.in.Now)
	f := c.in.Config.Failover
	if f == nil || a.next.FreeReplicas && c.in.Workload.Replicas == 0 {
		return
	}
	seen := failover.Fleet{Known: c.in.Observed.Known, Replicas: standingReplicas(a.next), Dynamic: c.in.Observed.Dynamic, Pods: c.in.Observed.Pods, Rolling: rolling(c.in, a.next)}
	c.out.Replicas, c.out.Memory.Changes.Replicas = failover.Judge(seen,
		failover.Options{After: time.Duration(f.After), Settle: time.Duration(f.Settle), Interval: time.Duration(c.in.Config.Interval)}, c.in.Now, c.in.Memory.Changes.Replicas)
	for _, s := range c.out.Replicas.Sick {
		c.problem(problem.Problem{Phase: problem.PhaseOwnership, Subject: s.Pod, Kind: "Unwell", Message: s.String()})
	}
	if v := c.out.Replicas; len(v.Stuck) > 0 {
		c.problem(problem.Problem{Phase: problem.PhaseOwnership, Kind: "WorkloadRollsOut", Message: fmt.Sprintf(
			"%s %q rolls out since %s, and of its replicas %v do not work: none is judged meanwhile, and nothing fails over; "+
				"mend the rollout (kubectl rollout status, kubectl rollout undo), or empty them with `ballast evacuate %d`",
			c.in.Workload.Kind, c.in.Workload.Name, v.Rolling.UTC().Format(time.RFC3339), v.Stuck, v.Stuck[0])})
	}
}

// onlyGrows reports whether a rollout adds pods and replaces none.
func onlyGrows(r *plan.Rollout) bool {
	if r == nil || r.Mode != plan.ModeLive || r.Stage != plan.Scaling {
		return false
	}
	restarts := r.ControllerReplicas != r.From.ControllerReplicas
	return r.Replicas > r.From.Replicas && !restarts
}

// standingReplicas are those that a failover looks at: not the pods that come.
func standingReplicas(p plan.Plan) int {
	if onlyGrows(p.Rollout) {
		return p.Rollout.From.Replicas
	}
	return p.Replicas
}

// rolling reports whether the workload's pods are being replaced, by whomever.
func rolling(in input.Inputs, p plan.Plan) bool {
	w := in.Workload
	if w.ObservedGeneration < w.Generation || w.UpdatedReplicas < min(w.Replicas, w.CurrentReplicas) {
		return true
	}
	if p.Rollout == nil || onlyGrows(p.Rollout) {
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
		if m.TripTold = m.TripTold || c.in.Tripped == m.Trip.Why; m.TripTold && c.in.Tripped == "" {
			m.Trip, m.TripTold, m.Watch, m.Failures = nil, false, change.Watch{}, nil
		}
	}
	var signs change.Signs
	if !m.Watch.Ended.IsZero() { // adding up the fleet's work is for what is watched
		signs = c.signs(m.Watch.Apart)
	}
	trip, watch := change.Judge(m.Watch, c.in.Now, signs)
	m.Watch = watch
	if worse(trip, m.Trip) {
		m.Trip, m.TripTold = trip, false
	}
	if why := cmp.Or(tripWhy(m.Trip), c.in.Tripped); why != "" {
		stopped := "nothing moves and nothing scales any more: "
		if !stopsFor(change.Failover, c.in, *m) {
			stopped = "nothing moves and nothing scales any more, but off replicas that are unwell: "
		}
		c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: "Tripped", Message: stopped + why +
			"; see what happened, then run `ballast resume` (or take the annotation " + plan.AnnotationTripped + " from the plan ConfigMap)"})
	}
}

// worse reports whether a trip takes the place of the one that stands: one for memory stops failovers, too.
func worse(trip, stands *change.Trip) bool {
	if trip == nil || stands == nil {
		return trip != nil
	}
	return trip.Reason == change.OOMKilled && stands.Reason != change.OOMKilled
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
		if c.in.Observed.Known && o.Intended != ownership.NoReplica && !received[o.Intended] && !works(c.in.Observed.Pods, o.Intended) {
			c.expectedOrphans = append(c.expectedOrphans, o.Cluster)
		}
	}
	for name, row := range a.next.Clusters {
		if a.next.FreeReplicas && row.Replica >= c.in.Workload.Replicas {
			c.expectedOrphans = append(c.expectedOrphans, name)
		}
	}
	if len(c.expectedOrphans) > 0 {
		m.Watch.Orphans, m.Began.Orphans = joined(m.Watch.Orphans, c.expectedOrphans), joined(m.Began.Orphans, c.expectedOrphans)
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
	s.Orphans = bereft(c.out.Fleet, c.out.Verdict, excused(c.out.Fleet, c.out.Verdict, c.out.Memory.Known, c.in.Now))
	for _, p := range c.in.Observed.Pods {
		if p.OOMKilled {
			s.Kills = append(s.Kills, change.Kill{Pod: p.Name, Replica: p.Replica, At: p.KilledAt})
		}
	}
	return s
}

func (c *cycle) work(without []string) map[change.Portion]change.Work {
	moving, apart := map[string]bool{}, map[string]bool{}
	for _, name := range without {
		moving[name] = true
	}
	for _, cl := range c.out.Fleet.Clusters {
		if moving[cl.Shard.ID] {
			apart[cl.Shard.Server] = true
		}
	}
	unseen := c.unseenServers(without)
	all := make(map[change.Portion]change.Work, len(c.in.Observed.Work))
	for replica, servers := range c.in.Observed.Work {
		for _, server := range slices.Sorted(maps.Keys(servers)) { // in order: sums of fractions depend on it
			if !apart[server] && !unseen(server) {
				portion := change.PortionOf(replica, server)
				all[portion] = all[portion].Plus(servers[server])
			}
		}
	}
	return all
}

// unseenServers tells which servers are those of clusters whose Secret is not seen, by their rows.
func (c *cycle) unseenServers(names []string) func(server string) bool {
	hashes := map[string]bool{}
	for _, name := range names {
		if c.in.InForce != nil && !standing.Has(c.out.Fleet, name) {
			hashes[c.in.InForce.Clusters[name].Server] = true
		}
	}
	return func(server string) bool { return len(hashes) > 0 && hashes[plan.ServerHash(server)] }
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
		m.Began.Orphans = joined(m.Began.Orphans, c.expectedOrphans)
	}
}

// askedOnce is for how long a move that somebody's write of a cluster made counts for its next ones, too: whoever turns
// one Secret's pin or shard to and fro must not take the budget of all others by it.
const askedOnce = 24 * time.Hour

// countAdopted enters what moved without a rollout, by pins, and by what Secrets of one server say.
func (c *cycle) countAdopted(a *adoption) {
	if c.in.InForce != nil && c.in.InForce.Mode.Enforced() && a.next.Mode.Enforced() {
		c.enterAsked(change.Pin, clustersOf(a.moved), a.next, a.beside)
	}
}

// enterAsked enters the moves that writes of clusters made, by pins or by shards that repairs put back: of those that were
// there for an hour, of which the budget is a share, and of each once a day.
func (c *cycle) enterAsked(cause change.Cause, names iter.Seq[string], p plan.Plan, beside *placement.Servers) {
	before := maps.Clone(c.out.Memory.Changes.Pinned)
	maps.DeleteFunc(before, func(_ string, at time.Time) bool { return c.in.Now.Sub(at) >= askedOnce || c.in.Now.Before(at) })
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
	c.enter(cause, serversOf(beside, slices.Values(counted), p))
}
