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
	"ballast/planner/cycle/problem"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// standing is the replica that holds a cluster under the plan: its row, or where it stands without one.
func (a *adoption) standing(i int) int {
	if row, ok := a.next.Clusters[a.fleet.Clusters[i].Shard.ID]; ok {
		return row.Replica
	}
	return a.owners[i]
}

// decide advances a rollout that is under way, and otherwise asks the partition and the evaluation whether to begin
// one.
func (c *cycle) decide(a *adoption) {
	s := snapshotOf(c.out, a)
	c.tellRestart(s)
	now := s.situation()
	s.unsaid, s.verdicts = now.unsaid, judge(gates(), now, c.problem)
	c.verdicts = s.verdicts
	c.checkEnforcement(a)
	s.elected, s.worth = c.candidate(s)
	s.candidate = c.out.Candidate
	switch {
	case a.next.Rollout == nil:
		c.begin(s)
	case c.goesOn(a.next):
		c.advance(a)
	}
	c.forget(a)
}

// glassOpened is why break-glass turns a rollout back that has stopped every replica.
const glassOpened = "enforcement was switched off"

// goesOn reports whether the rollout under way advances: not under break-glass, but for one that may have stopped every
// replica.
func (c *cycle) goesOn(p plan.Plan) bool {
	if !c.in.BreakGlass || !p.StopsAll() {
		return !c.in.BreakGlass
	}
	c.turnsBack = glassOpened
	c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: "GlassWaits", Message: "enforcement off waits until the replicas that rollout.x0y stopped are back"})
	return true
}

// forget drops what was remembered of a rollout that is none: the next one must not take it for its own.
func (c *cycle) forget(a *adoption) {
	if a.next.Rollout == nil {
		c.forgetMoved()
		m := &c.out.Memory.Changes
		m.Cause, m.Why, m.Target, m.BySecret, m.Recalled = "", "", nil, false, false
	}
}

// checkEnforcement reports a webhook that does not hold the plan; begin then scales nothing, since the first writer to
// come would turn it back.
func (c *cycle) checkEnforcement(a *adoption) {
	if c.in.Enforcement == nil || *c.in.Enforcement || !a.next.Mode.Enforced() {
		return
	}
	c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: "EnforcementDown", Message: "the webhook does not hold the plan: " + strings.Join(c.in.Unheld, "; ") +
		"; nothing scales until it does; look at the pods of Deployment ballast-webhook, the endpoints of its Service and the caBundle of MutatingWebhookConfiguration ballast." + c.in.Config.Target.Namespace})
}

// candidate divides the fleet anew and lets the evaluation vote, in every mode: people see what ballast would do long
// before they let it. It answers what was elected.
func (c *cycle) candidate(s *snapshot) (*evaluate.Candidate, worth) {
	if s.loads == nil || c.out.Table.Frozen {
		return nil, worth{}
	}
	c.weighEvidence(s)
	d, err := c.partitioned(s)
	if err != nil {
		kind := "Refused"
		if rules := new(clash); errors.As(err, &rules) {
			kind = "RulesClash"
		}
		c.problem(problem.Problem{Phase: problem.PhasePartition, Kind: kind, Message: err.Error(), Keeps: true})
		return nil, worth{}
	}
	c.show(s, d)
	c.starved(d)
	for _, lost := range d.answer.Lost {
		if lost.What == partition.FixedReplicas && lost.To == partition.Pin {
			c.replicasHeld(s.adoption, lost.Replica)
		}
	}
	if c.in.Config.Evaluate.CostBenefit != nil {
		c.votesEnd()
		return c.weigh(s, d)
	}
	c.out.Memory.Savings = evaluate.Savings{}
	return c.elect(s, d), worth{}
}

// show has people see what a division is, whether or not it is decided for.
func (c *cycle) show(s *snapshot, d division) {
	can := &Candidate{Moves: s.moves(d.of), Replicas: replicasOf(c.indexes, d.answer.Replicas, func(i int) int {
		if to, ok := d.of[c.out.Fleet.Clusters[i].Shard.ID]; ok {
			return to
		}
		return s.owners[i]
	}), Low: d.low}
	for _, lost := range d.answer.Lost {
		can.Lost = append(can.Lost, lost.String())
	}
	can.Memory = s.fits(can.Moves, d)
	c.out.Candidate = can
}

// replicasHeld tells who keeps more replicas than partition.replicas says: whoever wrote the number hears of it nowhere
// else.
func (c *cycle) replicasHeld(a *adoption, replica int) {
	fixed := c.in.Config.Partition.Replicas
	if fixed == nil || c.in.Workload.Unmanaged {
		return
	}
	for i, cl := range a.fleet.Clusters {
		if a.firm(i).At == replica || a.carries(i) == replica {
			c.problem(problem.Problem{Phase: problem.PhasePartition, Subject: cl.Shard.ID, Kind: "ReplicasHeld", Message: fmt.Sprintf(
				"partition.replicas is %d, and %d are needed, since %q is on replica %d; %s", fixed.Fixed, replica+1, cl.Shard.ID, replica, a.lowered(i))})
			return
		}
	}
}

// lowered is what people can do for a cluster that cannot leave its replica.
func (a *adoption) lowered(i int) string {
	cl := a.fleet.Clusters[i]
	switch {
	case a.firm(i).Claim == placement.Pinned && a.carries(i) < a.firm(i).At:
		return "it is pinned there: pin it lower, or take the pin away"
	case cl.FixedAt != nil:
		return "it has no Secret, and Argo CD puts it there: give it a Secret"
	case cl.Unmanaged:
		return "its Secret opted out of ballast: write a lower data.shard there, or take the annotation " + plan.AnnotationUnmanaged + " away"
	}
	return "its Secret cannot be written: make it anew with a lower data.shard"
}

// elect lets the evaluation vote on the candidate, and answers what it elects. Where nothing may begin the vote goes
// on without an election, so that it need not start anew on the day it may.
func (c *cycle) elect(s *snapshot, d division) *evaluate.Candidate {
	vote := evaluate.Candidate{Replicas: d.answer.Replicas, Of: d.of}
	if c.in.Config.Evaluate.MostWanted == nil {
		c.votesEnd()
		election := evaluate.None(vote)
		c.out.Candidate.Verdict = election.String()
		return &election.Candidate
	}
	if s.next.Rollout != nil {
		c.out.Candidate.Verdict = "not voted on while a rollout is under way"
		return nil
	}
	configured := c.in.Config.Evaluate.MostWanted
	if b := c.in.Memory.Votes.Ballots; len(b) > 0 && c.in.Memory.Votes.Basis == d.basis() {
		// Changes of Secrets and pods run cycles, too; a vote counts time, not changes.
		if since := c.in.Now.Sub(b[len(b)-1].At); since >= 0 && since < time.Duration(c.in.Config.Interval)/2 {
			c.out.Candidate.Verdict = fmt.Sprintf("%s so far, the last less than half an interval ago", problem.Plural(len(b), "vote"))
			return nil
		}
	}
	o := evaluate.MostWantedOptions{Window: time.Duration(configured.Window), MinSamples: configured.MinSamples,
		Counts: c.out.Memory.Known.Has}
	if s.worded(d) || s.overloaded(d) || d.starved > 0 {
		o.Window = min(o.Window, time.Duration(o.MinSamples)*time.Duration(c.in.Config.Interval))
	}
	if !s.may(balance) {
		o.MinSamples = math.MaxInt
	}
	election := c.vote(s, d, vote, o)
	switch {
	case election.Elected:
		c.out.Candidate.Verdict = election.String()
		return &election.Candidate
	case s.may(balance):
		c.out.Candidate.Verdict = election.String()
	default:
		c.out.Candidate.Verdict = fmt.Sprintf("%s so far; nothing begins while %s", problem.Plural(election.Samples, "vote"), s.verdicts[balance])
	}
	return nil
}

// worded reports whether a person's word, or an autoscaler's, is what is voted on: another number of replicas than the plan's, or
// clusters for a replica of theirs that has none. Nobody waits for a whole window for what he wrote; the votes of a few cycles see to
// it that one measurement does not decide who moves.
func (s *snapshot) worded(d division) bool {
	now, p := s.next.Replicas, s.in.Config.Partition
	if s.next.FreeReplicas {
		return s.fills(d)
	}
	number := p.Replicas != nil && p.Replicas.Fixed == d.answer.Replicas
	outside := now < d.bounds.MinReplicas || now > d.bounds.MaxReplicas
	return d.answer.Replicas != now && (number || outside)
}

// overloaded reports whether a replica carries more than a person said that it may, and the answer mends it.
func (s *snapshot) overloaded(d division) bool {
	if d.bounds.Capacity == 0 {
		return false
	}
	return slices.ContainsFunc(s.now, func(r plan.Replica) bool { return r.TotalLoad > d.bounds.Capacity && d.offers[r.ID].Saves > 0 })
}

// fills reports whether the answer gives clusters to a replica that has none.
func (s *snapshot) fills(d division) bool {
	has := make(map[int]bool, s.next.Replicas)
	for _, row := range s.next.Clusters {
		has[row.Replica] = true
	}
	return slices.ContainsFunc(d.answer.Of, func(replica int) bool { return replica < s.next.Replicas && !has[replica] })
}

// vote elects the most wanted candidate of those that may still be: what was pinned or came meanwhile counts as it
// stands now.
func (c *cycle) vote(s *snapshot, d division, vote evaluate.Candidate, o evaluate.MostWantedOptions) evaluate.Election {
	votes := c.in.Memory.Votes
	for {
		election, history := evaluate.MostWanted(votes, vote, d.basis(), c.in.Now, o)
		if !election.Elected || election.Key == evaluate.Key(vote) || d.allows(s.adoption, election.Candidate) {
			c.out.Memory.Votes, c.ballots = history, evaluate.Cast(votes, vote, d.basis(), c.in.Now, o)
			return election
		}
		votes = votes.Without(election.Key)
	}
}

// votesEnd forgets the vote.
func (c *cycle) votesEnd() { c.out.Memory.Votes, c.ballots = evaluate.History{}, evaluate.History{} }

// stands keeps the vote of an election that begins nothing, with the ballot of this cycle: else the vote would have a gap
// for as long as what it elected waits, and be short of samples once it may begin.
func (c *cycle) stands() { c.out.Memory.Votes = c.ballots }

// begin starts a rollout to what is proposed first. What is refused keeps nothing waiting but what was elected, which
// might undo it, or bring it about all the same. A rollback that is done is the last thing that a cycle does: what was elected beforehand must not undo
// it.
func (c *cycle) begin(s *snapshot) {
	left := everything
	for _, p := range proposals() {
		if !s.mayAny(p.asks & left) {
			continue
		}
		made := p.made(s)
		if made == nil {
			continue
		}
		c.hear(made)
		switch {
		case made.done:
			return
		case made.want == nil:
		case c.begins(s, made):
			return
		default:
			left &^= p.asks | balance
		}
	}
}

// hear takes in what a proposal says beside what it wants.
func (c *cycle) hear(p *proposed) {
	c.out.Problems = append(c.out.Problems, p.told...)
	if p.verdict != "" {
		c.out.Candidate.Verdict = p.verdict
	}
	if p.done {
		c.out.Done = true
	}
	if p.holds {
		c.out.Memory.HoldOff, c.out.Memory.Votes = c.in.Now, evaluate.History{}
		c.out.Memory.Savings = c.out.Memory.Savings.After(c.in.Now)
	}
	if p.last != nil && p.cause != change.Failover {
		c.out.Memory.Changes.Failover = *p.last
	}
}

// begins starts one rollout; false: it is refused, and people are told why.
func (c *cycle) begins(s *snapshot, p *proposed) bool {
	c.out.Memory.Changes.Cause = p.cause
	o := s.rolloutOptions(p.cause)
	kind, waits, told := s.waitsFor(p, o)
	c.out.Problems = append(c.out.Problems, told...)
	if waits != "" {
		c.waits(p, kind, waits)
		return false
	}
	next, err := rollout.Begin(s.next, *p.want, o, c.in.Now)
	if err != nil {
		c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: "Refused", Message: err.Error(), Keeps: true})
		return false
	}
	if next.SameEnforced(s.next) {
		return false
	}
	if kind, why := s.refuses(next, o); kind != "" {
		if why != "" {
			c.problem(problem.Problem{Phase: problem.PhaseRollout, Kind: kind, Message: why + ": " + p.why})
		}
		c.stands()
		return false
	}
	c.out.Decided, c.out.Memory.Changes.Why, c.out.Memory.Changes.BySecret = true, problem.Text(p.why), p.bySecret
	c.note(p.why)
	if p.cause == change.Failover {
		c.out.Memory.Changes.Failover = *p.last
	}
	c.out.Memory.Savings = c.out.Memory.Savings.Spend(p.worth.spends)
	if s.restarts(p.want, o) {
		c.out.Memory.Savings.Of = nil
		c.out.Memory.Changes.Restarted = c.in.Now
		if p.bySecret {
			c.out.Memory.Changes.Stopped = c.in.Now
		}
	}
	c.out.Memory.Changes.Target = destination(o.Mode, s.next, *p.want)
	c.follow(nil, next.Rollout)
	s.next = next
	return true
}

// waits says what a change waits for that did not begin. Its vote goes on.
func (c *cycle) waits(p *proposed, kind, waits string) {
	c.stands()
	if p.cause == change.Balance && c.out.Candidate != nil {
		c.out.Candidate.Verdict = waits
		return
	}
	c.problem(problem.Problem{Phase: problem.PhaseRollout, Subject: string(p.cause), Kind: kind, Message: p.why + ": " + waits})
}

// failed remembers a rollout that did not come to its end, and stops ballast where the same one has failed too often.
func (c *cycle) failed(r plan.Rollout, why string) {
	m, what := &c.out.Memory.Changes, change.OnlyMoves
	if m.BySecret { // whoever may write one cluster Secret must not stop ballast for all others
		m.PinFailed = c.in.Now
		return
	}
	if r.From != r.To() {
		what = fmt.Sprintf("%d to %d replicas, %s %d to %d", r.From.Replicas, r.Replicas, plan.EnvReplicas, r.From.ControllerReplicas, r.ControllerReplicas)
	}
	var trip *change.Trip
	if m.Failures, trip = m.Failures.Add(c.in.Now, cmp.Or(m.Cause, change.Balance), what, why); worse(trip, m.Trip) {
		m.Trip, m.TripTold = trip, false
	}
}

// reason is the decision's for as long as its rollout goes on, and where that does not come about, why, too: people ask why
// a plan is as it is, and the stage stands beside it.
func (c *cycle) reason(p rollout.Progress) string {
	why := c.out.Memory.Changes.Why
	switch {
	case why == "": // nobody remembers
		return p.Why
	case p.Outcome == rollout.Advanced, p.Outcome == rollout.Waiting, p.Outcome == rollout.Finished:
		return why
	}
	return p.Why + "; this was under way: " + why
}

func (c *cycle) advance(a *adoption) {
	view, s := plan.NewView(a.next.Clone(), a.pins), snapshotOf(c.out, a)
	s.turnsBack = c.turnsBack
	next, progress := rollout.Advance(view, s.seen(), c.in.Memory.Changes.Target, s.rolloutOptions(s.changes.Cause), c.in.Now)
	c.out.Progress = progress
	switch progress.Outcome {
	case rollout.TurnedBack, rollout.Reverted, rollout.GaveUp:
		c.out.Memory.HoldOff = c.in.Now
		m := &c.out.Memory.Changes
		m.Recalled = m.Recalled || s.turnsBack != ""
		if next.Rollout == nil && !m.Recalled {
			c.failed(*a.next.Rollout, progress.Why)
		}
	}
	c.noteMoved(*a.next.Rollout)
	if !next.SameEnforced(a.next) {
		c.note(c.reason(progress))
		c.follow(a.next.Rollout, next.Rollout)
	}
	a.next = next
}
