package resize

import (
	"fmt"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// shape is which sizes there are: one for each replica, or one for all.
type shape struct {
	inTemplate bool // the pod template has it
	one        bool // of a Deployment nobody knows which pod is which, and a template is for all
	replicas   int
}

func shapeOf(q Question) shape {
	inTemplate := q.apply() == config.Template
	return shape{inTemplate: inTemplate, one: inTemplate || q.Plan.Target.Kind == plan.Deployment, replicas: q.Replicas}
}

func (s shape) template() bool { return s.inTemplate }

// uniform reports whether one size is for all.
func (s shape) uniform() bool { return s.one }

// ordinals are the replicas that have a size of their own: the first stands for all where there is one for all.
func (s shape) ordinals() []int {
	if s.one {
		return []int{0}
	}
	return s.all()
}

// all are the replicas, whatever they share.
func (s shape) all() []int {
	out := make([]int, s.replicas)
	for r := range out {
		out[r] = r
	}
	return out
}

// of is the ordinal that a replica's size stands under.
func (s shape) of(replica int) int {
	if s.one {
		return 0
	}
	return replica
}

// shown is the ordinal that people are told.
func (s shape) shown(replica int) int {
	if s.one {
		return size.All
	}
	return replica
}

// named is a replica, in words.
func (s shape) named(replica int) string {
	if s.one {
		return "every replica's"
	}
	return fmt.Sprintf("replica %d's", replica)
}

// subject is a replica, as what a problem is of.
func (s shape) subject(replica int) string {
	if s.one {
		return "every replica"
	}
	return fmt.Sprintf("replica %d", replica)
}
