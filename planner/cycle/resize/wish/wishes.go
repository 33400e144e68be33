// Package wish is what the policies want of each replica, by what stands, what was seen in use and what nodes have room
// for.
package wish

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/size"
	"ballast/planner/size/rational"
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

// keep leaves a replica as large as it is where only a delay of growth, or smoothing, keeps its wish smaller: it grew
// at once for clusters that came, and would shrink now and grow again once the delay is over.
func (w Wishes) keep(q question.Question, v View, sizes size.Question) {
	rules := slices.Clone(sizes.Rules)
	delayed := false
	for i := range rules {
		delayed = delayed || rules[i].DelayUp != size.Delay{} || rules[i].Smoothing != nil
		rules[i].DelayUp, rules[i].Smoothing = size.Delay{}, nil
	}
	if !delayed {
		return
	}
	sizes.Rules = rules
	eager, _ := size.Evaluate(sizes, q.Memory.Rules)
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

// spare is how much more, in percent, a size on a lower level must have room for before it is wanted: an input that
// swings about a level's edge would have a replica resized for every swing.
const spare = 10

// rest leaves a replica on the level that it has where a tenth more of its inputs would need that level. It goes by
// what stands and not by what a rule wanted once, so that a spike that the rules of change held back makes nothing grow
// later.
func (w Wishes) rest(q question.Question, v View, sizes size.Question) {
	rules, leveled := slices.Clone(sizes.Rules), map[string]bool{}
	for i, r := range rules {
		rules[i].DelayUp, rules[i].Smoothing = size.Delay{}, nil
		if r.Quantum != nil {
			rules[i].Slope, leveled[r.Resource] = spared(r.Slope), true
		}
	}
	if len(leveled) == 0 {
		return
	}
	sizes.Rules = rules
	more, _ := size.Evaluate(sizes, q.Memory.Rules)
	for replica, wanted := range w.Sizes {
		stays := size.Resources{Requests: keeping(wanted.Requests, more.Sizes[replica].Requests,
			v.Current[replica].Requests, leveled),
			Limits: keeping(wanted.Limits, more.Sizes[replica].Limits, v.Current[replica].Limits, leveled)}
		follow(stays, wanted, more.Sizes[replica], v.Current[replica], sizes.Rules)
		w.Sizes[replica] = quantity.Over(wanted, stays)
	}
}

// follow has a limit that no rule makes go with a request that stays on its level: it is that of a tenth more, and no
// more than stands.
func follow(stays, wanted, more, now size.Resources, rules []size.Rule) {
	for name := range stays.Requests {
		ruled := slices.ContainsFunc(rules, func(r size.Rule) bool { return r.List == size.Limits && r.Resource == name })
		limit, limited := more.Limits[name]
		if ruled || !limited {
			continue
		}
		if most, stands := now.Limits[name]; stands && most.Cmp(limit) < 0 {
			limit = most
		}
		if least := wanted.Limits[name]; limit.Cmp(least) > 0 {
			stays.Limits[name] = limit
		}
	}
}

// keeping are the quantities of levels that stay as they stand: they are to shrink, and with more of their inputs are
// not.
func keeping(wanted, more, now map[string]resource.Quantity, leveled map[string]bool) map[string]resource.Quantity {
	stay := map[string]resource.Quantity{}
	for name, q := range wanted {
		stands, larger := now[name], more[name]
		if leveled[name] && stands.Cmp(q) > 0 && larger.Cmp(stands) >= 0 {
			stay[name] = stands
		}
	}
	return stay
}

// spared is the slope by which a tenth more of an input counts; of one below 0, by which a tenth less does.
func spared(slope resource.Quantity) resource.Quantity {
	times := big.NewRat(100+spare, 100)
	if slope.Sign() < 0 {
		times.Inv(times)
	}
	return rational.Times(slope, times)
}
