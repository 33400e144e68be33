package steering

import (
	"maps"

	"ballast/planner/plan"
)

// Surface is a kind of object that people annotate.
type Surface struct {
	annotations []annotation
	silent      []string // the names of other annotations that may be there
}

// OnPlan is the plan ConfigMap.
func OnPlan() Surface {
	s := Surface{annotations: onPlan(), silent: []string{bare(plan.AnnotationPausedBy),
		bare(plan.AnnotationPausedReason)}}
	for _, key := range plan.PlannersAnnotations() {
		s.silent = append(s.silent, bare(key))
	}
	return s
}

// OnCluster is a cluster Secret, under a plan that may have so many replicas; 0 for any number.
func OnCluster(maxReplicas int) func() Surface {
	return func() Surface { return Surface{annotations: onCluster(maxReplicas)} }
}

// OnWorkload is the application-controller's workload.
func OnWorkload() Surface { return Surface{annotations: onWorkload()} }

// Names are the annotations that steer on it, without the group.
func (s Surface) Names() []string {
	var names []string
	for _, a := range s.annotations {
		names = append(names, a.name)
	}
	return names
}

// Change is an annotation that a write adds, changes or takes away: what was asked, and what it is taken for. Each is
// printable, and empty for nothing.
type Change struct{ Name, Asked, Taken string }

// Changes are those of a write, in the order of the surface. The surface is made where there is one: few writes have
// any.
func Changes(on func() Surface, is, was map[string]string) []Change {
	if maps.Equal(is, was) {
		return nil
	}
	var changes []Change
	for _, a := range on().annotations {
		key := plan.Group + "/" + a.name
		if is[key] == was[key] {
			continue
		}
		m := a.read(is[key])
		changes = append(changes, Change{a.name, m.asked, m.taken})
	}
	return changes
}
