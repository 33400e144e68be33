package resize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/size"
)

// wishes are what the policies want, and what their rules remember of it.
type wishes struct {
	size.Result
	states size.States
	back   *memory.SizesBack // in place of what the policies want
	asked  map[int]bool      // ordinals whose size is from there, or that stay as large as their nodes have room for
	unfit  map[int]memory.Unfit
	beyond map[int]size.Resources // what of the wishes is beyond what nodes have room for, by ordinal
}

// wish asks the rules. Who grows at once gets what they compute, whatever holds that back.
func wish(q Question, v view) (w wishes) {
	asked := asks(q, v)
	w.Result, w.states = size.Evaluate(asked, q.Memory.Rules)
	w.keep(q, v, asked)
	w.rest(q, v, asked)
	defer w.answerKills(q, v)
	if len(v.urgent) == 0 {
		return w
	}
	for i := range asked.Rules {
		asked.Rules[i].DelayUp, asked.Rules[i].DelayDown, asked.Rules[i].Smoothing = size.Delay{}, size.Delay{}, nil
	}
	asked.InForce = nil
	raw, _ := size.Evaluate(asked, nil)
	for replica := range v.urgent {
		w.Sizes[replica] = larger(w.Sizes[replica], raw.Sizes[replica])
	}
	return w
}

// asks is what the sizes follow from.
func asks(q Question, v view) size.Question {
	return size.Question{Rules: sampled(q.Size.Merged(), q.Interval), Inputs: q.Readings, Replicas: q.ordinals(), Uniform: q.uniform(),
		InForce: v.now, Found: quantitiesOf(v.found), Headroom: q.Size.Headrooms(), Peak: v.used(q), NodeCap: q.NodeCap, Held: true, Now: q.Now}
}

// keep leaves a replica as large as it is where only a delay of growth, or smoothing, keeps its wish smaller: it grew at once for
// clusters that came, and would shrink now and grow again once the delay is over.
func (w wishes) keep(q Question, v view, asked size.Question) {
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
		w.Sizes[replica] = larger(wanted, smaller(eager.Sizes[replica], v.now[replica]))
	}
}

// rows are what each rule made of each input, for people, and whose rule it is.
func (w wishes) rows(of config.Size) (all []SizeRow) {
	policies := map[string]string{}
	for _, row := range w.Rows {
		name := ruleName(row.Rule)
		if _, known := policies[name]; !known {
			policies[name] = of.PolicyOf(row.Rule)
		}
		all = append(all, SizeRow{Policy: policies[name], Rule: name, Replica: row.Replica, Input: row.Input, Known: row.Known,
			Fullest:  row.Replica == size.All && row.Rule.Scope == size.Replica,
			Computed: sizeText(row.Rule.Resource, row.Computed), Value: sizeText(row.Rule.Resource, row.Value), Held: row.Held})
	}
	return all
}

// problems name the replicas that are to be larger than a node.
func (w wishes) problems() (all []problem.Problem) {
	for _, replica := range slices.Sorted(maps.Keys(w.Capped)) {
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Kind: "NodeTooSmall", Message: fmt.Sprintf(
			"replica %d is to have more %s than size.nodeCap, or memoryInUse without one than four times its first limit: "+
				"it gets that, and its clusters need more replicas or a larger node",
			replica, strings.Join(w.Capped[replica], " and "))})
	}
	return all
}

// ruleName is how people know a rule.
func ruleName(r size.Rule) string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%s/%s", r.List, r.Resource, r.Name), "/")
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
