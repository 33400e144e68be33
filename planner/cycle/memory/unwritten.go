package memory

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
