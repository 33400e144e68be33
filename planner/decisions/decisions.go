// Package decisions says what a plan changed of the one before it, as far as the history keeps plans.
package decisions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ballast/planner/plan"
	"ballast/planner/plural"
)

// Change is what differs between two plans that followed each other. Its zero value is no difference.
type Change struct {
	Mode     *Modes    `json:"mode,omitempty"`
	Replicas *Replicas `json:"replicas,omitempty"`
	Sizes    bool      `json:"sizes,omitempty"` // what pods, or the pod template, are held at
	Moves    []Move    `json:"moves,omitempty"` // by cluster
	Came     int       `json:"came,omitempty"`  // clusters that the plan before did not have
	Went     int       `json:"went,omitempty"`  // clusters that only the plan before has
}

// Modes are two that followed each other.
type Modes struct {
	From plan.Mode `json:"from"`
	To   plan.Mode `json:"to"`
}

// Replicas are two numbers of them that followed each other.
type Replicas struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Move is a cluster that changed its replica.
type Move struct {
	Cluster string `json:"cluster"`
	From    int    `json:"from"`
	To      int    `json:"to"`
}

// Between is what changed from a plan to a later one.
func Between(before, after plan.Plan) Change {
	var c Change
	if before.Mode != after.Mode {
		c.Mode = &Modes{before.Mode, after.Mode}
	}
	if before.Replicas != after.Replicas {
		c.Replicas = &Replicas{before.Replicas, after.Replicas}
	}
	c.Sizes = !before.Sizes.Same(after.Sizes) || !sameResources(before.Resources, after.Resources)
	for _, cluster := range slices.Sorted(maps.Keys(after.Clusters)) {
		row := after.Clusters[cluster]
		switch was, there := before.Clusters[cluster]; {
		case !there:
			c.Came++
		case was.Replica != row.Replica:
			c.Moves = append(c.Moves, Move{cluster, was.Replica, row.Replica})
		}
	}
	for cluster := range before.Clusters {
		if _, there := after.Clusters[cluster]; !there {
			c.Went++
		}
	}
	return c
}

func sameResources(a, b *plan.Resources) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(*b)
}

// Words are a few for each kind of difference.
func (c Change) Words() []string {
	var words []string
	if c.Mode != nil {
		words = append(words, fmt.Sprintf("mode %s → %s", cmp.Or(c.Mode.From, plan.Observe),
			cmp.Or(c.Mode.To, plan.Observe)))
	}
	if c.Replicas != nil {
		words = append(words, fmt.Sprintf("%d → %s", c.Replicas.From, plural.Of(c.Replicas.To, "replica")))
	}
	for _, d := range []struct {
		n    int
		what string
	}{{len(c.Moves), "moved"}, {c.Came, "new"}, {c.Went, "gone"}} {
		if d.n > 0 {
			words = append(words, plural.Of(d.n, "cluster")+" "+d.what)
		}
	}
	if c.Sizes {
		words = append(words, "sizes changed")
	}
	return words
}
