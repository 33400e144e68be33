// Package changerules makes rules of change of what a configuration says of them.
package changerules

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
	"ballast/planner/config"
)

// OfMoves are the rules of change for moves that level, beside their rates.
func OfMoves(c config.Change) change.Rules { return change.Rules{Moves: policy(c.Moves.Timing)} }

// OfSize are the rules of change for one resource of a replica.
func OfSize(c config.Change, resource string) change.Rules {
	return change.Rules{Up: sizePolicy(c.Up, resource), Down: sizePolicy(c.Down, resource)}
}

func sizePolicy(r config.Resizing, resource string) change.Policy {
	p := policy(r.Timing)
	p.Stabilization = time.Duration(r.StabilizationWindow)
	step := r.MinChange.Of(resource)
	if step == nil {
		step = leastChange()
	}
	if step.Value != "" {
		value := milli(step.Value.Parsed())
		p.MinChange.Value = &value
	}
	return paced(p, step.Percentage, r.Rate)
}

// leastChange is the least change where none is given: a tenth, from which on the updater of Kubernetes' VPA takes
// action (--pod-update-threshold).
func leastChange() *config.SizeStep { return &config.SizeStep{Percentage: 10} }

// weighsFor is how long fewer replicas wait that weights do not ask for, where partition.sticky.downWindow does not say
// it.
const weighsFor = config.Duration(30 * time.Minute)

// OfCount are the rules of change for the number of replicas.
func OfCount(c config.PlannerConfig) change.Rules {
	otherwise := config.Duration(0)
	if len(c.Size.Weights) > 0 {
		otherwise = weighsFor
		if c.Partition.Sticky != nil {
			otherwise = c.Partition.Sticky.DownWindow
		}
	}
	return change.Rules{Out: countPolicy(c.Change.Out, 0), In: countPolicy(c.Change.In, otherwise)}
}

func countPolicy(s config.Scaling, otherwise config.Duration) change.Policy {
	p := policy(s.Timing)
	p.Stabilization = time.Duration(otherwise)
	if s.StabilizationWindow != nil {
		p.Stabilization = time.Duration(*s.StabilizationWindow)
	}
	var step config.CountStep
	if s.MinChange != nil {
		step = *s.MinChange
	}
	if step.Value > 0 {
		value := int64(step.Value)
		p.MinChange.Value = &value
	}
	return paced(p, step.Percentage, s.Rate)
}

// paced is the direction with its least change in percent and its rate.
func paced(p change.Policy, least config.Percent, rate []config.Pace) change.Policy {
	if least > 0 {
		percent := int(least)
		p.MinChange.Percent = &percent
	}
	for _, r := range rate {
		p.Rate = append(p.Rate, change.Pace{Count: r.Replicas, Percent: r.Percent, Period: time.Duration(r.Period)})
	}
	return p
}

// policy is the direction as it is judged. The configuration was checked: what is no window is left out.
func policy(t config.Timing) change.Policy {
	p := change.Policy{Mode: t.Mode, Cooldown: time.Duration(t.Cooldown)}
	for _, w := range t.Windows {
		if window, err := maintenance.Parse(w.Begin, w.End, w.TimeZone, w.Weekdays); err == nil {
			p.Windows = append(p.Windows, window)
		}
	}
	return p
}

// milli is a quantity in thousandths, as rules of change count sizes.
func milli(q resource.Quantity) int64 {
	const most = 1 << 60
	if q.CmpInt64(most/1000) >= 0 {
		return most
	}
	return q.MilliValue()
}
