package cycle

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/counting"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/safety"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// decide advances a rollout that is under way, and otherwise asks the partition and the evaluation whether to begin
// one.
func (c *cycle) decide(g *ground.Ground) {
	s := snapshotOf(c.Out, g)
	s.ungrown = c.ungrown.Why()
	starting{c}.tellRestart(s)
	now := s.situation()
	s.unsaid, s.verdicts = now.Unsaid, gate.Judge(gate.Table(), now, c.Tell)
	c.verdicts = s.verdicts
	starting{c}.awaitTemplate(g, now)
	starting{c}.checkEnforcement(g)
	s.elected, s.worth = candidacy{c.Draft, c.votes}.candidate(s)
	s.candidate, s.line = c.Out.Candidate, c.Out.Line
	switch {
	case g.Next.Rollout == nil:
		starting{c}.begin(s)
	case advancing{c}.goesOn(g.Next):
		advancing{c}.advance(g)
	}
	s.changes = c.Out.Memory.Changes
	c.blockMoves(s)
	ledger.Ledger{Draft: c.Draft}.Forget(g)
}

// glassOpened is why break-glass turns a rollout back that has stopped every replica.
const glassOpened = "enforcement was switched off"

// goesOn reports whether the rollout under way advances: not under break-glass, but for one that may have stopped every
// replica.
func (c advancing) goesOn(p plan.Plan) bool {
	if !c.In.BreakGlass || !p.StopsAll() {
		return !c.In.BreakGlass
	}
	c.turnsBack = glassOpened
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "GlassWaits", Message: "enforcement off waits until the replicas that rollout.x0y stopped are back"})
	return true
}

// checkEnforcement reports a webhook that does not hold the plan; begin then scales nothing, since the first writer to
// come would turn it back.
func (c starting) checkEnforcement(g *ground.Ground) {
	if c.In.Enforcement == nil || *c.In.Enforcement || !g.Next.Mode.Enforced() {
		return
	}
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "EnforcementDown", Message: "the webhook does not hold the plan: " + strings.Join(c.In.Unheld, "; ") +
		"; nothing scales until it does; look at the pods of Deployment ballast-webhook, the endpoints of its Service and the caBundle of MutatingWebhookConfiguration ballast." + c.In.Config.Target.Namespace})
}

// candidacy finds the candidate, and what of it is elected.
type candidacy struct {
	*outcome.Draft
	votes *election
}

// candidate divides the fleet anew and lets the evaluation vote, in every mode: people see what ballast would do long
// before they let it. It answers what was elected.
func (c candidacy) candidate(s *snapshot) (*evaluate.Candidate, worth) {
	if s.loads == nil || c.Out.Table.Frozen {
		return nil, worth{}
	}
	counting.Weigh(c.Draft, s.Ground)
	parts := &dividing{Draft: c.Draft}
	d, err := parts.partitioned(s)
	if err != nil {
		kind := "Refused"
		if rules := new(division.Clash); errors.As(err, &rules) {
			kind = "RulesClash"
		}
		c.Tell(problem.Problem{Phase: problem.PhasePartition, Kind: kind, Message: err.Error(), Keeps: true})
		return nil, worth{}
	}
	show(c.Draft, s, d)
	c.starved(d)
	for _, lost := range d.Answer.Lost {
		if lost.What == partition.FixedReplicas && lost.To == partition.Pin {
			c.replicasHeld(s.Ground, lost.Replica)
		}
	}
	if c.In.Config.Evaluate.CostBenefit != nil {
		c.votes.end()
		return weighing{parts}.weigh(s, d)
	}
	c.Out.Memory.Savings = evaluate.Savings{}
	return c.votes.elect(s, d), worth{}
}

// show has people see what a division is, whether or not it is decided for.
func show(c *outcome.Draft, s *snapshot, d division.Division) {
	can := &outcome.Candidate{Moves: s.Moves(d.Of), Replicas: outcome.ReplicasOf(c.Indexes, d.Answer.Replicas, func(i int) int {
		if to, ok := d.Of[c.Out.Fleet.Clusters[i].Shard.ID]; ok {
			return to
		}
		return s.Owners[i]
	}), Low: d.Low, High: d.High()}
	for _, lost := range d.Answer.Lost {
		can.Lost = append(can.Lost, lost.String())
	}
	can.Memory = fits(s, can.Moves, d)
	c.Out.Candidate = can
}

// replicasHeld tells who keeps more replicas than partition.replicas says: whoever wrote the number hears of it nowhere
// else.
func (c candidacy) replicasHeld(g *ground.Ground, replica int) {
	fixed := c.In.Config.Partition.Replicas
	if fixed == nil || c.In.Workload.Unmanaged {
		return
	}
	for i, cl := range g.Fleet.Clusters {
		if g.Firm(i).At == replica || g.Carries(i) == replica {
			c.Tell(problem.Problem{Phase: problem.PhasePartition, Subject: cl.Shard.ID, Kind: "ReplicasHeld", Message: fmt.Sprintf(
				"partition.replicas is %d, and %d are needed, since %q is on replica %d; %s", fixed.Fixed, replica+1, cl.Shard.ID, replica, g.Lowered(i))})
			return
		}
	}
}

// election is the vote on candidates.
type election struct {
	*outcome.Draft
	ballots evaluate.Vote // the vote as it goes on where what it elects does not begin
}

// elect lets the evaluation vote on the candidate, and answers what it elects. Where nothing may begin the vote goes
// on without an election, so that it need not start anew on the day it may.
func (e *election) elect(s *snapshot, d division.Division) *evaluate.Candidate {
	vote := evaluate.Candidate{Replicas: d.Answer.Replicas, Of: d.Of}
	if e.In.Config.Evaluate.MostWanted == nil {
		e.end()
		election := evaluate.None(vote)
		e.Out.Candidate.Verdict = election.String()
		return &election.Candidate
	}
	if s.Next.Rollout != nil {
		e.Out.Candidate.Verdict = "not voted on while a rollout is under way"
		return nil
	}
	configured := e.In.Config.Evaluate.MostWanted
	o := evaluate.MostWantedOptions{Window: time.Duration(configured.Window), MinSamples: configured.MinSamples,
		Counts: e.Out.Memory.Known.Has}
	if worded(s, d) || overloaded(s, d) || beyondEvidence(s, d, e.Out.Line) || d.Starved > 0 {
		o.Window = min(o.Window, time.Duration(o.MinSamples)*time.Duration(e.In.Config.Interval))
	}
	barred := e.barred(s, d, vote, o)
	if b := e.In.Memory.Votes.Ballots; len(b) > 0 && e.In.Memory.Votes.Basis == d.Basis() {
		// Changes of Secrets and pods run cycles, too; a vote counts time, not changes.
		if since := e.In.Now.Sub(b[len(b)-1].At); since >= 0 && since < time.Duration(e.In.Config.Interval)/2 {
			e.Out.Candidate.Verdict = fmt.Sprintf("%s so far, the last less than half an interval ago", problem.Plural(len(b), "vote"))
			return barred
		}
	}
	if !s.may(gate.Balance) {
		o.MinSamples = math.MaxInt
	}
	election := e.vote(s, d, vote, o)
	switch {
	case election.Elected:
		e.Out.Candidate.Verdict = election.String()
		return &election.Candidate
	case s.may(gate.Balance):
		e.Out.Candidate.Verdict = election.String()
	default:
		e.Out.Candidate.Verdict = fmt.Sprintf("%s so far; nothing begins while %s", problem.Plural(election.Samples, "vote"), s.verdicts[gate.Balance])
	}
	return barred
}

// barred is what this vote would elect where nothing may begin: it waits, and people see it.
func (e *election) barred(s *snapshot, d division.Division, vote evaluate.Candidate, o evaluate.MostWantedOptions) *evaluate.Candidate {
	if s.may(gate.Balance) {
		return nil
	}
	election, _ := evaluate.MostWanted(e.In.Memory.Votes, vote, d.Basis(), e.In.Now, o)
	if !election.Elected || election.Key != evaluate.Key(vote) && !d.Allows(s.Ground, election.Candidate) {
		return nil
	}
	return &election.Candidate
}

// worded reports whether a person's word, an autoscaler's, or size.weights are what is voted on: another number of replicas than the plan's, or
// clusters for a replica of theirs that has none. Nobody waits for a whole window for what he wrote; the votes of a few cycles see to
// it that one measurement does not decide who moves.
func worded(s *snapshot, d division.Division) bool {
	now, p := s.Next.Replicas, s.In.Config.Partition
	if s.Next.FreeReplicas {
		return fills(s, d)
	}
	number := p.Replicas != nil && p.Replicas.Fixed == d.Answer.Replicas || s.Weighed > 0
	outside := now < d.Bounds.MinReplicas || now > d.Bounds.MaxReplicas
	return d.Answer.Replicas != now && (number || outside)
}

// overloaded reports whether a replica carries more than a person said that it may, and the answer mends it.
func overloaded(s *snapshot, d division.Division) bool {
	if d.Bounds.Capacity == 0 {
		return false
	}
	return slices.ContainsFunc(s.now, func(r plan.Replica) bool { return r.TotalLoad > d.Bounds.Capacity && d.Offers[r.ID].Saves > 0 })
}

// beyondEvidence reports whether a replica carries far more than is known to be borne, where nobody said what one may, and the answer
// takes it to where that is so no more: what grows everywhere is no reason for haste.
func beyondEvidence(s *snapshot, d division.Division, line *outcome.Line) bool {
	if line == nil || line.Configured {
		return false
	}
	bearable := func(replica int) bool {
		return replica >= len(d.Answer.Loads) || !memory.Beyond(d.Answer.Loads[replica], line.Load)
	}
	return slices.ContainsFunc(s.now, func(r plan.Replica) bool { return memory.Beyond(r.TotalLoad, line.Load) && bearable(r.ID) })
}

// fills reports whether the answer gives clusters to a replica that has none.
func fills(s *snapshot, d division.Division) bool {
	has := make(map[int]bool, s.Next.Replicas)
	for _, row := range s.Next.Clusters {
		has[row.Replica] = true
	}
	return slices.ContainsFunc(d.Answer.Of, func(replica int) bool { return replica < s.Next.Replicas && !has[replica] })
}

// vote elects the most wanted candidate of those that may still be: what was pinned or came meanwhile counts as it
// stands now.
func (e *election) vote(s *snapshot, d division.Division, vote evaluate.Candidate, o evaluate.MostWantedOptions) evaluate.Election {
	votes := e.In.Memory.Votes
	for {
		election, history := evaluate.MostWanted(votes, vote, d.Basis(), e.In.Now, o)
		if !election.Elected || election.Key == evaluate.Key(vote) || d.Allows(s.Ground, election.Candidate) {
			e.Out.Memory.Votes, e.ballots = history, evaluate.Cast(votes, vote, d.Basis(), e.In.Now, o)
			return election
		}
		votes = votes.Without(election.Key)
	}
}

// end forgets the vote.
func (e *election) end() { e.Out.Memory.Votes, e.ballots = evaluate.Vote{}, evaluate.Vote{} }

// stands keeps the vote of an election that begins nothing, with the ballot of this cycle: else the vote would have a gap
// for as long as what it elected waits, and be short of samples once it may begin.
func (e *election) stands() { e.Out.Memory.Votes = e.ballots }

// starting begins a rollout.
type starting struct{ *cycle }

// begin starts a rollout to what is proposed first. What is refused leaves everything after it free to begin but what was
// elected, which might undo it, or bring it about all the same; a Secret's pin that waits counts for nothing meanwhile, and
// leaves that free, too. A rollback that is done is the last thing that a cycle does: what was elected beforehand must not undo it.
func (c starting) begin(s *snapshot) {
	left := gate.Everything // what may still be proposed
	for _, p := range proposals() {
		if !s.mayAny(p.asks & left) {
			continue
		}
		made := p.made(s)
		if made == nil {
			continue
		}
		c.hear(made)
		if made.done {
			return
		}
		if made.want == nil { // it has something to say, and nothing to begin
			if p.asks == gate.Balance && made.verdict != "" {
				c.votes.stands() // what was elected waits, and its vote with it
			}
			continue
		}
		if c.begins(s, made) {
			return
		}
		left &^= p.asks
		if s.secretsPinWaits(made) == "" {
			left &^= gate.Balance
		}
	}
}

// hear takes in what a proposal says beside what it wants.
func (c starting) hear(p *proposed) {
	c.Out.Problems = append(c.Out.Problems, p.told...)
	if p.verdict != "" {
		c.Out.Candidate.Verdict = p.verdict
	}
	if p.done {
		c.Out.Done = true
	}
	if p.holds {
		c.Out.Memory.HoldOff, c.Out.Memory.Votes = c.In.Now, evaluate.Vote{}
		c.Out.Memory.Savings = c.Out.Memory.Savings.After(c.In.Now)
	}
	if p.last != nil && p.cause != change.Failover {
		c.Out.Memory.Changes.Failover = *p.last
	}
}

// begins starts one rollout; false: it is refused, and people are told why.
func (c starting) begins(s *snapshot, p *proposed) bool {
	c.Out.Memory.Changes.Cause = p.cause
	o := rolloutOptions(s, p.cause)
	moves := servers(s, rollout.Moves(s.Next, plan.Plan{Clusters: p.want.Rows})) // before the budget cuts them
	kind, waits, told := s.waitsFor(p, o)
	c.Out.Problems = append(c.Out.Problems, told...)
	if waits != "" {
		s.paces(p.cause, moves, kind, waits)
		c.waits(p, kind, waits)
		return false
	}
	next, err := rollout.Begin(s.Next, *p.want, o, c.In.Now)
	if err != nil {
		c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "Refused", Message: err.Error(), Keeps: true})
		return false
	}
	if next.SameEnforced(s.Next) {
		return false
	}
	if kind, why := s.refuses(next, o); kind != "" {
		if why != "" {
			c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: kind, Message: why + ": " + p.why})
		}
		c.votes.stands()
		return false
	}
	c.Out.Decided, c.Out.Memory.Changes.Why, c.Out.Memory.Changes.BySecret = true, problem.Text(p.why), p.bySecret
	c.Note(p.why)
	if p.cause == change.Failover {
		c.Out.Memory.Changes.Failover = *p.last
	}
	if p.follows {
		c.Out.Memory.Changes.Ownership.Followed = c.In.Now
	}
	c.Out.Memory.Savings = c.Out.Memory.Savings.Spend(p.worth.spends)
	if restarts(s, p.want, o) {
		c.Out.Memory.Savings.Of = nil
		c.Out.Memory.Changes.Restarted = c.In.Now
		if p.bySecret {
			c.Out.Memory.Changes.Stopped = c.In.Now
		}
	}
	c.Out.Memory.Changes.Target = destination(o.Mode, s.Next, *p.want)
	counting.Scaled(c.Draft, s.Next, next)
	c.watch.Follow(nil, next.Rollout)
	s.Next = next
	return true
}

// waits says what a change waits for that did not begin. The vote goes on, unless what was elected may still begin.
func (c starting) waits(p *proposed, kind, waits string) {
	if kind != "PinWaits" {
		c.votes.stands()
	}
	if p.cause == change.Balance && c.Out.Candidate != nil {
		c.Out.Candidate.Verdict = waits
		return
	}
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Subject: string(p.cause), Kind: kind, Message: p.why + ": " + waits})
}

// advancing goes on with the one under way.
type advancing struct{ *cycle }

// failed remembers a rollout that did not come to its end, and stops ballast where the same one has failed too often.
func (c advancing) failed(r plan.Rollout, why string) {
	m, what := &c.Out.Memory.Changes, change.OnlyMoves
	if m.BySecret { // whoever may write one cluster Secret must not stop ballast for all others
		m.PinFailed = c.In.Now
		return
	}
	if r.From != r.To() {
		what = fmt.Sprintf("%d to %d replicas, %s %d to %d", r.From.Replicas, r.Replicas, plan.EnvReplicas, r.From.ControllerReplicas, r.ControllerReplicas)
	}
	var trip *change.Trip
	if m.Failures, trip = m.Failures.Add(c.In.Now, cmp.Or(m.Cause, change.Balance), what, why); safety.Worse(trip, m.Trip) {
		m.Trip, m.TripTold = trip, false
	}
}

// reason is the decision's for as long as its rollout goes on, and where that does not come about, why, too: people ask why
// a plan is as it is, and the stage stands beside it.
func (c advancing) reason(p rollout.Progress) string {
	why := c.Out.Memory.Changes.Why
	switch {
	case why == "": // nobody remembers
		return p.Why
	case p.Outcome == rollout.Advanced, p.Outcome == rollout.Waiting, p.Outcome == rollout.Finished:
		return why
	}
	return p.Why + "; this was under way: " + why
}

func (c advancing) advance(g *ground.Ground) {
	view, s := plan.NewView(g.Next.Clone(), g.Pins), snapshotOf(c.Out, g)
	s.turnsBack = c.turnsBack
	next, progress := rollout.Advance(view, s.seen(), c.In.Memory.Changes.Target, rolloutOptions(s, s.changes.Cause), c.In.Now)
	c.Out.Progress = progress
	switch progress.Outcome {
	case rollout.TurnedBack, rollout.Reverted, rollout.GaveUp:
		c.Out.Memory.HoldOff = c.In.Now
		m := &c.Out.Memory.Changes
		m.Recalled = m.Recalled || s.turnsBack != ""
		if next.Rollout == nil && !m.Recalled {
			c.failed(*g.Next.Rollout, progress.Why)
		}
	}
	ledger.Ledger{Draft: c.Draft}.NoteMoved(*g.Next.Rollout)
	if !next.SameEnforced(g.Next) {
		c.Note(c.reason(progress))
		c.watch.Follow(g.Next.Rollout, next.Rollout)
	}
	g.Next = next
}
