package config

import (
	"slices"

	"ballast/planner/size"
)

// MostPriority is the highest priority of a policy, and its negative the lowest.
const MostPriority = 1_000_000

// ShippedPolicy is the name of the policy that size.defaults switches on.
const ShippedPolicy = "shipped"

// shipped is what holds where an operator only says size.defaults: true: the memory that each replica's pod has in use
// and a quarter more, in steps, that of the last day at least. It has no coefficient of Argo CD's: nobody has published
// one to trust. Every rule of people's of the same list, resource and name takes its place, since nothing has a lower
// priority.
func shipped() SizePolicy {
	return SizePolicy{Name: ShippedPolicy, Priority: -MostPriority, Rules: []SizeRule{{
		List: Requests, Resource: size.Memory, Slope: "1.25", Input: InputMemoryInUse, Min: "256Mi",
		Quantize: &Quantize{Step: "256Mi"}, DelayScaleDown: &SizeDelay{DelaySeconds: 24 * 60 * 60},
	}}}
}

// All are the policies of both hands: the shipped one, where it is switched on, and people's.
func (s Size) All() []SizePolicy {
	if !s.Defaults {
		return s.Policies
	}
	return append([]SizePolicy{shipped()}, s.Policies...)
}

// SizeInputs are the inputs that the rules name, each once, sorted.
func (s Size) SizeInputs() []string {
	var inputs []string
	for _, p := range s.All() {
		for _, r := range p.Rules {
			if r.Input != "" {
				inputs = append(inputs, r.Input)
			}
		}
	}
	slices.Sort(inputs)
	return slices.Compact(inputs)
}
