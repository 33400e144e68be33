// Package overview is what `ballast status` shows, and how it is printed.
package overview

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/conflicts"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
	"ballast/planner/plan/probing"
	"ballast/planner/status"
)

// Overview is what is shown.
type Overview struct {
	Plan        *plan.Plan          `json:"plan,omitempty"`
	PlanError   string              `json:"planError,omitempty"`
	Reason      string              `json:"reason,omitempty"`
	DecidedAt   string              `json:"decidedAt,omitempty"`
	DecidedBy   string              `json:"decidedBy,omitempty"`
	Leader      string              `json:"leader,omitempty"`
	Renewed     time.Time           `json:"renewed,omitzero"`
	LookedAt    time.Time           `json:"lookedAt,omitzero"` // when the leader said what follows
	Conditions  []status.Condition  `json:"conditions,omitempty"`
	Owner       *conflicts.Owner    `json:"owner,omitempty"` // another installation, whose the target is
	Paused      bool                `json:"paused,omitempty"`
	PausedBy    string              `json:"pausedBy,omitempty"`
	PausedWhy   string              `json:"pausedReason,omitempty"`
	BreakGlass  bool                `json:"enforcementOff,omitempty"`
	Tripped     string              `json:"tripped,omitempty"` // why ballast stopped itself
	HeldUntil   time.Time           `json:"heldUntil,omitzero"`
	RollbackTo  string              `json:"rollbackTo,omitempty"`
	Cordons     []steer.Cordoned    `json:"cordons,omitempty"`
	Rollout     *UnderWay           `json:"rollout,omitempty"`
	Workload    discover.Workload   `json:"workload"`
	Replicas    []plan.Replica      `json:"replicas,omitempty"`
	Pods        []PodStatus         `json:"pods,omitempty"`
	Slots       *SlotsStatus        `json:"slots,omitempty"`
	Known       []status.Replica    `json:"known,omitempty"`     // what the leader knows of each replica
	Elsewhere   []status.Elsewhere  `json:"elsewhere,omitempty"` // clusters that are not where the plan has them, by the pods' own account
	Unwell      []status.Unwell     `json:"unwell,omitempty"`
	FailoverOff string              `json:"failoverHeld,omitempty"` // why nothing is done about them
	Orphaned    []status.Fault      `json:"orphaned,omitempty"`
	Doubled     []status.Fault      `json:"doubled,omitempty"`
	Budget      *status.Budget      `json:"budget,omitempty"`
	PutBack     *probing.PutBack    `json:"putBack,omitempty"` // whose writes the webhooks put back, and refused
	Candidate   *status.Candidate   `json:"candidate,omitempty"`
	Blocked     []resize.Blocked    `json:"blocked,omitempty"`
	Omitted     int                 `json:"omitted,omitempty"` // entries of what the leader said that had no room
	Pins        plan.Pins           `json:"pins,omitempty"`
	PinProblems []people.PinProblem `json:"pinProblems,omitempty"`
	Drift       []diff.Step         `json:"drift,omitempty"`
	Held        []string            `json:"held,omitempty"`
	Decisions   []decision          `json:"decisions,omitempty"` // newest first
	Needs       []string            `json:"needs,omitempty"`     // what waits for a person

	Conflicts []conflicts.Finding `json:"neighbours,omitempty"`
	Unseen    []string            `json:"unseen,omitempty"` // what this person may not read
	Unread    []string            `json:"unread,omitempty"` // what could not be read for another reason
	Problems  []problem.Problem   `json:"problems,omitempty"`

	Now      time.Time `json:"-"`
	SeesPods bool      `json:"-"`
}

// PodStatus is an application-controller's pod, with what its replica carries under the plan. Its replica is -1 where
// it holds no slot of a Deployment.
type PodStatus struct {
	Replica     int       `json:"replica"`
	Name        string    `json:"name"`
	Ready       bool      `json:"ready"`
	Terminating bool      `json:"terminating,omitempty"`
	Claimed     bool      `json:"claimed"`
	Restarts    int       `json:"restarts"`
	RestartedAt time.Time `json:"restartedAt,omitzero"`
	OOMKilled   bool      `json:"oomKilled,omitempty"`   // its last end
	MemoryLimit int64     `json:"memoryLimit,omitempty"` // bytes

	Asked    plan.Resources  `json:"asked,omitzero"`   // by its spec
	Has      plan.Resources  `json:"has,omitzero"`     // by its status; empty: the node has not said
	Resize   observed.Resize `json:"resize,omitempty"` // where a change of its size is not done
	Words    string          `json:"words,omitempty"`  // its node's of that
	Clusters int             `json:"clusters"`
	Load     string          `json:"load"`
}

// SlotsStatus is a Deployment's dynamic distribution. Unhealthy says that fewer slots are held than there are replicas.
type SlotsStatus struct {
	Healthy   int          `json:"healthy"`
	Of        int          `json:"of"`
	Unhealthy bool         `json:"unhealthy"`
	Slots     []SlotStatus `json:"slots"`
}

// SlotStatus is a shard of a Deployment, and the pod that claims it.
type SlotStatus struct {
	Shard        int    `json:"shard"`
	State        string `json:"state"`
	Controller   string `json:"controller,omitempty"`
	HeartbeatAge string `json:"heartbeatAge,omitempty"`
	Unhealthy    bool   `json:"unhealthy,omitempty"` // its controller is silent, or gone
}

// CarriedBy is what a replica has under the plan; one that there is not has nothing.
func (s *Overview) CarriedBy(replica int) plan.Replica {
	if replica < 0 || replica >= len(s.Replicas) {
		return plan.Replica{ID: replica, TotalLoadDisplay: plan.Load(0).Display()}
	}
	return s.Replicas[replica]
}

// TakeOver shows what the leader said. What it could not do or will not believe it says of all that is shown here, too.
func (s *Overview) TakeOver(said status.Status) {
	s.LookedAt, s.Conditions, s.Budget, s.Candidate = said.LookedAt, said.Conditions, said.Budget, said.Candidate
	s.Unwell, s.FailoverOff, s.Orphaned, s.Doubled, s.Omitted = said.Unwell, said.FailoverHeld, said.Orphaned,
		said.Doubled, said.Omitted
	s.PutBack = said.PutBack
	s.Blocked, s.Known, s.Elsewhere = said.Blocked, said.Replicas, said.Elsewhere
	if said.HeldUntil.After(s.Now) {
		s.HeldUntil = said.HeldUntil
	}
	known := func(p problem.Problem) bool {
		return slices.ContainsFunc(said.Problems, func(q problem.Problem) bool { return p.Kind == q.Kind && p.Subject == q.Subject })
	}
	s.Problems = append(slices.DeleteFunc(s.Problems, known), said.Problems...)
}

// Same reports whether another look says the same, but for how long things are as they are.
func (s Overview) Same(other Overview) bool {
	a, errA := json.Marshal(s.timeless())
	b, errB := json.Marshal(other.timeless())
	return errA == nil && errB == nil && string(a) == string(b)
}

// timeless is what it says without what is another thing with every look: when the leader looked, ages and messages
// that have figures in them, by the side of which there is a kind or a reason.
func (s Overview) timeless() Overview {
	s.Renewed, s.LookedAt = time.Time{}, time.Time{}
	s.Conditions = each(s.Conditions, func(c *status.Condition) { c.Message = "" })
	s.Unwell = each(s.Unwell, func(u *status.Unwell) { u.Message = "" })
	s.Problems = each(s.Problems, func(p *problem.Problem) { p.Message = "" })
	s.Known = each(s.Known, func(r *status.Replica) { r.Sampled = time.Time{} })
	if s.Rollout != nil { // its deadline is worked out anew with every look, in whole seconds
		r := *s.Rollout
		r.Deadline = time.Time{}
		s.Rollout = &r
	}
	if s.Candidate != nil { // how the vote stands
		c := *s.Candidate
		c.Verdict = ""
		s.Candidate = &c
	}
	if s.Slots != nil {
		slots := *s.Slots
		slots.Slots = each(slots.Slots, func(s *SlotStatus) { s.HeartbeatAge = "" })
		s.Slots = &slots
	}
	return s
}

// each changes a copy of a list.
func each[T any](list []T, change func(*T)) []T {
	list = slices.Clone(list)
	for i := range list {
		change(&list[i])
	}
	return list
}

// exitNeeds is the exit code where something waits for a person; as in doctor and watch, 1 is left to what could not be
// looked at.
const exitNeeds = 2

// CollectNeeds is what does not become well by itself. What people asked for, and what ends by itself, is none of it: a
// freeze, a mode that only observes, a rollout within its time, a hold-off.
func (s *Overview) CollectNeeds() []string {
	var list []string
	add := func(when bool, format string, args ...any) {
		if when {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(s.Plan == nil, "there is no plan in force")
	add(s.Owner != nil, "another installation plans for this workload")
	add(!s.LookedAt.IsZero() && s.Now.Sub(s.LookedAt) > status.Outdated, "no leader has looked for %s",
		say.Span(s.Now.Sub(s.LookedAt)))
	add(s.LookedAt.Sub(s.Now) > status.Outdated, "the leader's clock is %s ahead of this machine's",
		say.Span(s.LookedAt.Sub(s.Now)))
	for _, c := range s.Conditions {
		add(bad(c), "%s is %s: %s", c.Type, c.Status, c.Reason)
	}
	add(s.Rollout != nil && s.Rollout.Late, "the rollout is past its deadline")
	add(len(s.PinProblems) > 0, "%s cannot be read", say.Plural(len(s.PinProblems), "pin"))
	add(s.Rollout == nil && len(s.Drift) > 0, "%s from the plan", say.Plural(len(s.Drift), "difference"))
	return list
}

// bad reports whether a condition is one that a person has to look into.
func bad(c status.Condition) bool {
	switch c.Type {
	case status.Planning:
		return c.Status == status.False && c.Reason != status.Paused && c.Reason != status.HeldOff
	case status.Enforced:
		return c.Status == status.False && c.Reason != status.Observing && c.Reason != status.NoPlan
	case status.Degraded:
		return c.Status == status.True
	}
	return false
}

// Needed is the error that the command ends with, nil where nobody is needed.
func (s *Overview) Needed() error {
	if len(s.Needs) == 0 {
		return nil
	}
	return say.ExitWith(exitNeeds, errors.New(strings.Join(s.Needs, "; ")))
}
