package status

import (
	"slices"
	"time"
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
