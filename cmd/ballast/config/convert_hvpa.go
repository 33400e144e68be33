package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/size"
	"ballast/planner/size/peer"
)

// convertHVPA turns an Hvpa into rules of what a VPA recommends, rules of change, limits and bounds.
func convertHVPA(data []byte, o convertOptions) (converted, error) {
	var c converted
	manifest, err := peer.ReadHVPA(data)
	if err != nil {
		return c, err
	}
	spec := manifest.Spec
	c.size = &config.Size{Policies: []config.SizePolicy{}, Apply: config.InPlace,
		Interval: config.Default().Size.Interval}
	if t := spec.Target; t.Name != "" {
		c.note("the target %s %q is left out: target says which workload ballast sizes", t.Kind, t.Name)
	}
	c.note("sizes are applied in place, without a restart; size.apply: template restarts every pod, as HVPA does")
	if c.up, err = c.resizing("vpa.scaleUp", spec.Vpa.ScaleUp, spec.Vpa.Earlier.UpdateMode, true, spec); err != nil {
		return c, err
	}
	if c.down, err = c.resizing("vpa.scaleDown", spec.Vpa.ScaleDown, spec.Vpa.Earlier.UpdateMode, false, spec); err != nil {
		return c, err
	}
	if err := c.limits(spec); err != nil {
		return c, err
	}
	if err := c.bounds(spec, o); err != nil {
		return c, err
	}
	if err := c.replicas(spec); err != nil {
		return c, err
	}
	return c, c.intervals(spec, o)
}

// resizing is one direction of the sizes.
func (c *converted) resizing(name string, s peer.ScaleType, earlier change.Mode, up bool, spec peer.HVPASpec) (*config.Resizing, error) {
	timing, err := c.timing(name, s, earlier, up, spec)
	if err != nil {
		return nil, err
	}
	out := &config.Resizing{Timing: timing}
	if out.Cooldown > 0 {
		c.note("%s: stabilizationDuration is the cooldown, counted for each replica and resource, and not for the whole workload", name)
	}
	steps := &config.SizeSteps{}
	if steps.CPU, err = sizeStep(s.MinChange, size.CPU); err != nil {
		return nil, fmt.Errorf("reading %s.minChange.cpu: %w", name, err)
	}
	if steps.Memory, err = sizeStep(s.MinChange, size.Memory); err != nil {
		return nil, fmt.Errorf("reading %s.minChange.memory: %w", name, err)
	}
	c.fewBytes(name+".minChange", s.MinChange)
	if !up {
		c.waits()
	}
	out.MinChange = steps
	if zero := (config.SizeStep{Value: "0"}); *steps.CPU != zero || *steps.Memory != zero {
		c.note("%s: minChange is the smaller of value and percentage, as there; not given it is 200m and 200M, as there", name)
		c.note("%s: minChange holds nothing back while a replica is over its capacity", name)
	}
	return out, nil
}

// timing is the mode, the window and the cooldown of a direction.
func (c *converted) timing(name string, s peer.ScaleType, earlier change.Mode, up bool, spec peer.HVPASpec) (config.Timing, error) {
	mode := s.UpdatePolicy.UpdateMode
	if mode == "" {
		mode = earlier
	}
	if mode == peer.ScaleUpMode {
		mode = change.Auto
		if !up {
			mode = change.Off
		}
		c.note("%s: ScaleUp is up Auto, down Off: here %s", name, mode)
	}
	out := config.Timing{Mode: mode, Cooldown: config.Duration(s.Stabilization())}
	if s.StabilizationDuration != "" && s.Stabilization() == 0 {
		c.note("%s: the stabilizationDuration %.40q is no length of time, "+
			"and counts for nothing there: it is left out", name, s.StabilizationDuration)
	}
	if mode != change.Maintenance {
		return out, nil
	}
	window, err := c.window(name, spec)
	out.Windows = window
	return out, err
}

// fewBytes notes a memory value that was hardly meant: HVPA's own sample writes "3".
func (c *converted) fewBytes(name string, p peer.Params) {
	const few = 1 << 20
	q, err := p.Memory.Value.Quantity()
	if given := err == nil && q != nil && !q.IsZero(); given && q.CmpInt64(few) < 0 {
		c.note("%s.memory.value %q is that many bytes, there as here", name, q.String())
	}
}

// sizeStep is a least change; that of 0 is none.
func sizeStep(p peer.Params, name string) (*config.SizeStep, error) {
	least, err := p.MinChange(name)
	if err != nil {
		return nil, err
	}
	anyPercent := least.Percent != nil && *least.Percent == 0
	anyValue := least.Value != nil && *least.Value == 0
	if anyPercent || anyValue {
		return &config.SizeStep{Value: "0"}, nil // nothing is too small
	}
	step := &config.SizeStep{}
	if least.Value != nil {
		step.Value = written(*resource.NewMilliQuantity(*least.Value, resource.DecimalSI))
	}
	if least.Percent != nil {
		step.Percentage = config.Percent(min(*least.Percent, 100))
	}
	return step, nil
}

// window is the maintenance window, in UTC.
func (c *converted) window(name string, spec peer.HVPASpec) ([]config.Window, error) {
	windows, err := spec.Windows()
	if err != nil {
		return nil, err
	}
	if len(windows) == 0 {
		return nil, fmt.Errorf("%s has the mode MaintenanceWindow and there is no maintenanceTimeWindow: HVPA fails there; write one", name)
	}
	var out []config.Window
	for _, w := range windows {
		c.note("the maintenance window is %s: its offset does not follow summer time; write an IANA timeZone for one that does", w)
		out = append(out, config.Window{Begin: w.Begin(), End: w.End()})
	}
	return out, nil
}

// limits are those of limitsRequestsGapScaleParams.
func (c *converted) limits(spec peer.HVPASpec) error {
	for _, name := range []string{size.CPU, size.Memory} {
		to := &c.size.Limits.CPU
		if name == size.Memory {
			to = &c.size.Limits.Memory
		}
		h, err := spec.Vpa.Gap.Headroom(name)
		if err != nil {
			return fmt.Errorf("reading limitsRequestsGapScaleParams.%s: %w", name, err)
		}
		if h.Value == nil && h.Percent <= 0 {
			continue
		}
		*to = &config.Headroom{Value: writtenPointer(h.Value), Percentage: config.Percent(h.Percent)}
	}
	if c.size.Limits != (config.SizeLimits{}) {
		c.note("limits are the larger of request + value and request * (1 + percentage), as there; a memory limit never goes below what was used")
	}
	return nil
}

// bounds are minAllowed and maxAllowed.
func (c *converted) bounds(spec peer.HVPASpec, o convertOptions) error {
	var names []string
	policies := spec.Vpa.Template.Spec.ResourcePolicy.ContainerPolicies
	for _, p := range policies {
		names = append(names, p.ContainerName)
	}
	container, err := only(names, o.container)
	if err != nil {
		return err
	}
	var chosen peer.ContainerPolicy
	for _, p := range policies {
		if p.ContainerName != container {
			continue
		}
		chosen = p
		for _, name := range []string{size.CPU, size.Memory} {
			to, most := &c.size.NodeCap.CPU, p.MaxAllowed[name]
			if name == size.Memory {
				to = &c.size.NodeCap.Memory
			}
			q, err := most.Quantity()
			if err != nil {
				return fmt.Errorf("reading maxAllowed.%s: %w", name, err)
			}
			*to = writtenPointer(q)
		}
		c.controlled(p)
	}
	if c.size.NodeCap != (config.SizeCap{}) {
		c.note("maxAllowed is size.nodeCap: no replica requests more")
	}
	return c.recommended(spec, chosen)
}

// recommended is a rule of what a VPA recommends, for each resource that it controls, within minAllowed and maxAllowed.
func (c *converted) recommended(spec peer.HVPASpec, p peer.ContainerPolicy) error {
	if deployed := spec.Vpa.Deploy; deployed != nil && !*deployed {
		c.note("vpa.deploy is false: HVPA makes no sizes then, and no rule of a VPA's recommendation stands here")
		return nil
	}
	if p.Mode == "Off" {
		c.note("the container policy's mode is Off: the VPA recommends nothing for it, and no rule of a VPA's recommendation stands here")
		return nil
	}
	var rules []config.SizeRule
	for _, name := range []string{size.CPU, size.Memory} {
		if len(p.ControlledResources) > 0 && !slices.Contains(p.ControlledResources, name) {
			continue
		}
		rule := config.SizeRule{List: config.Requests, Resource: name, Slope: "1", Input: config.InputVPATargetCPU}
		if name == size.Memory {
			rule.Input = config.InputVPATargetMemory
		}
		least, most := p.MinAllowed[name], p.MaxAllowed[name]
		q, err := least.Quantity()
		if err != nil {
			return fmt.Errorf("reading minAllowed.%s: %w", name, err)
		}
		rule.Min = writtenPointer(q)
		if q, err = most.Quantity(); err != nil {
			return fmt.Errorf("reading maxAllowed.%s: %w", name, err)
		}
		if rule.Max = writtenPointer(q); rule.Max == "" {
			c.note("input %s: write the rule's max, or size.nodeCap.%s, which `ballast config check` asks for: "+
				"whoever may write the VPA raises what it says", rule.Input, name)
		}
		if rule.Min == "" {
			c.note("input %s: without a min a VPA that says little starves replicas", rule.Input)
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return nil
	}
	c.size.Policies = []config.SizePolicy{{Name: "from-hvpa", Rules: rules}}
	c.note("the sizes are a VPA's recommendation, as there, one for all replicas: keep a VPA with updateMode Off over the workload; " +
		"the one that HVPA made goes with the Hvpa")
	return nil
}

// controlled notes what of a container the VPA was to leave alone.
func (c *converted) controlled(p peer.ContainerPolicy) {
	if len(p.ControlledResources) > 0 {
		c.note("controlledResources %s: these alone have a rule, and the others stay as they are",
			strings.Join(p.ControlledResources, ", "))
	}
	if p.ControlledValues == "RequestsOnly" {
		c.note("controlledValues RequestsOnly: a limit follows its request here, and HVPA leaves it as it is; " +
			"a rule of limits with a base holds it")
	}
}
