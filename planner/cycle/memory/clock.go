package memory

import (
	"slices"
	"time"

	"ballast/planner/change/harm"
	"ballast/planner/cycle/track"
)

// Until is the memory with every time that lies in the future taken as now: a clock that was ahead once must hide
// nothing, and hold nothing back, until it is reached again. What has a rule of its own for a clock that went back
// keeps it: votes, the ledger, failovers, replicas.
func (m Memory) Until(now time.Time) Memory {
	if w := m.Changes.Watch; !w.Over.IsZero() && w.Ended.After(now) {
		m.Changes.Watch = harm.Watch{} // it was over before the clock went back, and no earlier hour revives it
	}
	track.NotAhead(now,
		&m.HoldOff, &m.Rebased, &m.Refused, &m.Heaviest.At, &m.Spare.At, &m.Even.At, &m.Evidence.At, &m.Evidence.Above,
		&m.Savings.At, &m.Savings.Back,
		&m.Known.FreshSince, &m.Known.JoinedSince, &m.Known.ShrunkFirst, &m.Known.ShrunkSince, &m.Known.UnsureSince,
		&m.Changes.Stopped, &m.Changes.PinFailed, &m.Changes.Restarted, &m.Changes.Looked, &m.Changes.Counted,
		&m.Changes.Watch.Began, &m.Changes.Watch.Ended, &m.Changes.Watch.Over,
		&m.Changes.Ownership.Newest, &m.Changes.Ownership.Followed, &m.Changes.Ownership.Begun)
	for _, times := range []*map[string]time.Time{
		&m.Gone, &m.Young, &m.Known.Lost, &m.Known.Twins, &m.Changes.Pinned, &m.Changes.Failed, &m.Changes.Suspect,
		&m.Changes.Moved, &m.Changes.Blocked,
		&m.Changes.Ownership.Lost, &m.Changes.Ownership.Doubled, &m.Changes.Ownership.Astray,
	} {
		*times = track.MapUntil(*times, now)
	}
	m.Changes.Ownership.Settings = slices.Clone(m.Changes.Ownership.Settings)
	for i := range m.Changes.Ownership.Settings {
		track.NotAhead(now, &m.Changes.Ownership.Settings[i].Since, &m.Changes.Ownership.Settings[i].Seen)
	}
	m.Changes.Failures = m.Changes.Failures.Until(now)
	m.Usage = m.Usage.Until(now)
	m.Sizes = m.Sizes.until(now)
	m.Counts = m.Counts.until(now)
	return m
}
