// Package ledger counts moves by their cause, remembers what moved, and says what the move budget has room for.
package ledger

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/failover/health"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// Ledger counts the moves, by cause, and remembers what moved.
type Ledger struct{ *outcome.Draft }

// Count enters the moves of the stage in force into the ledger, once: what was written counts, whoever wrote it. What
// was decided and lost the race does not: its memory is dropped.
func (l Ledger) Count(beside *placement.Servers) {
	m := &l.Out.Memory.Changes
	cooldown := change.Rate{Period: time.Duration(l.In.Config.Change.Moves.Cooldown)} // which asks for the last move
	m.Ledger = m.Ledger.Kept(l.In.Now, append(RatesOf(l.In), cooldown))
	m.Unserved = m.Unserved.Kept(l.In.Now, RatesOf(l.In))
	if p := l.In.InForce; p != nil {
		l.enterAsked(change.Healing, slices.Values(l.In.Repaired), *p, beside)
		l.CountStage(*p, beside)
	}
	if p := l.In.InForce; p != nil && p.Rollout == nil {
		m.Cause, m.Target = "", nil
	}
	l.Out.Budget = change.Look(m.Ledger, RatesOf(l.In),
		fleetSize(l.Out.Fleet, l.Out.Memory.Known, beside, l.In.InForce), l.In.Now)
}

// CountStage enters the moves that a stage begins with.
func (l Ledger) CountStage(p plan.Plan, beside *placement.Servers) {
	m, r := &l.Out.Memory.Changes, p.Rollout
	if r == nil || r.Since.Equal(m.Counted) {
		return
	}
	if m.Counted = r.Since; m.Cause == change.Pin {
		l.enterAsked(change.Pin, maps.Keys(MovedBy(*r)), p, beside)
		return
	}
	if m.Cause == change.Failover {
		l.noteFailed(maps.Keys(MovedBy(*r)), r.Stage == plan.Reverting)
		served, rest := l.served(MovedBy(*r), p)
		l.enter(m.Cause, ServersOf(beside, slices.Values(served), p))
		m.Unserved = m.Unserved.Add(l.In.Now, m.Cause, ServersOf(beside, slices.Values(rest), p))
		return
	}
	l.enter(cmp.Or(m.Cause, change.Balance), ServersOf(beside, maps.Keys(MovedBy(*r)), p))
}

// served are those that are known and have Applications, as far as anybody knows: who may create Secrets must not spend
// with those of no use what a rollback or a drain needs. The rest is not known yet, and may have Applications: it
// counts among failovers alone, or it would be moved by any number. What has no Application, or is not known and has no
// load yet, carries nothing, and counts nowhere.
func (l Ledger) served(moved map[string]int, p plan.Plan) (served, rest []string) {
	for name := range moved {
		switch {
		case l.Out.Memory.Changes.Ownership.Idle(l.In.Observed.Reported, name):
		case l.Out.Memory.Known.Has(name):
			served = append(served, name)
		case l.Out.Loads != nil && plan.LoadOf(p.Clusters[name].Load) <= 0:
		default:
			rest = append(rest, name)
		}
	}
	return served, rest
}

// FailedOnce is for how long a failover counts against the clusters that it moved.
const FailedOnce = 24 * time.Hour

// noteFailed remembers what a failover moves, as long as that counts. Whoever is moved a second time may be what
// replicas die of.
func (l Ledger) noteFailed(names iter.Seq[string], back bool) {
	m := &l.Out.Memory.Changes
	failed, suspect := l.lately(m.Failed), l.lately(m.Suspect)
	for name := range names {
		_, before := failed[name]
		_, known := suspect[name]
		if failed[name] = l.In.Now; known || before && !back {
			suspect[name] = l.In.Now
		}
	}
	m.Failed, m.Suspect = failed, suspect
}

// lately is what counts yet.
func (l Ledger) lately(times map[string]time.Time) map[string]time.Time {
	kept := map[string]time.Time{}
	for name, at := range times {
		if since := l.In.Now.Sub(at); since >= 0 && since < FailedOnce {
			kept[name] = at
		}
	}
	return kept
}

// diesOf is how soon after a failover a replica falls ill that may do so of what it received.
const diesOf = time.Hour

// Suspect remembers the clusters whose replica fell ill soon after a failover gave them to it. While Secrets are being
// assigned the rows say where they were before.
func (l Ledger) Suspect(sick []health.Sick, next plan.Plan) {
	m := &l.Out.Memory.Changes
	if len(sick) == 0 || next.Rollout != nil && next.Rollout.Stage == plan.Assigning {
		return
	}
	since := map[int]time.Time{}
	for _, s := range sick {
		since[s.Replica] = s.Since
	}
	suspect := l.lately(m.Suspect)
	for name, at := range m.Failed {
		ill, is := since[next.Clusters[name].Replica]
		if soon := ill.Sub(at); is && soon >= 0 && soon < diesOf {
			suspect[name] = at
		}
	}
	if len(suspect) > 0 {
		m.Suspect = suspect
	}
}

// enter adds moves to the ledger.
func (l Ledger) enter(cause change.Cause, moves int) {
	if moves == 0 {
		return
	}
	m := &l.Out.Memory.Changes
	m.Ledger = m.Ledger.Add(l.In.Now, cause, moves)
	if l.Out.Counted == nil {
		l.Out.Counted = map[change.Cause]int{}
	}
	l.Out.Counted[cause] += moves
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

// askedOnce is for how long a move that somebody's write of a cluster made counts for its next ones, too: whoever turns
// one Secret's pin or shard to and fro must not take the budget of all others by it.
const askedOnce = 24 * time.Hour

// CountAdopted enters what moved without a rollout, by pins, and by what Secrets of one server say; a row that went to the
// replica that has its cluster moved nothing.
func (l Ledger) CountAdopted(a *adopt.Adoption) {
	if l.In.InForce != nil && l.In.InForce.Mode.Enforced() && a.Next.Mode.Enforced() {
		l.enterAsked(change.Pin, outcome.ClustersOf(a.Moved), a.Next, a.Beside)
	}
}

// enterAsked enters the moves that writes of clusters made, by pins or by shards that repairs put back: of those that
// were there for an hour, of which the budget is a share, and of each once a day.
func (l Ledger) enterAsked(cause change.Cause, names iter.Seq[string], p plan.Plan, beside *placement.Servers) {
	before := maps.Clone(l.Out.Memory.Changes.Pinned)
	maps.DeleteFunc(before, func(_ string, at time.Time) bool { return l.In.Now.Sub(at) >= askedOnce || l.In.Now.Before(at) })
	var counted []string
	for name := range names {
		if _, known := before[name]; !known && l.Out.Memory.Known.Has(name) {
			counted = append(counted, name)
		}
	}
	for _, name := range counted {
		if before == nil {
			before = map[string]time.Time{}
		}
		before[name] = l.In.Now
	}
	if l.Out.Memory.Changes.Pinned = before; len(before) == 0 {
		l.Out.Memory.Changes.Pinned = nil
	}
	l.enter(cause, ServersOf(beside, slices.Values(counted), p))
}

// RatesOf are the rates of the move budget.
func RatesOf(in input.Inputs) []change.Rate {
	rates := make([]change.Rate, len(in.Config.Change.Moves.Rate))
	for i, r := range in.Config.Change.Moves.Rate {
		rates[i] = change.Rate{Percent: r.Percent, Period: time.Duration(r.Period)}
	}
	return rates
}

// fleetSize is how many servers the move budget is a share of: those that ballast moves, and that were there for an
// hour. Who may create Secrets must not lift the budget by it, nor by one of another's server that nobody may write.
// What is gone is known while a discovery is refused, and counts by its rows.
func fleetSize(fleet discover.Fleet, known discover.Known, beside *placement.Servers, p *plan.Plan) int {
	counts, isKnown := make([]bool, len(fleet.Clusters)), known.HasInOrder()
	for i := range fleet.Clusters {
		cl := &fleet.Clusters[i]
		moved := standing.Managed(*cl) && !cl.Alone
		counts[i] = moved && isKnown(cl.Shard.ID)
	}
	gone := unseenRows(fleet, known, p)
	if len(gone) == 0 { // as nearly always
		return unitsWith(fleet, counts)
	}
	names := slices.Collect(maps.Keys(gone))
	for i, c := range counts {
		if c {
			names = append(names, fleet.Clusters[i].Shard.ID)
		}
	}
	return beside.Count(slices.Values(names), func(name string) string { return gone[name].Server })
}

// unitsWith is how many servers have one of those clusters.
func unitsWith(fleet discover.Fleet, those []bool) (n int) {
	for _, u := range fleet.Units {
		if slices.ContainsFunc(u.Clusters, func(i int) bool { return those[i] }) {
			n++
		}
	}
	return n
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

// ServersOf is how many moves those clusters' are: one for each server, which Argo CD reconciles once, whatever number
// of Secrets it has. Who makes dozens of another's must not make that one too large for the budget.
func ServersOf(beside *placement.Servers, names iter.Seq[string], p plan.Plan) int {
	return beside.Count(names, func(name string) string { return p.Clusters[name].Server })
}

// JustMoved is how long what is measured of a cluster that moved is less than it makes: two of the ten minutes that the
// default rates look back.
const JustMoved = 20 * time.Minute

// NoteMoved remembers, whatever the mode, which clusters a rollout under way has moved.
func (l Ledger) NoteMoved(r plan.Rollout) {
	l.forgetMoved()
	m := &l.Out.Memory.Changes
	moved := maps.Clone(m.Moved)
	for name := range MovedBy(r) {
		if moved == nil {
			moved = map[string]time.Time{}
		}
		moved[name] = l.In.Now
	}
	m.Moved = moved
}

// forgetMoved drops those that did not move lately.
func (l Ledger) forgetMoved() {
	m := &l.Out.Memory.Changes
	m.Moved = maps.Clone(m.Moved)
	maps.DeleteFunc(m.Moved, func(_ string, at time.Time) bool { return l.In.Now.Sub(at) >= JustMoved })
}

// Forget drops what was remembered of a rollout that is none: the next one must not take it for its own.
func (l Ledger) Forget(g *ground.Ground) {
	if g.Next.Rollout == nil {
		l.forgetMoved()
		m := &l.Out.Memory.Changes
		m.Cause, m.Why, m.Target, m.BySecret, m.Recalled = "", "", nil, false, false
	}
}

// Soonest is when the last of so many moves can be made if each is made as soon as the budget has room; ok is false
// where one never can.
func Soonest(l change.Ledger, rates []change.Rate, clusters, moves int, now time.Time) (at time.Time, ok bool) {
	for at = now; moves > 0; {
		if at, ok = change.When(l, rates, clusters, at, 1); !ok {
			return time.Time{}, false
		}
		made := max(min(change.Left(l, rates, clusters, at), moves), 1)
		l, moves = l.Add(at, change.Balance, made), moves-made
	}
	return at, true
}
