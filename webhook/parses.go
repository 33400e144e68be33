package webhook

import (
	"ballast/planner/plan"
	"ballast/webhook/inforce"
	"ballast/webhook/intake"
	"ballast/webhook/rawjson"
)

// The memory that a review of the plan takes beside its body. A node of YAML takes 160 bytes, its place in its parent 8
// to 16 and its text 8, and two bytes of a flow sequence make one: up to 100 bytes a byte. An answer that puts a plan
// back holds it as text, as a patch, in base64 and in the answer: measured, up to 11 bytes a byte, and twice that of
// characters that are two in an escape. What weighs more than parseMost counts as that. People's
// pins, beside the largest plan, weigh no more than parseLight: those have a budget of their own, so that no flood of
// heavier reviews keeps one waiting, however many of them fit in beside each other.
const (
	parseLight = 20 << 20
	parseMost  = 44 << 20
	parseCost  = 100 // a byte of text that is decoded
	answerCost = 16  // a byte of the plan that may be put back
)

// parses are the budgets of what is decoded.
type parses struct{ light, heavy *intake.Budget }

func newParses() parses { return parses{intake.NewBudget(parseLight), intake.NewBudget(parseMost)} }

// of is the budget that a weight is taken from.
func (p parses) of(weight int64) *intake.Budget {
	if weight <= parseLight {
		return p.light
	}
	return p.heavy
}

// reserved is a part of the budget of parses; the zero one is none.
type reserved struct {
	of     *intake.Budget
	weight int64
}

// shrink gives all of it back but so much.
func (r *reserved) shrink(to int64) {
	if r.weight > to {
		r.of.Release(r.weight - to)
		r.weight = to
	}
}

// weight is what a review of the plan takes, told before anything of it is decoded. A plan that was read before is not
// decoded.
func (rv *review) weight(kept *inforce.Stored) int64 {
	text, weight := "", int64(0)
	if kept != nil {
		text, weight = kept.Text, int64(len(kept.Text))*answerCost
	}
	weight += int64(len(rv.old.Field("metadata").Field("annotations"))) * answerCost
	for _, object := range []rawjson.Node{rv.object, rv.old} {
		for key, data := range object.Members {
			if !key.Is("data") {
				continue
			}
			for key, value := range data.Members {
				if key.Is(plan.KeyPins) || key.Is(plan.KeyPlan) && !value.Is(text) {
					weight += int64(len(value)) * parseCost
				}
			}
		}
	}
	return min(weight, parseMost)
}
