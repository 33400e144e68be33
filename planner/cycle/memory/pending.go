package memory

import (
	"maps"
	"time"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/evaluate"
	"ballast/planner/failover"
)

// Pending is what a decision sets of the memory: limits, and what its rollout is for. It is kept from before the plan is written, for the
// answer to that write may be lost, or the leader die right after it, and the plan stands all the same. Whoever finds the plan in force takes
// it over; where it never comes about nothing was limited.
type Pending struct {
	Plan      string               `json:"plan"` // the digest of what was decided, whatever its revision
	Cause     change.Cause         `json:"cause,omitempty"`
	Why       string               `json:"why,omitempty"`
	BySecret  bool                 `json:"bySecret,omitempty"`
	Target    map[string]int       `json:"target,omitempty"`
	Ledger    change.Ledger        `json:"ledger,omitempty"`
	Counted   time.Time            `json:"counted,omitzero"`
	Failed    map[string]time.Time `json:"failed,omitempty"`  // those that it adds
	Suspect   map[string]time.Time `json:"suspect,omitempty"` // those that it adds
	Failures  harm.Failures        `json:"failures,omitempty"`
	Began     harm.Signs           `json:"began,omitzero"`
	Watch     harm.Watch           `json:"watch,omitzero"`
	Failover  failover.Last        `json:"failover,omitzero"`
	Stopped   time.Time            `json:"stopped,omitzero"`
	Restarted time.Time            `json:"restarted,omitzero"`
	Followed  time.Time            `json:"followed,omitzero"`
	Counts    Counts               `json:"counts,omitzero"`
	Sizes     Sizes                `json:"sizes,omitzero"` // what of them is lost with the decision

	here *undecided // where the leader that decided lives on
}

// undecided is what a decision sets that makes no difference to another leader.
type undecided struct {
	votes   evaluate.Vote
	savings evaluate.Savings
	young   map[string]time.Time
	rebased time.Time
	before  map[string]string
}

// PendingOf is what that decision sets, beside what was known before it.
func (m Memory) PendingOf(was Memory, plan string) *Pending {
	c := m.Changes
	return &Pending{Plan: plan, Cause: c.Cause, Why: c.Why, BySecret: c.BySecret, Target: c.Target, Ledger: c.Ledger, Counted: c.Counted,
		Failed: newer(c.Failed, was.Changes.Failed), Suspect: newer(c.Suspect, was.Changes.Suspect), Failures: c.Failures, Began: c.Began, Watch: c.Watch,
		Failover: c.Failover, Stopped: c.Stopped, Restarted: c.Restarted, Followed: c.Ownership.Followed, Counts: m.Counts, Sizes: m.Sizes.decided(),
		here: &undecided{votes: m.Votes, savings: m.Savings, young: m.Young, rebased: m.Rebased, before: m.Before}}
}

// Resume is the memory with what the plan in force was decided with, where the answer to its write never came.
func (m Memory) Resume(inForce string) Memory {
	p := m.Changes.Pending
	if p == nil || p.Plan == "" || p.Plan != inForce {
		return m
	}
	if d := p.here; d != nil {
		m.Votes, m.Savings, m.Young, m.Rebased, m.Before = d.votes, d.savings, d.young, d.rebased, d.before
	}
	c := &m.Changes
	c.Pending, c.Cause, c.Why, c.BySecret, c.Target, c.Ledger, c.Counted = nil, p.Cause, p.Why, p.BySecret, p.Target, p.Ledger, p.Counted
	c.Failed, c.Suspect, c.Failures, c.Began, c.Watch = joined(c.Failed, p.Failed), joined(c.Suspect, p.Suspect), p.Failures, p.Began, p.Watch
	c.Failover, c.Stopped, c.Restarted, c.Ownership.Followed = p.Failover, p.Stopped, p.Restarted, p.Followed
	m.Counts, m.Sizes = p.Counts, m.Sizes.undecided(p.Sizes)
	return m
}

// newer are the times that were not there before.
func newer(now, was map[string]time.Time) map[string]time.Time {
	more := map[string]time.Time{}
	for name, at := range now {
		if !was[name].Equal(at) {
			more[name] = at
		}
	}
	return more
}

// joined leaves both as they are.
func joined(times, more map[string]time.Time) map[string]time.Time {
	if len(more) == 0 {
		return times
	}
	all := maps.Clone(more)
	for name, at := range times {
		if _, there := more[name]; !there {
			all[name] = at
		}
	}
	return all
}
