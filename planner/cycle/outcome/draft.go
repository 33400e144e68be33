package outcome

import (
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
)

// Draft is an outcome in the making: what the cycle was given, what it found out so far, and what is to be said of it.
type Draft struct {
	In          input.Inputs
	Out         Outcome
	Notes       []string         // what changed, in words
	Indexes     []plan.LoadIndex // of Out.Fleet.Clusters
	Provisional string           // what of the references is not certain yet
}

// Tell adds what people are told of.
func (d *Draft) Tell(p problem.Problem) { d.Out.Problems = append(d.Out.Problems, p) }

// Note adds why the plan changed.
func (d *Draft) Note(s string) { d.Notes = append(d.Notes, s) }

// Counts are this cycle's.
func (d *Draft) Counts() *Counts {
	if d.Out.Counts == nil {
		d.Out.Counts = &Counts{}
	}
	return d.Out.Counts
}
