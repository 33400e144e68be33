// Package question is all that the sizes of one cycle depend on, and what follows from it before anything is wished.
package question

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/config/changerules"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/track"
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

// Apply is how pods come to their size.
func (q Question) Apply() config.SizeApply { return cmp.Or(q.Size.Apply, config.InPlace) }

// Sized are those that have a size.
func Sized() []string { return []string{size.CPU, size.Memory} }

// Rules are the rules of change for a resource.
func (q Question) Rules(resource string) change.Rules { return changerules.OfSize(q.Change, resource) }

// Held is what a plan holds a replica at; nil: nothing. In place it takes over what the template is held at; the other
// way round the template is another thing than its pods.
func (q Question) Held(p plan.Plan, replica int) *plan.Resources {
	if q.InTemplate() || p.Sizes == nil {
		return p.Resources
	}
	if held, ok := p.SizeOf(replica); ok {
		return &held
	}
	return nil
}

// Back is what a person went back to: the earlier plan in the cycle in which that is done, and how long its sizes hold
// then.
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

// Shape is which sizes there are: one for each replica, or one for all.
type Shape struct {
	inTemplate bool // the pod template has it
	One        bool // of a Deployment nobody knows which pod is which, and a template is for all
	replicas   int
}

// ShapeOf is the shape of the fleet that is asked about.
func ShapeOf(q Question) Shape {
	inTemplate := q.Apply() == config.Template
	return Shape{inTemplate: inTemplate, One: inTemplate || q.Plan.Target.Kind == plan.Deployment, replicas: q.Replicas}
}

// InTemplate reports whether sizes are written into the pod template.
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

// PodTemplate is what is known of the sizes in the pod template.
type PodTemplate struct {
	is      *plan.Resources // as it stands
	was     *plan.Resources // before ballast held it
	written *plan.Resources // as ballast wrote it last
	held    *plan.Resources // what the plan holds it at
}

// PodTemplate is the pod template's size, now and as it was known.
func (q Question) PodTemplate() PodTemplate {
	return PodTemplate{is: q.Template, was: q.Memory.Found, written: q.Memory.Written, held: q.Plan.Resources}
}

// Found is the pod template as people have it: what the plan holds there, or held and nobody changed since, as it was
// before that; all else as it is.
func (t PodTemplate) Found() *plan.Resources {
	was, is, held := t.was, t.is, t.held
	switch {
	case t.foundAnew():
		return is
	case held == nil, is == nil:
		return was
	}
	left := t.Left()
	return &plan.Resources{Requests: peoples(was.Requests, is.Requests, held.Requests, left.Requests),
		Limits: peoples(was.Limits, is.Limits, held.Limits, left.Limits)}
}

// peoples are the quantities of a list that are people's: those that are ours as they were, the others as they are.
// nil: none.
func peoples(was, is map[string]string, ours ...map[string]string) map[string]string {
	all := maps.Clone(is)
	for _, list := range ours {
		for name := range list {
			delete(all, name)
			text, had := was[name]
			if had && all == nil {
				all = map[string]string{}
			}
			if had {
				all[name] = text
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Left is what the template has as ballast wrote it, held now or no more: nobody takes a quantity out of it that no
// rule makes any more.
func (t PodTemplate) Left() plan.Resources {
	if t.written == nil || t.is == nil {
		return plan.Resources{}
	}
	same := func(is, written map[string]string) map[string]string {
		all := map[string]string{}
		for name, text := range is {
			if written[name] == text {
				all[name] = text
			}
		}
		return all
	}
	is, written := t.is, t.written
	return plan.Resources{Requests: same(is.Requests, written.Requests), Limits: same(is.Limits, written.Limits)}
}

// foundAnew reports whether the template is as people have it. As long as it is as ballast wrote it, what it had before
// counts.
func (t PodTemplate) foundAnew() bool {
	if t.was == nil {
		return true
	}
	ours := t.written != nil && t.is != nil && t.is.Same(*t.written)
	return t.held == nil && !ours
}

// Handover is from sizes in place to those of the pod template, or back, and from one leader to the next.
type Handover struct{ Question }

// HandsOver reports whether pods are held in place and the template is to hold them from now on.
func (q Handover) HandsOver() bool { return q.InTemplate() && q.Plan.Sizes != nil }

// Covers reports whether the template would hold all that pods are held at in place and that rules still name.
func (q Handover) Covers(template plan.Resources) bool {
	named := q.NamedResources()
	lacks := func(held, of map[string]string) bool {
		for name := range held {
			if _, there := of[name]; named[name] && !there {
				return true
			}
		}
		return false
	}
	for _, replica := range q.All() {
		if held, ok := q.Plan.SizeOf(replica); ok && (lacks(held.Requests, template.Requests) || lacks(held.Limits, template.Limits)) {
			return false
		}
	}
	return true
}

// InForce are a plan's sizes, in either way; nil: it has none.
func InForce(p plan.Plan) *plan.Sizes {
	if p.Resources != nil {
		return &plan.Sizes{Default: *p.Resources}
	}
	return p.Sizes
}

// Newer are the resources, by ordinal, of which the plan in force has another size than the memory knows of: another
// leader changed it, whose memory this one has not got, or a person had an earlier one brought back.
func (q Handover) Newer() map[int]map[string]bool {
	if q.Memory.Held == nil || InForce(q.Plan) == nil || q.HandsOver() {
		return nil
	}
	known := q.Plan
	known.Sizes, known.Resources = q.Memory.Held, nil
	if q.InTemplate() {
		known.Sizes, known.Resources = nil, &q.Memory.Held.Default
	}
	out := map[int]map[string]bool{}
	for _, replica := range q.Ordinals() {
		was, is := quantity.Of(q.Held(known, replica)), quantity.Of(q.Held(q.Plan, replica))
		for _, name := range Sized() {
			if quantity.Same(was, is, name) {
				continue
			}
			if out[replica] == nil {
				out[replica] = map[string]bool{}
			}
			out[replica][name] = true
		}
	}
	return out
}

// Released is what is remembered of sizes while no policy makes any: what replicas were seen to use and which kills
// they grew for, for as long as that counts, and what the template had.
func Released(m memory.Sizes, now time.Time) memory.Sizes {
	kept := memory.Sizes{Killed: m.Killed, Found: m.Found, Written: m.Written, Resizes: m.Resizes}
	for replica, peak := range m.Peaks {
		if peak = peak.Next(0, now); peak.Bytes == 0 {
			continue
		}
		if kept.Peaks == nil {
			kept.Peaks = map[int]track.Peak{}
		}
		kept.Peaks[replica] = peak
	}
	if kept.Peaks == nil {
		kept.Killed = nil
	}
	return kept
}

// Switches reports whether size.apply is another than the plan was made by: then its sizes are of other replicas.
func (q Handover) Switches() bool {
	return q.HandsOver() || !q.InTemplate() && q.Plan.Resources != nil
}
