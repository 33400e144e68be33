package cycle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// standing is the replica that holds a cluster under the plan: its row, or where it stands without one.
func (a *adoption) standing(i int) int {
	if row, ok := a.next.Clusters[a.fleet.Clusters[i].Shard.ID]; ok {
		return row.Replica
	}
	return a.owners[i]
}

// decide advances a rollout that is under way, and otherwise asks the partition and the evaluation whether to begin one.
func (c *cycle) decide(a *adoption) {
	c.tellRestart(a)
	c.now = c.situation(a)
	c.verdicts = judge(gates(), c.now, c.problem)
	c.checkEnforcement(a)
	c.candidate(a)
	switch {
	case a.next.Rollout == nil:
		c.begin(a)
	case c.goesOn(a.next):
		c.advance(a)
	}
	c.forget(a)
}

// glassOpened is why break-glass turns a rollout back that has stopped every replica.
const glassOpened = "enforcement was switched off"

// goesOn reports whether the rollout under way advances: not under break-glass, but for one that may have stopped every replica.
func (c *cycle) goesOn(p plan.Plan) bool {
	if !c.in.BreakGlass || !rollout.StopsAll(p) {
		return !c.in.BreakGlass
	}
	c.turnsBack = glassOpened
	c.problem(Problem{Phase: PhaseRollout, Kind: "GlassWaits", Message: "enforcement off waits until the replicas that rollout.x0y stopped are back"})
	return true
}

// forget drops what was remembered of a rollout that is none: the next one must not take it for its own.
func (c *cycle) forget(a *adoption) {
	if a.next.Rollout == nil {
		c.out.Memory.Changes.Cause, c.out.Memory.Changes.Target = "", nil
	}
}

// checkEnforcement reports a webhook that does not hold the plan; begin then scales nothing, since the first writer to
// come would turn it back.
func (c *cycle) checkEnforcement(a *adoption) {
	if c.in.Enforcement == nil || *c.in.Enforcement || !a.next.Mode.Enforced() {
		return
	}
	c.problem(Problem{Phase: PhaseRollout, Kind: "EnforcementDown", Message: "the webhook does not hold the plan: " + strings.Join(c.in.Unheld, "; ") +
		"; nothing scales until it does; look at the pods of Deployment ballast-webhook, the endpoints of its Service and the caBundle of MutatingWebhookConfiguration ballast." + c.in.Config.Target.Namespace})
}

// Scales reports whether a cycle begins to change the number of replicas.
func (o Outcome) Scales() bool {
	r := o.Next.Rollout
	return o.Decided && r != nil && r.Replicas != r.From.Replicas
}

// candidate divides the fleet anew and lets the evaluation vote, in every mode: people see what ballast would do long
// before they let it.
func (c *cycle) candidate(a *adoption) {
	if c.out.Loads == nil || c.out.Table.Frozen {
		return
	}
	d, err := divide(c.in, a, c.out.Loads)
	if err != nil {
		c.problem(Problem{Phase: PhasePartition, Kind: "Refused", Message: err.Error(), Keeps: true})
		return
	}
	can := &Candidate{Moves: a.moves(d.of), Replicas: replicasOf(c.indexes, d.answer.Replicas, func(i int) int {
		if to, ok := d.of[c.out.Fleet.Clusters[i].Shard.ID]; ok {
			return to
		}
		return a.owners[i]
	})}
	for _, lost := range d.answer.Lost {
		can.Lost = append(can.Lost, lost.String())
	}
	c.out.Candidate = can
	c.elect(a, d)
}

// elect lets the evaluation vote on the candidate; what it elects is kept in c.winner. Where nothing may begin the vote goes
// on without an election, so that it need not start anew on the day it may.
func (c *cycle) elect(a *adoption, d division) {
	vote := evaluate.Candidate{Replicas: d.answer.Replicas, Of: d.of}
	if c.in.Config.Evaluate.MostWanted == nil {
		c.out.Memory.Votes = evaluate.History{}
		election := evaluate.None(vote)
		c.winner, c.out.Candidate.Verdict = &election.Candidate, election.String()
		return
	}
	if a.next.Rollout != nil {
		c.out.Candidate.Verdict = "not voted on while a rollout is under way"
		return
	}
	configured := c.in.Config.Evaluate.MostWanted
	if b := c.in.Memory.Votes.Ballots; len(b) > 0 && c.in.Memory.Votes.Basis == d.basis() {
		// Changes of Secrets and pods run cycles, too; a vote counts time, not changes.
		if since := c.in.Now.Sub(b[len(b)-1].At); since >= 0 && since < time.Duration(c.in.Config.Interval)/2 {
			c.out.Candidate.Verdict = fmt.Sprintf("%s so far, the last less than half an interval ago", plural(len(b), "vote"))
			return
		}
	}
	o := evaluate.MostWantedOptions{Window: time.Duration(configured.Window), MinSamples: configured.MinSamples}
	if !c.may(balance) {
		o.MinSamples = math.MaxInt
	}
	election, history := evaluate.MostWanted(c.in.Memory.Votes, vote, d.basis(), c.in.Now, o)
	c.out.Memory.Votes = history
	switch {
	case election.Elected:
		c.winner, c.out.Candidate.Verdict = &election.Candidate, election.String()
	case c.may(balance):
		c.out.Candidate.Verdict = election.String()
	default:
		c.out.Candidate.Verdict = fmt.Sprintf("%s so far; nothing begins while %s", plural(election.Samples, "vote"), c.verdicts[balance])
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// begin starts a rollout to what is proposed first. What is refused keeps no others waiting that have no replica, or a cordoned
// one. A rollback that is done is the last thing that a cycle does: what was elected beforehand must not undo it.
func (c *cycle) begin(a *adoption) {
	left := everything
	for _, p := range proposals() {
		if !c.mayAny(p.asks & left) {
			continue
		}
		made := p.made(c, a)
		if c.out.Done || made != nil && c.begins(a, made) {
			return
		}
		if made != nil {
			left = moves
		}
	}
}

// begins starts one rollout; false: it is refused, and people are told why.
func (c *cycle) begins(a *adoption, p *proposed) bool {
	c.out.Memory.Changes.Cause = p.cause
	o := c.rolloutOptions()
	if kind, waits := c.waitsFor(a, p, o); waits != "" {
		c.waits(p, kind, waits)
		return false
	}
	next, err := rollout.Begin(a.next, *p.want, o, c.in.Now)
	if err != nil {
		c.problem(Problem{Phase: PhaseRollout, Kind: "Refused", Message: err.Error(), Keeps: true})
		return false
	}
	if next.SameEnforced(a.next) {
		return false
	}
	if kind, why := c.refuses(a, next, o); kind != "" {
		if why != "" {
			c.problem(Problem{Phase: PhaseRollout, Kind: kind, Message: why + ": " + p.why})
		}
		c.out.Memory.Votes = c.in.Memory.Votes // what was elected did not begin: the vote stands as it was
		return false
	}
	c.out.Decided = true
	c.note(p.why)
	if p.cause == change.Failover {
		c.out.Memory.Changes.Failover = c.evacuated
	}
	c.out.Memory.Changes.Target = destination(o.Mode, a.next, *p.want)
	c.follow(nil, next.Rollout)
	a.next = next
	return true
}

// waitsFor is what a proposal waits for; empty: it may begin.
func (c *cycle) waitsFor(a *adoption, p *proposed, o rollout.Options) (kind, waits string) {
	if until := c.heldUntil(); o.Mode == plan.ModeX0Y && !until.IsZero() { // it would stop every replica again and again
		return "HeldOff", fmt.Sprintf("waits until %s, since the last rollout failed and rollout.x0y stops every replica", until.UTC().Format(time.RFC3339))
	}
	return "BudgetWaits", c.limit(a, p.want, p.cause, o)
}

// refuses says why a rollout does not begin, and the kind of the problem; without words people are told otherwise.
func (c *cycle) refuses(a *adoption, next plan.Plan, o rollout.Options) (kind, why string) {
	if room := plan.Room(next); room < 0 {
		return "PlanFull", fmt.Sprintf("what is to begin takes %d bytes more than a plan may have, so it does not (rollout.live writes some moves at a time)", -room)
	}
	if a.next.Unmanaged && needsWorkload(a.next, next, o) {
		return "WorkloadUnmanaged", fmt.Sprintf("the workload is annotated as unmanaged, and nothing begins that changes its replicas or its env or restarts it; "+
			"take the annotation %s off for what waits", plan.AnnotationUnmanaged)
	}
	scales := next.Rollout != nil && next.Rollout.Replicas != a.next.Replicas && !a.next.FreeReplicas
	stops := next.Rollout != nil && o.Mode == plan.ModeX0Y
	down := c.in.Enforcement != nil && !*c.in.Enforcement
	if down && (scales || stops) {
		return "EnforcementDown", ""
	}
	return "", ""
}

// waits says what a change waits for that did not begin. Its vote stands as it was.
func (c *cycle) waits(p *proposed, kind, waits string) {
	c.out.Memory.Votes = c.in.Memory.Votes
	if p.cause == change.Balance && c.out.Candidate != nil {
		c.out.Candidate.Verdict = waits
		return
	}
	c.problem(Problem{Phase: PhaseRollout, Subject: string(p.cause), Kind: kind, Message: p.why + ": " + waits})
}

func (c *cycle) advance(a *adoption) {
	view := plan.NewView(a.next.Clone(), a.pins)
	next, progress := rollout.Advance(view, c.seen(), c.in.Memory.Changes.Target, c.rolloutOptions(), c.in.Now)
	c.out.Progress = progress
	switch progress.Outcome {
	case rollout.TurnedBack, rollout.Reverted, rollout.GaveUp:
		c.out.Memory.HoldOff = c.in.Now
	}
	if !next.SameEnforced(a.next) {
		c.note(progress.Why)
		c.follow(a.next.Rollout, next.Rollout)
	}
	a.next = next
}

// Seen is what stands, as a rollout looks at it.
func Seen(fleet discover.Fleet, w discover.Workload) rollout.Seen {
	seen := rollout.Seen{Workload: seenWorkload(w), Secrets: make([]rollout.Stamp, 0, len(fleet.Clusters))}
	for _, cl := range fleet.Clusters {
		if cl.Implicit {
			continue
		}
		seen.Secrets = append(seen.Secrets, rollout.Stamp{Name: cl.Shard.ID, Cluster: cl.Called(), Server: cl.Shard.Server, Skip: cl.Skip || cl.Unread, Immutable: cl.Immutable, Unmanaged: cl.Unmanaged, Follows: cl.Follows, Alone: cl.Alone,
			Shard: cl.Explicit.N, Valid: cl.Explicit.State == discover.ShardValid, Absent: cl.Explicit.State == discover.ShardAbsent})
	}
	return seen
}

func seenWorkload(w discover.Workload) *rollout.Workload {
	s := &rollout.Workload{Replicas: w.Replicas, Ready: w.ReadyReplicas, Updated: w.UpdatedReplicas, Current: w.CurrentReplicas,
		ObservedCurrent: w.ObservedGeneration >= w.Generation, RestartedAt: w.RestartedAt, Unmanaged: w.Unmanaged}
	if w.EnvReplicas != nil && !w.EnvMixed { // where entries disagree, none is what the plan holds
		if n, err := strconv.Atoi(*w.EnvReplicas); err == nil {
			s.ControllerReplicas = &n
		}
	}
	return s
}
