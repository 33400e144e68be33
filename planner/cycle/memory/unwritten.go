package memory

// Unwritten is the memory of a cycle whose decision was not written: the vote and the changes stand as they were before it.
func (m Memory) Unwritten(was Memory) Memory {
	m.Votes, m.Changes, m.Counts = was.Votes, was.Changes, was.Counts
	m.Young, m.Rebased, m.Before = was.Young, was.Rebased, was.Before
	then, now := was.Sizes, &m.Sizes
	now.Changes, now.Resizes, now.Killed, now.Held, now.Written = then.Changes, then.Resizes, then.Killed, then.Held, then.Written
	return m
}
