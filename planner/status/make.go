package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/failover/health"
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/planner/rollout"
)

// Of makes the status of a cycle. inForce is the plan that holds after it; before is the status of the one before,
// whose conditions last where they are the same, and whose revision stays where no plan holds.
func Of(in input.Inputs, out cycle.Outcome, inForce *plan.Plan, leader string, before Status) Status {
	s := Status{Leader: leader, LookedAt: in.Now, Revision: before.Revision, HeldUntil: out.Memory.HeldUntil(in.Now)}
	if inForce != nil {
		s.Revision = inForce.Revision
		s.Rollout = rolloutOf(in, out, *inForce)
		s.Budget = budgetOf(out.Budget)
		view := plan.NewView(*inForce, out.Pins)
		s.Replicas = replicasOf(in, out, view)
		if in.Observed.Reported.Asked {
			s.Elsewhere = elsewhereOf(out, view)
		}
	}
	if c := out.Candidate; c != nil {
		s.Candidate = &Candidate{Replicas: len(c.Replicas), Moves: len(c.Moves), Verdict: c.Verdict}
	}
	if l := out.Line; l != nil {
		s.Line = &Line{Load: l.Load, Configured: l.Configured, Since: l.Since}
	}
	s.Blocked, s.PutBack = out.Waiting(), in.PutBack
	s.Resizes, s.KeepsLimits = in.Resizes, in.KeepsLimits
	for _, sick := range out.Replicas.Sick {
		s.Unwell = append(s.Unwell, Unwell{sick.Replica, sick.Reason, sick.Since, sick.Pod, sick.String()})
	}
	if held := out.Replicas.Held; held != "" && (len(s.Unwell) > 0 || held == health.WholeFleet) {
		s.FailoverHeld = out.Replicas.String()
	}
	for _, o := range out.Verdict.Orphans {
		f := Fault{Cluster: o.Cluster, Since: o.Since}
		if o.Last != plan.NoReplica {
			f.Last = &o.Last
		}
		s.Orphaned = append(s.Orphaned, f)
	}
	for _, d := range out.Verdict.Doubled {
		s.Doubled = append(s.Doubled, Fault{Cluster: d.Cluster, Since: d.Since, Owners: d.Owners})
	}
	s.Problems = slices.Clone(out.Problems)
	s.Conditions = lasting(conditionsOf(in, out, s, inForce), before.Conditions, in.Now)
	s.cut(out.Fleet.Made())
	return s
}

// Failed is the status of a cycle that ended early: what this leader knew is as it was, but for that. Of one that ended
// none before, nothing else is known but the revision that was said last.
func Failed(before Status, failure error, leader string, now time.Time) Status {
	s := before
	if before.Leader == "" {
		s = Status{Revision: before.Revision, Conditions: notLooked()}
	}
	s.Leader, s.LookedAt = leader, now
	planning := Condition{Type: Planning, Status: False, Reason: CycleFailed,
		Message: printable.Text(strings.ReplaceAll(failure.Error(), "\n", "; "), maxMessage)}
	rest := slices.DeleteFunc(slices.Clone(s.Conditions), func(c Condition) bool { return c.Type == Planning })
	s.Conditions = lasting(append([]Condition{planning}, rest...), before.Conditions, now)
	s.cut(nil)
	return s
}

func conditionsOf(in input.Inputs, out cycle.Outcome, s Status, inForce *plan.Plan) []Condition {
	return []Condition{planningOf(in, out, s, inForce), enforcedOf(in, inForce), progressingOf(s, inForce),
		degradedOf(in, out, s)}
}

func planningOf(in input.Inputs, out cycle.Outcome, s Status, inForce *plan.Plan) Condition {
	c := Condition{Type: Planning, Status: False}
	kept := slices.IndexFunc(out.Problems, func(p problem.Problem) bool { return p.Keeps })
	switch {
	case kept >= 0:
		c.Reason, c.Message = ConditionReason(out.Problems[kept].Kind), out.Problems[kept].Message
	case in.Tripped != "" || out.Memory.Changes.Trip != nil:
		c.Reason, c.Message = Tripped, "ballast stopped itself after a wave that did harm, or a rollout that failed three times in a day; look into it, then: ballast resume"
	case in.Paused:
		c.Reason, c.Message = Paused, "a person froze it; ballast resume ends that"
	case !s.HeldUntil.IsZero():
		c.Reason, c.Message = HeldOff, fmt.Sprintf("a rollout failed or went back to an earlier plan; nothing that levels, grows or pins begins before %s", s.HeldUntil.UTC().Format(time.RFC3339))
	case inForce != nil && !inForce.Mode.Enforced():
		c.Status, c.Reason, c.Message = True, Observing,
			fmt.Sprintf("the mode is %s: what is decided is shown and not done", inForce.Mode)
	default:
		c.Status, c.Reason = True, Measured
	}
	return c
}

func enforcedOf(in input.Inputs, inForce *plan.Plan) Condition {
	c := Condition{Type: Enforced, Status: False}
	switch {
	case inForce == nil:
		c.Reason, c.Message = NoPlan, "there is no plan yet"
	case !inForce.Mode.Enforced():
		c.Reason, c.Message = Observing, fmt.Sprintf("the mode is %s, which enforces nothing", inForce.Mode)
	case in.BreakGlass:
		c.Reason, c.Message = BreakGlass, fmt.Sprintf("a person switched it off by the annotation %s",
			plan.AnnotationEnforcement)
	case in.Enforcement == nil:
		c.Status, c.Reason, c.Message = Unknown, NotAsked,
			"the webhook was not asked yet, or there is nothing to ask it with"
	case !*in.Enforcement:
		c.Reason, c.Message = NotHeld, printable.Text(strings.Join(in.Unheld, "; "), maxMessage)
	default:
		c.Status, c.Reason = True, Held
	}
	return c
}

func progressingOf(s Status, inForce *plan.Plan) Condition {
	if s.Rollout == nil {
		return Condition{Type: Progressing, Status: False, Reason: AtRest}
	}
	c := Condition{Type: Progressing, Status: True, Reason: ConditionReason(s.Rollout.Stage),
		Message: cmp.Or(s.Rollout.Waits, "the stage has just begun")}
	if s.Rollout.Waits != "" {
		c.Message = fmt.Sprintf("%s: it waits: %s", inForce.Rollout.Mode, c.Message)
	}
	return c
}

func degradedOf(in input.Inputs, out cycle.Outcome, s Status) Condition {
	c := Condition{Type: Degraded, Status: True}
	switch orphans, doubled := len(out.Verdict.Orphans), len(out.Verdict.Doubled); {
	case len(s.Unwell) > 0:
		c.Reason, c.Message = IsUnwell, s.Unwell[0].Message
	case s.FailoverHeld != "":
		c.Reason, c.Message = WholeFleet, s.FailoverHeld
	case orphans > 0:
		c.Reason, c.Message = Orphaned, fmt.Sprintf("clusters without a replica: %d; the first: %s", orphans,
			out.Verdict.Orphans[0].Message())
	case doubled > 0:
		c.Reason, c.Message = Doubled, fmt.Sprintf("clusters with several replicas: %d; the first: %s", doubled,
			out.Verdict.Doubled[0].Message())
	case len(out.Verdict.Astray) > 0:
		c.Reason, c.Message = Astray, fmt.Sprintf("clusters with another replica than their plan and Secret say: %d; the first: %s", len(out.Verdict.Astray), out.Verdict.Astray[0].Message())
	case !in.Observed.Reported.Asked:
		return Condition{Type: Degraded, Status: Unknown, Reason: NotSaid,
			Message: "the pods do not say which clusters they have"}
	default:
		c.Status, c.Reason = False, AsPlanned
	}
	return c
}

func rolloutOf(in input.Inputs, out cycle.Outcome, inForce plan.Plan) *Rollout {
	r := inForce.Rollout
	if r == nil {
		return nil
	}
	s := &Rollout{Stage: r.Stage, Since: r.Since, After: after(out, inForce)}
	if out.Changed { // this stage, or this wave, has just begun
		return s
	}
	p := out.Progress
	switch {
	case p.Outcome == rollout.Waiting:
		s.Waits, s.Late = strings.TrimPrefix(p.Why, "waiting: "), p.Late
		if p.Left > 0 {
			s.Deadline = in.Now.Add(p.Left)
		}
	case in.BreakGlass:
		s.Waits = "enforcement is off, so the rollout stays where it is"
	default:
		for _, problem := range out.Problems {
			if problem.Keeps {
				s.Waits = problem.Message
				break
			}
		}
	}
	return s
}

// after counts the clusters that move after the present wave.
func after(out cycle.Outcome, inForce plan.Plan) int {
	r, n := inForce.Rollout, 0
	if r.Mode != plan.ModeLive {
		return 0
	}
	view := plan.NewView(inForce, out.Pins)
	for name, to := range out.Memory.Changes.Target {
		_, moving := r.Moves[name]
		if at, _, known := view.Effective(name); known && at != to && !moving {
			n++
		}
	}
	return n
}

func budgetOf(b change.Budget) *Budget {
	s := &Budget{Message: b.String()}
	if b.Left == 0 {
		s.Next = b.Next
	}
	if b.Left < math.MaxInt {
		s.Left = &b.Left
	}
	for _, w := range b.Windows {
		s.Windows = append(s.Windows, Window{Period: w.Rate.Period.String(), Percent: w.Rate.Percent,
			Allowed: w.Allowed, Used: w.Used})
	}
	for cause, n := range b.Causes {
		if s.Causes == nil {
			s.Causes = map[string]int{}
		}
		s.Causes[string(cause)] = n
	}
	return s
}
