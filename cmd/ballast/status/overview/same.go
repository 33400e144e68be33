package overview

import (
	"encoding/json"
	"slices"
	"time"

	"ballast/planner/cycle/problem"
	"ballast/planner/status"
)

// Same reports whether another look says the same, but for how long things are as they are.
func (s Overview) Same(other Overview) bool {
	a, errA := json.Marshal(s.timeless())
	b, errB := json.Marshal(other.timeless())
	return errA == nil && errB == nil && string(a) == string(b)
}

// timeless is what it says without what is another thing with every look: when the leader looked, ages and messages that have
// figures in them, by the side of which there is a kind or a reason.
func (s Overview) timeless() Overview {
	s.Renewed, s.LookedAt = time.Time{}, time.Time{}
	s.Conditions = each(s.Conditions, func(c *status.Condition) { c.Message = "" })
	s.Unwell = each(s.Unwell, func(u *status.Unwell) { u.Message = "" })
	s.Problems = each(s.Problems, func(p *problem.Problem) { p.Message = "" })
	s.Known = each(s.Known, func(r *status.Replica) { r.Sampled = time.Time{} })
	if s.Rollout != nil { // its deadline is worked out anew with every look, in whole seconds
		r := *s.Rollout
		r.Deadline = time.Time{}
		s.Rollout = &r
	}
	if s.Candidate != nil { // how the vote stands
		c := *s.Candidate
		c.Verdict = ""
		s.Candidate = &c
	}
	if s.Slots != nil {
		slots := *s.Slots
		slots.Slots = each(slots.Slots, func(s *SlotStatus) { s.HeartbeatAge = "" })
		s.Slots = &slots
	}
	return s
}

// each changes a copy of a list.
func each[T any](list []T, change func(*T)) []T {
	list = slices.Clone(list)
	for i := range list {
		change(&list[i])
	}
	return list
}
