// Package wish is what the policies want of each replica, by what stands, what was seen in use and what nodes have room for.
package wish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/size"
)

// Wishes are what the policies want, and what their rules remember of it.
type Wishes struct {
	size.Result
	States size.States
	Back   *memory.SizesBack // in place of what the policies want
	Asked  map[int]bool      // ordinals whose size is from there, or that stay as large as their nodes have room for
	Unfit  map[int]memory.Unfit
	Beyond map[int]size.Resources // what of the wishes is beyond what nodes have room for, by ordinal
}

// Make asks the rules. Who grows at once gets what they compute, whatever holds that back.
func Make(q question.Question, v View) (w Wishes) {
	asked := asks(q, v)
	w.Result, w.States = size.Evaluate(asked, q.Memory.Rules)
	w.keep(q, v, asked)
	w.rest(q, v, asked)
	defer w.answerKills(q, v)
	if len(v.Urgent) == 0 {
		return w
	}
	for i := range asked.Rules {
		asked.Rules[i].DelayUp, asked.Rules[i].DelayDown, asked.Rules[i].Smoothing = size.Delay{}, size.Delay{}, nil
	}
	asked.InForce = nil
	raw, _ := size.Evaluate(asked, nil)
	for replica := range v.Urgent {
		w.Sizes[replica] = quantity.Larger(w.Sizes[replica], raw.Sizes[replica])
	}
	return w
}

// asks is what the sizes follow from.
func asks(q question.Question, v View) size.Question {
	return size.Question{Rules: sampled(q.Size.Merged(), q.Interval), Inputs: q.Readings, Replicas: q.Ordinals(), Uniform: q.Uniform(),
		InForce: v.Current, Found: quantity.Of(v.Found), Headroom: q.Size.Headrooms(), Peak: v.used(q), NodeCap: q.NodeCap, Held: true, Now: q.Now}
}

// keep leaves a replica as large as it is where only a delay of growth, or smoothing, keeps its wish smaller: it grew at once for
// clusters that came, and would shrink now and grow again once the delay is over.
func (w Wishes) keep(q question.Question, v View, asked size.Question) {
	rules := slices.Clone(asked.Rules)
	delayed := false
	for i := range rules {
		delayed = delayed || rules[i].DelayUp != size.Delay{} || rules[i].Smoothing != nil
		rules[i].DelayUp, rules[i].Smoothing = size.Delay{}, nil
	}
	if !delayed {
		return
	}
	asked.Rules = rules
	eager, _ := size.Evaluate(asked, q.Memory.Rules)
	for replica, wanted := range w.Sizes {
		w.Sizes[replica] = quantity.Larger(wanted, quantity.Smaller(eager.Sizes[replica], v.Current[replica]))
	}
}

// Problems name the replicas that are to be larger than a node.
func (w Wishes) Problems() (all []problem.Problem) {
	for _, replica := range slices.Sorted(maps.Keys(w.Capped)) {
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Kind: "NodeTooSmall", Message: fmt.Sprintf(
			"replica %d is to have more %s than size.nodeCap, or memoryInUse without one than four times its first limit: "+
				"it gets that, and its clusters need more replicas or a larger node",
			replica, strings.Join(w.Capped[replica], " and "))})
	}
	return all
}

// sampled are rules whose percentiles are of one sample an interval, however often cycles run.
func sampled(rules []size.Rule, interval time.Duration) []size.Rule {
	for i, r := range rules {
		if r.Smoothing != nil {
			smoothing := *r.Smoothing
			smoothing.Every = interval
			rules[i].Smoothing = &smoothing
		}
	}
	return rules
}
