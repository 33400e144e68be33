package cycle

import (
	"cmp"
	"strings"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/cycle/counting"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/safety"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/waiting"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// decide advances a rollout that is under way, and otherwise asks the partition and the evaluation whether to begin
// one.
func (c *cycle) decide(g *ground.Ground) {
	s := snapshot.Of(c.Out, g)
	s.Ungrown = c.ungrown.Why()
	starting{c}.tellRestart(s)
	s.Judge(c.Tell)
	c.verdicts = s.Verdicts
	starting{c}.awaitTemplate(g, s.Looked)
	starting{c}.checkEnforcement(g)
	s.Elected, s.Worth = c.votes.Candidate(s)
	s.Candidate, s.Line = c.Out.Candidate, c.Out.Line
	switch {
	case g.Next.Rollout == nil:
		starting{c}.begin(s)
	case advancing{c}.goesOn(g.Next):
		advancing{c}.advance(g)
	}
	s.Changes = c.Out.Memory.Changes
	waiting.Tell(c.Draft, s)
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
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "GlassWaits",
		Message: "enforcement off waits until the replicas that rollout.x0y stopped are back"})
	return true
}

// checkEnforcement reports a webhook that does not hold the plan; begin then scales nothing, since the first writer to
// come would turn it back.
func (c starting) checkEnforcement(g *ground.Ground) {
	if c.In.Enforcement == nil || *c.In.Enforcement || !g.Next.Mode.Enforced() {
		return
	}
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "EnforcementDown",
		Message: "the webhook does not hold the plan: " + strings.Join(c.In.Unheld, "; ") +
			"; nothing scales until it does; look at the pods of Deployment ballast-webhook, the endpoints of its Service and the caBundle of MutatingWebhookConfiguration ballast." + c.In.Config.Target.Namespace})
}

// begin starts a rollout to what is proposed first. What is refused leaves everything after it free to begin but what
// was elected, which might undo it, or bring it about all the same; a Secret's pin that waits counts for nothing
// meanwhile, and leaves that free, too. A rollback that is done is the last thing that a cycle does: what was elected
// beforehand must not undo it.
func (c starting) begin(s *snapshot.Snapshot) {
	left := gate.Everything // what may still be proposed
	for _, p := range proposal.All() {
		if !s.MayAny(p.Asks & left) {
			continue
		}
		made := p.Made(s)
		if made == nil {
			continue
		}
		c.hear(made)
		if made.Done {
			return
		}
		if made.Want == nil { // it has something to say, and nothing to begin
			if p.Asks == gate.Balance && made.Verdict != "" {
				c.votes.Stands() // what was elected waits, and its vote with it
			}
			continue
		}
		if len(s.Vain(made.Want)) > 0 {
			continue // no wave makes those moves, and what comes next may begin
		}
		if c.begins(s, made) {
			return
		}
		left &^= p.Asks
		if waiting.SecretsPin(s, made) == "" {
			left &^= gate.Balance
		}
	}
}

// hear takes in what a proposal says beside what it wants.
func (c starting) hear(p *proposal.Proposed) {
	c.Out.Problems = append(c.Out.Problems, p.Told...)
	if p.Verdict != "" {
		c.Out.Candidate.Verdict = p.Verdict
	}
	if p.Done {
		c.Out.Done = true
	}
	if p.Holds {
		c.Out.Memory.HoldOff, c.Out.Memory.Votes = c.In.Now, evaluate.Vote{}
		c.Out.Memory.Savings = c.Out.Memory.Savings.After(c.In.Now)
	}
	if p.Last != nil && p.Cause != change.Failover {
		c.Out.Memory.Changes.Failover = *p.Last
	}
}

// begins starts one rollout; false: it is refused, and people are told why.
func (c starting) begins(s *snapshot.Snapshot, p *proposal.Proposed) bool {
	c.Out.Memory.Changes.Cause = p.Cause
	o := snapshot.RolloutOptions(s, p.Cause)
	moves := waiting.Servers(s, rollout.Moves(s.Next, plan.Plan{Clusters: p.Want.Rows})) // before the budget cuts them
	kind, waits, told := waiting.For(s, p, o)
	c.Out.Problems = append(c.Out.Problems, told...)
	if waits != "" {
		waiting.Paces(s, p.Cause, moves, kind, waits)
		c.waits(p, kind, waits)
		return false
	}
	next, err := rollout.Begin(s.Next, *p.Want, o, c.In.Now)
	if err != nil {
		c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: "Refused", Message: err.Error(), Keeps: true})
		return false
	}
	if next.SameEnforced(s.Next) {
		return false
	}
	if kind, why := waiting.Refused(s, next, o); why != "" {
		if kind != "" {
			c.Tell(problem.Problem{Phase: problem.PhaseRollout, Kind: kind, Message: why + ": " + p.Why})
		}
		c.votes.Stands()
		return false
	}
	c.begun(p, snapshot.Restarts(s, p.Want, o))
	c.Out.Memory.Changes.Target = destination(o.Mode, s.Next, *p.Want)
	counting.Scaled(c.Draft, s.Next, next)
	c.breaker.Follow(nil, next.Rollout)
	s.Next = next
	return true
}

// begun remembers what a rollout is for that begins, and what it costs.
func (c starting) begun(p *proposal.Proposed, restarts bool) {
	c.Note(p.Why)
	c.Out.Decided = true
	m := &c.Out.Memory.Changes
	m.Why, m.BySecret = problem.Text(p.Why), p.BySecret || p.Follows
	if p.Cause == change.Failover {
		m.Failover = *p.Last
	}
	if p.Follows {
		m.Ownership.Followed = c.In.Now
	}
	c.Out.Memory.Savings = c.Out.Memory.Savings.Spend(p.Worth.Spends)
	if !restarts {
		return
	}
	c.Out.Memory.Savings.Of = nil
	if m.Restarted = c.In.Now; p.BySecret {
		m.Stopped = c.In.Now
	}
}

// waits says what a change waits for that did not begin. The vote goes on, unless what was elected may still begin.
func (c starting) waits(p *proposal.Proposed, kind, waits string) {
	if kind != "PinWaits" {
		c.votes.Stands()
	}
	if p.Cause == change.Balance && c.Out.Candidate != nil {
		c.Out.Candidate.Verdict = waits
		return
	}
	c.Tell(problem.Problem{Phase: problem.PhaseRollout, Subject: string(p.Cause), Kind: kind, Message: p.Why + ": " +
		waits})
}

// failed remembers a rollout that did not come to its end, and stops ballast where the same one has failed too often.
func (c advancing) failed(r plan.Rollout, why string) {
	m, what := &c.Out.Memory.Changes, harm.OnlyMoves
	if m.BySecret { // whoever may write one cluster Secret must not stop ballast for all others
		if m.Cause == change.Pin {
			m.PinFailed = c.In.Now
		}
		return
	}
	if r.From != r.To() {
		what = r.From.Into(r.To())
	}
	var trip *harm.Trip
	if m.Failures, trip = m.Failures.Add(c.In.Now, cmp.Or(m.Cause, change.Balance), what, why); safety.Worse(trip, m.Trip) {
		m.Trip, m.TripTold = trip, false
	}
}

// reason is the decision's for as long as its rollout goes on, and where that does not come about, why, too: people ask
// why a plan is as it is, and the stage stands beside it.
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
	view, s := plan.NewView(g.Next.Clone(), g.Pins), snapshot.Of(c.Out, g)
	s.TurnsBack = c.turnsBack
	o := snapshot.RolloutOptions(s, s.Changes.Cause)
	if o.EndsBecause == "" {
		o.EndsBecause = proposal.YieldsToFailover(s)
	}
	next, progress := rollout.Advance(view, proposal.Seen(s), c.In.Memory.Changes.Target, o, c.In.Now)
	c.Out.Progress = progress
	switch progress.Outcome {
	case rollout.TurnedBack, rollout.Reverted, rollout.GaveUp:
		c.Out.Memory.HoldOff = c.In.Now
		m := &c.Out.Memory.Changes
		m.Recalled = m.Recalled || s.TurnsBack != ""
		if next.Rollout == nil && !m.Recalled {
			c.failed(*g.Next.Rollout, progress.Why)
		}
	}
	ledger.Ledger{Draft: c.Draft}.NoteMoved(*g.Next.Rollout)
	if !next.SameEnforced(g.Next) {
		c.Note(c.reason(progress))
		c.breaker.Follow(g.Next.Rollout, next.Rollout)
	}
	g.Next = next
}

// destination remembers where a live rollout goes: its plan has the present wave only.
func destination(mode string, now plan.Plan, want rollout.Proposal) map[string]int {
	if mode != plan.ModeLive {
		return nil
	}
	target := map[string]int{}
	for _, m := range rollout.Moves(now, plan.Plan{Clusters: want.Rows}) {
		target[m.Cluster] = m.To
	}
	return target
}
