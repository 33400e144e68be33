package config

import (
	"fmt"
	"slices"
	"time"

	"ballast/planner/config"
	"ballast/planner/size"
	"ballast/planner/size/peer"
)

// convertCPVPS turns a ScalingPolicy into a size policy.
func convertCPVPS(data []byte, o convertOptions) (converted, error) {
	var c converted
	manifest, err := peer.ReadCPVPS(data)
	if err != nil {
		return c, err
	}
	policy, err := manifest.Policy()
	if err != nil {
		return c, err
	}
	var containers []string
	for _, r := range policy.Rules {
		containers = append(containers, r.Container)
	}
	container, err := only(containers, o.container)
	if err != nil {
		return c, err
	}
	name := policy.Name
	if name == "" {
		name = "converted"
	}
	out := config.SizePolicy{Name: name, Priority: policy.Priority}
	policy.Rules = slices.DeleteFunc(policy.Rules, func(r size.Rule) bool { return r.Container != container })
	if len(policy.Rules) == 0 {
		return c, fmt.Errorf("it has no rules")
	}
	for i := range policy.Rules {
		c.withoutEmptySegments(&policy.Rules[i])
		if wrong := policy.Rules[i].Wrong(); len(wrong) > 0 {
			return c, fmt.Errorf("the rule for %s.%s: %s %s", policy.Rules[i].List, policy.Rules[i].Resource,
				wrong[0].Field, wrong[0].Why)
		}
		out.Rules = append(out.Rules, sizeRule(policy.Rules[i]))
	}
	c.size = &config.Size{Policies: []config.SizePolicy{out}, Apply: config.InPlace,
		Interval: config.Default().Size.Interval}
	c.noteCPVPS(manifest, policy, container)
	return c, nil
}

func (c *converted) withoutEmptySegments(r *size.Rule) {
	before := len(r.Segments)
	r.Segments = slices.DeleteFunc(r.Segments, func(s size.Segment) bool { return s.Every.IsZero() })
	if len(r.Segments) < before {
		c.note("%s.%s: a segment without every, which gives no number there, is left out", r.List, r.Resource)
	}
}

func (c *converted) noteCPVPS(manifest peer.CPVPS, policy size.Policy, container string) {
	if container != "" {
		c.note("container %q is taken for the application-controller's; others are left out", container)
	}
	if t := manifest.Spec.Target; t.Name != "" {
		c.note("the target %s %q is left out: target says which workload ballast sizes", t.Kind, t.Name)
	}
	c.note("sizes are applied in place, without a restart; size.apply: template restarts every pod, as CPVPS does")
	c.waits()
	c.note("a change of less than a tenth waits, too: change.up.minChange and change.down.minChange; " +
		"{cpu: {value: \"0\"}, memory: {value: \"0\"}} turns that off")
	var inputs []string
	delayed, endless, both := false, false, map[string]int{}
	for _, r := range policy.Rules {
		if r.Input != "" {
			inputs = append(inputs, r.Input)
		}
		endless = endless || r.Input == config.InputClusters && r.Max == nil
		delayed = delayed || r.DelayDown.For > 0 && r.Input != ""
		both[r.Resource] |= map[size.List]int{size.Requests: 1, size.Limits: 2}[r.List]
	}
	slices.Sort(inputs)
	for _, input := range slices.Compact(inputs) {
		if config.SourceOf(input) == config.FromNodesInput {
			c.note("input %q: that of the cluster that ballast runs in, as allocatable; install component size-nodes",
				input)
		}
		if !slices.Contains(config.KnownInputs(nil), input) {
			c.note("input %q: let poll have a metric of that id; scope is total, as there; "+
				"with scope: replica each replica gets its own size", input)
		}
	}
	if endless {
		c.note("input clusters: write the rule's max, or size.nodeCap, which `ballast config check` asks for: " +
			"whoever may create cluster Secrets raises their number")
	}
	if delayed {
		c.note("delayScaleDown: a step up is applied at once, where CPVPS waits delaySeconds; " +
			"after a scale-down the next one waits delaySeconds, where CPVPS goes down at each change")
	}
	for _, name := range []string{size.CPU, size.Memory} {
		switch both[name] {
		case 3:
			c.note("%s: a request above its limit is cut to it", name)
		case 1:
			c.note("%s: the limit follows the request: what was equal stays equal, else in proportion; CPVPS leaves it as it is", name)
		}
	}
	if twice := policy.Twice(); len(twice) > 0 {
		c.note("two rules have the same list, resource and name: CPVPS takes the last one, ours refuses them")
	}
}

// sizeRule is a rule as it is written.
func sizeRule(r size.Rule) config.SizeRule {
	out := config.SizeRule{Name: r.Name, List: config.SizeList(r.List), Resource: r.Resource, Base: written(r.Base),
		Slope: written(r.Slope),
		Input: r.Input, Per: written(r.Per), Min: writtenPointer(r.Min), Max: writtenPointer(r.Max),
		DelayScaleDown: sizeDelay(r.DelayDown), DelayScaleUp: sizeDelay(r.DelayUp)}
	if r.Input == "" || r.Slope.IsZero() { // base alone, there and here
		out.Input, out.Slope, out.Per, out.DelayScaleDown = "", "", "", nil
		return out
	}
	out.Scope = config.ScopeTotal
	for _, s := range r.Segments {
		at := written(s.At)
		if at == "" {
			at = "0"
		}
		out.Segments = append(out.Segments, config.SizeSegment{At: at, Every: written(s.Every)})
	}
	if s := r.Smoothing; s != nil {
		out.Smooth = &config.Smooth{Target: config.Percent(s.Target / 10), Low: config.Percent(s.Low / 10),
			High: config.Percent(s.High / 10)}
	}
	return out
}

func sizeDelay(d size.Delay) *config.SizeDelay {
	if d.Max.IsZero() && d.For == 0 {
		return nil
	}
	return &config.SizeDelay{Max: written(d.Max), DelaySeconds: int(d.For / time.Second)}
}
