package question

import (
	"maps"

	"ballast/planner/plan"
)

// PodTemplate is what is known of the sizes in the pod template.
type PodTemplate struct {
	is      *plan.Resources // as it stands
	was     *plan.Resources // before ballast held it
	written *plan.Resources // as ballast wrote it last
	held    *plan.Resources // what the plan holds it at
}

func (q Question) PodTemplate() PodTemplate {
	return PodTemplate{is: q.Template, was: q.Memory.Found, written: q.Memory.Written, held: q.Plan.Resources}
}

// Found is the pod template as people have it: what the plan holds there, or held and nobody changed since, as it was before that; all
// else as it is.
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

// peoples are the quantities of a list that are people's: those that are ours as they were, the others as they are. nil: none.
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

// Left is what the template has as ballast wrote it, held now or no more: nobody takes a quantity out of it that no rule makes
// any more.
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

// foundAnew reports whether the template is as people have it. As long as it is as ballast wrote it, what it had before counts.
func (t PodTemplate) foundAnew() bool {
	if t.was == nil {
		return true
	}
	ours := t.written != nil && t.is != nil && t.is.Same(*t.written)
	return t.held == nil && !ours
}
