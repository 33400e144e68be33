package resize

import (
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/plan"
)

// Answer is what a cycle takes over. Of Sizes and Resources one at most is set; see plan.Plan.
type Answer struct {
	Sizes     *plan.Sizes
	Resources *plan.Resources
	Sizing    *Sizing
	Memory    memory.Sizes
	Problems  []problem.Problem
	Note      string // what this cycle resizes, in words; empty: nothing

	given []string // whose sizes are given up by this cycle, in words
}

// with is the plan with the sizes of an answer.
func with(q question.Question, a Answer) plan.Plan {
	p := q.Plan
	p.Sizes, p.Resources = a.Sizes, a.Resources
	return p
}
