// Package resize decides how large each replica is to be in one cycle. The path is straight:
//
//	Question  what a cycle knows: the plan, pods, readings of inputs, gates, memory          resize.go
//	view      what stands: sizes in force, peaks of memory, who grows at once and why        view.go
//	wishes    what the policies make of it (package size)                                    wishes.go
//	judge     which wishes hold now, by the gates and the rules of change (package change)   judge.go
//	Answer    the plan's sizes, what is remembered, and what people are told                 held.go, sizing.go
//
// It is a function of values: no clock, no client, no logger.
package resize

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
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

	shape // by Size and Plan; Decide works it out
}

// Shut is why no size changes that way, beside the rules of change; empty: it may.
type Shut struct {
	Up, Down, Restart string
	RestartAgain      time.Time // when the fleet may restart for a size again; zero: now
}

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

// Restarts reports whether every replica restarts for the sizes.
func (a Answer) Restarts() bool { return a.Sizing.Apply == config.Template && a.Sizing.Resized > 0 }

// Decide answers the sizes that hold from now on.
func Decide(q Question) Answer {
	q.shape = shapeOf(q)
	q = refusals{q}.restored()
	nodes := q.NodeCap
	q.NodeCap = q.mostByPods()
	v := viewOf(q)
	w := wish(q, v).notBelowFound(q, v)
	w.goBack(q, v)
	w.keepUnseen(q, v)
	w.stay(q, v, nodes)
	a, h := q.answer(v, w), handover{q}
	if h.handsOver() && a.Resources != nil && !h.covers(*a.Resources) {
		q.Shut.Restart = "the pod template takes over from size.apply: inPlace once all that it is to hold may change"
		a = q.answer(v, w)
	}
	if h.handsOver() && a.Resources == nil { // pods stay as they are until the template holds them
		a.Sizes = q.Plan.Sizes
	}
	if err := fault(q.with(a)); err != nil && fault(q.Plan) == nil {
		a.Sizes, a.Resources, a.Sizing.Resized = q.Plan.Sizes, q.Plan.Resources, 0
		a.Memory.Changes, a.Memory.Resizes, a.Memory.Killed = q.Memory.Changes, q.Memory.Resizes, q.Memory.Killed // nothing changed
		a.Problems = append(a.Problems, problem.Problem{Phase: problem.PhaseSize, Kind: "SizePolicyRefused",
			Message: "sizes stay as they are: " + err.Error()})
	}
	a.Memory.Held = inForce(q.with(a))
	refusals{q}.giveUp(&a, quantitiesOf(v.found))
	a.Sizing.Replicas = q.shownSizes(q.with(a), w.Sizes)
	if a.Resources != nil {
		left := q.podTemplate().left()
		written := resourcesOf(over(over(quantitiesOf(v.found), quantitiesOf(&left)), quantitiesOf(a.Resources)))
		a.Memory.Written = &written
	}
	if a.Sizing.Resized == 0 {
		a.Note = ""
	}
	if len(a.given) > 0 {
		a.Note = "gives up sizes that pods are refused with: " + problem.ClipList(a.given)
	}
	return a
}

// answer judges what is wanted.
func (q Question) answer(v view, w wishes) Answer {
	j := judge{Question: q, view: v, wanted: w.Result, asked: w.asked, unfit: w.unfit, beyond: w.beyond, out: &Sizing{Apply: q.apply(), Rules: w.rows(q.Size), Unmet: q.Unmet}}
	j.Memory.Found, j.Memory.Peaks, j.Memory.Killed, j.Memory.Rules = v.found, v.peaks, maps.Clone(v.killed), w.states
	j.Memory.NoRoom, j.Memory.Back, j.Memory.Unfit = nodeRoom{q}.noRoom(w.beyond), w.back, w.unfit
	j.Memory.Cramped = q.cramped(w)
	sizes := j.decide()
	a := Answer{Sizing: j.out, Memory: j.Memory, Problems: slices.Concat(w.problems(), v.problems(), nodeRoom{q}.tight(), w.unfitting()), Note: q.note(j.out.Resized, j.changed)}
	if q.template() {
		a.Resources = held(sizes[0])
	} else {
		a.Sizes = rows(q.ordinals(), sizes)
	}
	return a
}

func (q Question) apply() config.SizeApply { return cmp.Or(q.Size.Apply, config.InPlace) }

// resources are those that have a size.
func resources() []string { return []string{size.CPU, size.Memory} }

func (q Question) rules(resource string) change.Rules { return q.Change.SizeRules(resource) }

// held is what a plan holds a replica at; nil: nothing. In place it takes over what the template is held at; the other way round
// the template is another thing than its pods.
func (q Question) held(p plan.Plan, replica int) *plan.Resources {
	if q.template() || p.Sizes == nil {
		return p.Resources
	}
	if held, ok := p.SizeOf(replica); ok {
		return &held
	}
	return nil
}

// with is the plan with the sizes of an answer.
func (q Question) with(a Answer) plan.Plan {
	p := q.Plan
	p.Sizes, p.Resources = a.Sizes, a.Resources
	return p
}

// fault is what a plan may not have beside its rows.
func fault(p plan.Plan) error {
	p.Clusters, p.Groups, p.Rollout = nil, nil, nil
	return p.Validate()
}

// note says what this cycle resizes.
func (q Question) note(resized int, changed []string) string {
	if q.template() {
		return "the pod template gets another size, for which every replica restarts: " + problem.ClipList(changed)
	}
	return "resizes " + problem.Plural(resized, "replica") + " in place: " + problem.ClipList(changed)
}

// shownSizes are the sizes that are wanted and those that a plan holds, for people.
func (q Question) shownSizes(p plan.Plan, wanted map[int]size.Resources) (all []ReplicaSize) {
	for _, replica := range q.ordinals() {
		shown := ReplicaSize{Replica: q.shown(replica), Wanted: resourcesOf(wanted[replica])}
		if held := q.held(p, replica); held != nil {
			shown.InForce = *held
		}
		all = append(all, shown)
	}
	return all
}
