package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
	"ballast/planner/printable"
)

// maxMessage is the longest message, in characters.
const maxMessage = 1000

// Condition is one, in the words of Kubernetes' conditions. Reason is one word for tools, Message a sentence for
// people; LastTransitionTime is since when Status is what it is.
type Condition struct {
	Type               Type            `json:"type"`
	Status             State           `json:"status"`
	Reason             ConditionReason `json:"reason"`
	Message            string          `json:"message,omitempty"`
	LastTransitionTime time.Time       `json:"lastTransitionTime"`
}

// Type is what a condition is about. The set is closed.
type Type string

// The conditions.
const (
	Planning    Type = "Planning"    // the leader decides by what it measures
	Enforced    Type = "Enforced"    // the webhooks hold the plan
	Progressing Type = "Progressing" // a rollout is under way
	Degraded    Type = "Degraded"    // a replica is unwell, or a cluster has no owner or several
)

// State is whether a condition holds.
type State string

// The states.
const (
	True    State = "True"
	False   State = "False"
	Unknown State = "Unknown"
)

// ConditionReason is why a condition is as it is. Planning has the kind of a problem where one keeps the plan, and
// Progressing the stage of the rollout.
type ConditionReason string

// The other reasons.
const (
	Measured    ConditionReason = "Measured"    // Planning: it decides by what it measured
	Observing   ConditionReason = "Observing"   // Planning, Enforced: the mode is Observe
	CycleFailed ConditionReason = "CycleFailed" // Planning: the API server, Prometheus or a configuration made the last look fail
	Tripped     ConditionReason = "Tripped"     // Planning: ballast stopped itself after a wave that did harm, or a rollout that failed three times in a day
	Paused      ConditionReason = "Paused"      // Planning: a person froze it
	HeldOff     ConditionReason = "HeldOff"     // Planning: a rollout failed within the last half hour
	Held        ConditionReason = "Held"        // Enforced: the webhooks hold the plan
	NotHeld     ConditionReason = "NotHeld"     // Enforced: one of them does not
	NotAsked    ConditionReason = "NotAsked"    // Enforced: nobody asked them
	BreakGlass  ConditionReason = "BreakGlass"  // Enforced: a person switched it off
	NoPlan      ConditionReason = "NoPlan"      // Enforced: there is no plan yet
	NotLooked   ConditionReason = "NotLooked"   // Enforced, Progressing, Degraded: this leader has not ended a cycle yet
	AtRest      ConditionReason = "AtRest"      // Progressing: nothing is under way
	IsUnwell    ConditionReason = "Unwell"      // Degraded: a replica is unwell
	WholeFleet  ConditionReason = "WholeFleet"  // Degraded: more than half of the replicas are
	Orphaned    ConditionReason = "Orphaned"    // Degraded: a cluster has no replica
	Doubled     ConditionReason = "Doubled"     // Degraded: a cluster has several
	Astray      ConditionReason = "Astray"      // Degraded: a cluster is with another replica than its plan and its Secret say
	NotSaid     ConditionReason = "NotSaid"     // Degraded: the pods do not say which clusters they have
	AsPlanned   ConditionReason = "AsPlanned"   // Degraded: each cluster has its one replica, and each replica is well
)

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

// Heard is what is kept of the status of the leader before: since when its conditions are what they are, its revision,
// which a plan in force replaces, and nothing else that is said in this leader's name. Whoever may write the ConfigMap
// may have written it.
func Heard(former Status, now time.Time) Status {
	s := Status{Revision: former.Revision}
	for _, kind := range []Type{Planning, Enforced, Progressing, Degraded} {
		at := slices.IndexFunc(former.Conditions, func(c Condition) bool { return c.Type == kind })
		if at >= 0 && !former.Conditions[at].LastTransitionTime.After(now) {
			c := former.Conditions[at]
			s.Conditions = append(s.Conditions, Condition{Type: kind, Status: c.Status,
				LastTransitionTime: c.LastTransitionTime})
		}
	}
	return s
}

// notLooked are the conditions that a leader says nothing of, whose first cycle ended early.
func notLooked() (all []Condition) {
	for _, kind := range []Type{Enforced, Progressing, Degraded} {
		all = append(all, Condition{Type: kind, Status: Unknown, Reason: NotLooked,
			Message: "this leader has not ended a cycle yet"})
	}
	return all
}

// lasting takes over since when conditions are what they are.
func lasting(now, before []Condition, at time.Time) []Condition {
	for i, c := range now {
		now[i].LastTransitionTime = at
		was := slices.IndexFunc(before, func(b Condition) bool { return b.Type == c.Type && b.Status == c.Status })
		if was >= 0 {
			now[i].LastTransitionTime = before[was].LastTransitionTime
		}
	}
	return now
}
