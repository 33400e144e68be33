// Package resize decides how large each replica is to be in one cycle. The path is straight:
//
//	Question  what a cycle knows: the plan, pods, readings of inputs, gates, memory          package question
//	View      what stands: sizes in force, peaks of memory, who grows at once and why        package wish
//	Wishes    what the policies make of it (package size)                                    package wish
//	judge     which wishes hold now, by the gates and the rules of change (package change)   judge.go
//	Answer    the plan's sizes, what is remembered, and what people are told                 resize.go
//
// It is a function of values: no clock, no client, no logger.
package resize

import (
	"maps"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/cycle/resize/wish"
	"ballast/planner/plan"
	"ballast/planner/plural"
	"ballast/planner/size"
)

// Restarts reports whether every replica restarts for the sizes.
func (a Answer) Restarts() bool { return a.Sizing.Apply == config.Template && a.Sizing.Resized > 0 }

// Decide answers the sizes that hold from now on.
func Decide(q question.Question) Answer {
	q.Shape = question.ShapeOf(q)
	q = refusals{Question: q}.restored()
	nodes := q.NodeCap
	q.NodeCap = wish.MostByPods(q)
	v := wish.ViewOf(q)
	w := wish.Make(q, v).NotBelowFound(q, v)
	w.GoBack(q, v)
	w.KeepUnseen(q, v)
	w.Stay(q, v, nodes)
	a, h := answer(q, v, w), question.Handover{Question: q}
	if h.HandsOver() && a.Resources != nil && !h.Covers(*a.Resources) {
		q.Shut.Restart = "the pod template takes over from size.apply: inPlace once all that it is to hold may change"
		a = answer(q, v, w)
	}
	if h.HandsOver() && a.Resources == nil { // pods stay as they are until the template holds them
		a.Sizes = q.Plan.Sizes
	}
	if err := fault(with(q, a)); err != nil && fault(q.Plan) == nil {
		a.Sizes, a.Resources, a.Sizing.Resized = q.Plan.Sizes, q.Plan.Resources, 0
		a.Memory.Changes, a.Memory.Resizes, a.Memory.Killed = q.Memory.Changes, q.Memory.Resizes, q.Memory.Killed // nothing changed
		a.Problems = append(a.Problems, problem.Problem{Phase: problem.PhaseSize, Kind: "SizePolicyRefused",
			Message: "sizes stay as they are: " + err.Error()})
	}
	a.Memory.Held = question.InForce(with(q, a))
	refusals{Question: q}.giveUp(&a, quantity.Of(v.Found))
	a.Sizing.Replicas = shownSizes(q, with(q, a), w.Sizes)
	if a.Resources != nil {
		left := q.PodTemplate().Left()
		written := quantity.Resources(quantity.Over(quantity.Over(quantity.Of(v.Found), quantity.Of(&left)),
			quantity.Of(a.Resources)))
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
func answer(q question.Question, v wish.View, w wish.Wishes) Answer {
	j := judge{Question: q, View: v, wanted: w.Result, byPerson: w.Asked, unfit: w.Unfit, beyond: w.Beyond,
		out: &Sizing{Apply: q.Apply(), Rules: rowsOf(w, q.Size), Unmet: q.Unmet}}
	j.Memory.Found, j.Memory.Peaks, j.Memory.Killed, j.Memory.Rules = v.Found, v.Peaks, maps.Clone(v.Killed), w.States
	j.Memory.NoRoom, j.Memory.Back, j.Memory.Unfit = wish.NodeRoom{Question: q}.NoRoom(w.Beyond), w.Back, w.Unfit
	j.Memory.Cramped = wish.Cramped(q, w)
	sizes := j.decide()
	a := Answer{Sizing: j.out, Memory: j.Memory, Problems: slices.Concat(w.Problems(), v.Problems(),
		wish.NodeRoom{Question: q}.Tight(), w.Unfitting()), Note: note(q, j.out.Resized, j.changed)}
	if q.InTemplate() {
		a.Resources = quantity.Held(sizes[0])
	} else {
		a.Sizes = quantity.Rows(q.Ordinals(), sizes)
	}
	return a
}

// fault is what a plan may not have beside its rows.
func fault(p plan.Plan) error {
	p.Clusters, p.Groups, p.Rollout = nil, nil, nil
	return p.Validate()
}

// note says what this cycle resizes.
func note(q question.Question, resized int, changed []string) string {
	if q.InTemplate() {
		return "the pod template gets another size, for which every replica restarts: " + problem.ClipList(changed)
	}
	return "resizes " + plural.Of(resized, "replica") + " in place: " + problem.ClipList(changed)
}

// shownSizes are the sizes that are wanted and those that a plan holds, for people.
func shownSizes(q question.Question, p plan.Plan, wanted map[int]size.Resources) (all []ReplicaSize) {
	for _, replica := range q.Ordinals() {
		shown := ReplicaSize{Replica: q.Shown(replica), Wanted: quantity.Resources(wanted[replica])}
		if held := q.Held(p, replica); held != nil {
			shown.InForce = *held
		}
		all = append(all, shown)
	}
	return all
}
