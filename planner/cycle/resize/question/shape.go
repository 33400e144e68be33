package question

import (
	"fmt"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Shape is which sizes there are: one for each replica, or one for all.
type Shape struct {
	inTemplate bool // the pod template has it
	One        bool // of a Deployment nobody knows which pod is which, and a template is for all
	replicas   int
}

func ShapeOf(q Question) Shape {
	inTemplate := q.Apply() == config.Template
	return Shape{inTemplate: inTemplate, One: inTemplate || q.Plan.Target.Kind == plan.Deployment, replicas: q.Replicas}
}

func (s Shape) InTemplate() bool { return s.inTemplate }

// Uniform reports whether one size is for all.
func (s Shape) Uniform() bool { return s.One }

// Ordinals are the replicas that have a size of their own: the first stands for all where there is one for all.
func (s Shape) Ordinals() []int {
	if s.One {
		return []int{0}
	}
	return s.All()
}

// All are the replicas, whatever they share.
func (s Shape) All() []int {
	out := make([]int, s.replicas)
	for r := range out {
		out[r] = r
	}
	return out
}

// Of is the ordinal that a replica's size stands under.
func (s Shape) Of(replica int) int {
	if s.One {
		return 0
	}
	return replica
}

// Shown is the ordinal that people are told.
func (s Shape) Shown(replica int) int {
	if s.One {
		return size.All
	}
	return replica
}

// Named is a replica, in words.
func (s Shape) Named(replica int) string {
	if s.One {
		return "every replica's"
	}
	return fmt.Sprintf("replica %d's", replica)
}

// Subject is a replica, as what a problem is of.
func (s Shape) Subject(replica int) string {
	if s.One {
		return "every replica"
	}
	return fmt.Sprintf("replica %d", replica)
}
