package overview

import (
	"errors"
	"fmt"
	"strings"

	"ballast/cmd/ballast/say"
	"ballast/planner/status"
)

// exitNeeds is the exit code where something waits for a person; as in doctor and watch, 1 is left to what could not be looked at.
const exitNeeds = 2

// CollectNeeds is what does not become well by itself. What people asked for, and what ends by itself, is none of it: a freeze, a
// mode that only observes, a rollout within its time, a hold-off.
func (s *Overview) CollectNeeds() []string {
	var list []string
	add := func(when bool, format string, args ...any) {
		if when {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(s.Plan == nil, "there is no plan in force")
	add(s.Owner != nil, "another installation plans for this workload")
	add(!s.LookedAt.IsZero() && s.Now.Sub(s.LookedAt) > outdated, "no leader has looked for %s", say.Span(s.Now.Sub(s.LookedAt)))
	for _, c := range s.Conditions {
		add(bad(c), "%s is %s: %s", c.Type, c.Status, c.Reason)
	}
	add(s.Rollout != nil && s.Rollout.Late, "the rollout is past its deadline")
	add(len(s.PinProblems) > 0, "%s cannot be read", say.Plural(len(s.PinProblems), "pin"))
	add(s.Rollout == nil && len(s.Drift) > 0, "%s from the plan", say.Plural(len(s.Drift), "difference"))
	return list
}

// bad reports whether a condition is one that a person has to look into.
func bad(c status.Condition) bool {
	switch c.Type {
	case status.Planning:
		return c.Status == status.False && c.Reason != status.Paused && c.Reason != status.HeldOff
	case status.Enforced:
		return c.Status == status.False && c.Reason != status.Observing && c.Reason != status.NoPlan
	case status.Degraded:
		return c.Status == status.True
	}
	return false
}

// Needed is the error that the command ends with, nil where nobody is needed.
func (s *Overview) Needed() error {
	if len(s.Needs) == 0 {
		return nil
	}
	return say.ExitWith(exitNeeds, errors.New(strings.Join(s.Needs, "; ")))
}
