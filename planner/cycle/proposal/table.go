package proposal

import (
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/snapshot"
)

// Row is one that a cycle considers: the actions of which a gate must leave one open, and the change, if there is
// any.
type Row struct {
	Asks gate.Action
	Made func(*snapshot.Snapshot) *Proposed
}

// All are in the order of their urgency: an env that gives clusters several owners, or none, is mended by its
// change alone; what must be at once and what nobody has come before what a person asks for, that before what an unwell
// replica needs otherwise, and all of it before what was elected.
func All() []Row {
	return []Row{
		{gate.SetEnv, prepare},
		{gate.FollowUp | gate.FollowOut, peoplesReplicas},
		{gate.PinOut, pinsBeyond},
		{gate.FailOver | gate.Drain, first},
		{gate.RollBack, Rollback},
		{gate.FailOver | gate.Drain, evacuation},
		{gate.Balance, followAstray},
		{gate.Balance, MakeRoom},
		{gate.Balance, Level},
	}
}
