package wish

import (
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/size"
)

// Make asks the rules. Who grows at once gets what they compute, whatever holds that back.
func Make(q question.Question, v View) (w Wishes) {
	sizes := questionOf(q, v)
	w.Result, w.States = size.Evaluate(sizes, q.Memory.Rules)
	w.keep(q, v, sizes)
	w.rest(q, v, sizes)
	defer w.answerKills(q, v)
	if len(v.Urgent) == 0 {
		return w
	}
	for i := range sizes.Rules {
		sizes.Rules[i].DelayUp, sizes.Rules[i].DelayDown, sizes.Rules[i].Smoothing = size.Delay{}, size.Delay{}, nil
	}
	sizes.InForce = nil
	raw, _ := size.Evaluate(sizes, nil)
	for replica := range v.Urgent {
		w.Sizes[replica] = quantity.Larger(w.Sizes[replica], raw.Sizes[replica])
	}
	return w
}
