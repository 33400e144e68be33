package cycle

import "ballast/planner/cycle/outcome"

// What Run answers, and its parts.
type (
	Outcome   = outcome.Outcome
	Candidate = outcome.Candidate
	Move      = outcome.Move
	InUse     = outcome.InUse
	Line      = outcome.Line
	Counts    = outcome.Counts
)
