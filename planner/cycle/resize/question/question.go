// Package question is all that the sizes of one cycle depend on, and what follows from it before anything is wished.
package question

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Question is all that the sizes of one cycle depend on.
type Question struct {
	Now       time.Time
	Interval  time.Duration // at which inputs are sampled: cycles may come more often
	Size      config.Size
	Change    config.Change
	Plan      plan.Plan // as this cycle leaves it, with the sizes that were in force
	Replicas  int       // that have a size: those that there are, and those that come
	Template  *plan.Resources
	Pods      []observed.Pod
	Readings  map[string]size.Reading
	Seen      map[string]bool              // inputs that say what pods have had: of clusters that come they say nothing
	NodeCap   map[string]resource.Quantity // the most of each resource that one replica may request; absent: not known
	Clusters  map[int]int                  // by replica, as far as it has any
	Receivers map[int]bool                 // replicas that clusters are about to come to
	Givers    map[int]bool                 // those that clusters are about to leave
	Leavers   map[int]bool                 // those of them that clusters of the present wave have left
	Over      map[int]bool                 // replicas that carry more than a person said that they may
	Unmet     []diff.Unmet                 // pods that have not got the size that the plan held them at
	Due       int                          // pods that are to be there; 0: nobody can tell
	Shut      Shut
	Back      Back
	Memory    memory.Sizes

	Shape // by Size and Plan; Decide works it out
}

// Shut is why no size changes that way, beside the rules of change; empty: it may.
type Shut struct {
	Up, Down, Restart string
	RestartAgain      time.Time // when the fleet may restart for a size again; zero: now
}

func (q Question) Apply() config.SizeApply { return cmp.Or(q.Size.Apply, config.InPlace) }

// Sized are those that have a size.
func Sized() []string { return []string{size.CPU, size.Memory} }

func (q Question) Rules(resource string) change.Rules { return q.Change.SizeRules(resource) }

// Held is what a plan holds a replica at; nil: nothing. In place it takes over what the template is held at; the other way round
// the template is another thing than its pods.
func (q Question) Held(p plan.Plan, replica int) *plan.Resources {
	if q.InTemplate() || p.Sizes == nil {
		return p.Resources
	}
	if held, ok := p.SizeOf(replica); ok {
		return &held
	}
	return nil
}

// Back is what a person went back to: the earlier plan in the cycle in which that is done, and how long its sizes hold then.
type Back struct {
	To  *plan.Plan
	For time.Duration
}

// NamedResources are the resources that rules name.
func (q Question) NamedResources() map[string]bool {
	names := map[string]bool{}
	for _, rule := range q.Size.Merged() {
		names[rule.Resource] = true
	}
	return names
}
