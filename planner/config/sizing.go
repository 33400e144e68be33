package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size"
)

// Merged are the rules of all policies as they hold.
func (s Size) Merged() []size.Rule {
	all := s.All()
	policies := make([]size.Policy, len(all))
	for i, p := range all {
		policies[i] = size.Policy{Name: p.Name, Priority: p.Priority}
		for _, r := range p.Rules {
			policies[i].Rules = append(policies[i].Rules, s.Rule(r))
		}
	}
	return size.Merge(policies)
}

// PolicyOf is the name of the policy whose rule that is.
func (s Size) PolicyOf(r size.Rule) string {
	name, highest := "", 0
	for _, p := range s.All() {
		for _, own := range p.Rules {
			same := string(own.List) == string(r.List) && own.Resource == r.Resource && own.Name == r.Name
			if same && (name == "" || p.Priority > highest) {
				name, highest = p.Name, p.Priority
			}
		}
	}
	return name
}

// Rule is one as it is evaluated. All are the controller's: one for another container is refused.
func (s Size) Rule(r SizeRule) size.Rule {
	rule := size.Rule{Name: r.Name, List: size.List(r.List), Resource: r.Resource, Base: r.Base.Parsed(),
		Slope: r.Slope.Parsed(),
		Input: r.Input, Scope: size.Scope(r.Scope), Per: r.Per.Parsed(), Min: r.Min.optional(), Max: r.Max.optional(),
		DelayUp: r.DelayScaleUp.delay(), DelayDown: r.DelayScaleDown.delay()}
	for _, segment := range r.Segments {
		rule.Segments = append(rule.Segments, size.Segment{At: segment.At.Parsed(), Every: segment.Every.Parsed()})
	}
	switch {
	case r.Scope != "":
	case r.Input == "", IsOfFleet(r.Input):
		rule.Scope = size.Total
	default:
		rule.Scope = size.Replica
	}
	if q := r.Quantize; q != nil {
		rule.Quantum = &size.Quantum{Base: q.Base.Parsed(), Step: q.Step.Parsed(), Ratio: q.StepRatio.Float(),
			MaxStep: q.MaxStep.Parsed()}
	}
	if m := r.Smooth; m != nil {
		rule.Smoothing = &size.Smoothing{Target: 10 * int(m.Target), Low: 10 * int(m.Low), High: 10 * int(m.High),
			Samples: m.Samples}
	}
	return rule
}

// mostSeconds is beyond what any field may have, and no overflow.
const mostSeconds = 1 << 30

func (d *SizeDelay) delay() size.Delay {
	if d == nil {
		return size.Delay{}
	}
	return size.Delay{Max: d.Max.Parsed(), For: time.Duration(min(max(d.DelaySeconds, -1), mostSeconds)) * time.Second}
}

// optional is the quantity; nil where there is none.
func (q Quantity) optional() *resource.Quantity {
	if q == "" {
		return nil
	}
	parsed := q.Parsed()
	return &parsed
}

// Headrooms are how far limits lie above requests, by resource.
func (s Size) Headrooms() map[string]size.Headroom {
	out := map[string]size.Headroom{}
	for name, h := range map[string]*Headroom{size.CPU: s.Limits.CPU, size.Memory: s.Limits.Memory} {
		if h != nil {
			out[name] = size.Headroom{Value: h.Value.optional(), Percent: int(h.Percentage)}
		}
	}
	return out
}

// Cap is the most of each resource that one replica may request, as it is written.
func (s Size) Cap() map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for name, most := range map[string]Quantity{size.CPU: s.NodeCap.CPU, size.Memory: s.NodeCap.Memory} {
		if most != "" {
			out[name] = most.Parsed()
		}
	}
	return out
}
