package wish

import (
	"math/big"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/size"
	"ballast/planner/size/rational"
)

// spare is how much more, in percent, a size on a lower level must have room for before it is wanted: an input that swings about a
// level's edge would have a replica resized for every swing.
const spare = 10

// rest leaves a replica on the level that it has where a tenth more of its inputs would need that level. It goes by what stands and
// not by what a rule wanted once, so that a spike that the rules of change held back makes nothing grow later.
func (w Wishes) rest(q question.Question, v View, asked size.Question) {
	rules, leveled := slices.Clone(asked.Rules), map[string]bool{}
	for i, r := range rules {
		rules[i].DelayUp, rules[i].Smoothing = size.Delay{}, nil
		if r.Quantum != nil {
			rules[i].Slope, leveled[r.Resource] = spared(r.Slope), true
		}
	}
	if len(leveled) == 0 {
		return
	}
	asked.Rules = rules
	more, _ := size.Evaluate(asked, q.Memory.Rules)
	for replica, wanted := range w.Sizes {
		stays := size.Resources{Requests: keeping(wanted.Requests, more.Sizes[replica].Requests, v.Current[replica].Requests, leveled),
			Limits: keeping(wanted.Limits, more.Sizes[replica].Limits, v.Current[replica].Limits, leveled)}
		follow(stays, wanted, more.Sizes[replica], v.Current[replica], asked.Rules)
		w.Sizes[replica] = quantity.Over(wanted, stays)
	}
}

// follow has a limit that no rule makes go with a request that stays on its level: it is that of a tenth more, and no more than stands.
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

// keeping are the quantities of levels that stay as they stand: they are to shrink, and with more of their inputs are not.
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
