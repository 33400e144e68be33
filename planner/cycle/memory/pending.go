package memory

import (
	"maps"
	"time"

	"ballast/planner/failover/health"
	"ballast/planner/ownership"
)

// PendingOf is what that decision sets, beside what was known before it.
func (m Memory) PendingOf(was Memory, plan string) *Pending {
	c, before := m.Changes, was.Changes
	c.Ownership, c.Replicas, c.Blocked, c.Pending, c.ByName = ownership.Memory{Followed: c.Ownership.Followed},
		health.Memory{}, nil, nil, 0
	c.Failed, c.Suspect = newer(c.Failed, before.Failed), newer(c.Suspect, before.Suspect)
	c.Moved, c.Pinned = newer(c.Moved, before.Moved), newer(c.Pinned, before.Pinned)
	return &Pending{Plan: plan, Changes: c, Counts: m.Counts, Sizes: m.Sizes.decided(),
		here: &undecided{votes: m.Votes, savings: m.Savings, even: m.Even, unit: m.Unit, young: m.Young,
			rebased: m.Rebased, before: m.Before}}
}

// Resume is the memory with what the plan in force was decided with, where the answer to its write never came. What was
// counted or limited since stays.
func (m Memory) Resume(inForce string) Memory {
	p := m.Changes.Pending
	if p == nil || p.Plan == "" || p.Plan != inForce {
		return m
	}
	c, now := p.Changes, m.Changes
	c.Replicas, c.Blocked, c.ByName = now.Replicas, now.Blocked, now.ByName
	c.Ownership, c.Ownership.Followed = now.Ownership, later(now.Ownership.Followed, c.Ownership.Followed)
	c.Failed, c.Suspect = joined(now.Failed, c.Failed), joined(now.Suspect, c.Suspect)
	c.Moved, c.Pinned = joined(now.Moved, c.Moved), joined(now.Pinned, c.Pinned)
	c.Ledger, c.Unserved = c.Ledger.Joined(now.Ledger), c.Unserved.Joined(now.Unserved)
	c.Stopped, c.Restarted, c.PinFailed = later(now.Stopped, c.Stopped), later(now.Restarted, c.Restarted),
		later(now.PinFailed, c.PinFailed)
	c.Looked = later(now.Looked, c.Looked)
	if tripsSince(c, now) {
		c.Trip, c.TripTold, c.TripMoved = now.Trip, now.TripTold, now.TripMoved
	}
	if now.Failover.At.After(c.Failover.At) {
		c.Failover = now.Failover
	}
	m.Changes, m.Counts, m.Sizes = c, p.Counts, m.Sizes.undecided(p.Sizes)
	if d := p.here; d != nil {
		m.Votes, m.Savings, m.Even, m.Unit, m.Young, m.Rebased, m.Before = d.votes, d.savings, d.even, d.unit, d.young,
			d.rebased, d.before
	}
	return m
}

// tripsSince reports whether ballast stopped itself since that, or found more replicas that were killed.
func tripsSince(before, now Changes) bool {
	switch {
	case now.Trip == nil:
		return false
	case before.Trip == nil:
		return now.Trip.At.After(before.Counted)
	}
	return now.Trip.At.After(before.Trip.At)
}

// newer are the times that were not there before.
func newer(now, was map[string]time.Time) map[string]time.Time {
	more := map[string]time.Time{}
	for name, at := range now {
		if before, there := was[name]; !there || !before.Equal(at) {
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

// Unwritten is the memory of a cycle whose decision was not written, as far as anybody knows: the vote, the changes and
// what moves would have saved stand as they were before it, and the decision is pending.
func (m Memory) Unwritten(was Memory, plan string) Memory {
	pending := m.PendingOf(was, plan)
	m.Votes, m.Changes, m.Counts, m.Savings = was.Votes, was.Changes, was.Counts, was.Savings
	m.Young, m.Rebased, m.Before = was.Young, was.Rebased, was.Before
	m.Even, m.Unit = was.Even, was.Unit // the references that make the unit are the plan's
	m.Sizes = m.Sizes.undecided(was.Sizes)
	m.Changes.Pending = pending
	return m
}

// decided is what of the sizes a decision sets.
func (s Sizes) decided() Sizes {
	return Sizes{Changes: s.Changes, Resizes: s.Resizes, Killed: s.Killed, Held: s.Held, Written: s.Written}
}

// undecided has that as it was.
func (s Sizes) undecided(was Sizes) Sizes {
	s.Changes, s.Resizes, s.Killed, s.Held, s.Written = was.Changes, was.Resizes, was.Killed, was.Held, was.Written
	return s
}
