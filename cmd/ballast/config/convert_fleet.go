package config

import (
	"fmt"
	"slices"
	"strconv"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/size/peer"
)

// replicas are the bounds of their number, and the rules of change of the HPA's two directions.
func (c *converted) replicas(spec peer.HVPASpec) (err error) {
	if !spec.Hpa.Deploy {
		return nil
	}
	t := spec.Hpa.Template.Spec
	c.partition = map[string]any{"minReplicas": 1}
	if t.MinReplicas != nil {
		c.partition["minReplicas"] = *t.MinReplicas
	}
	if t.MaxReplicas > 0 {
		c.partition["maxReplicas"] = t.MaxReplicas
	} else {
		c.note("hpa.template.spec.maxReplicas is not given: write the most as partition.maxReplicas")
	}
	c.note("the number of replicas follows from the clusters' load, and not from the HPA's %d metrics", len(t.Metrics))
	if c.out, err = c.scaling("hpa.scaleUp", spec.Hpa.ScaleUp, spec.Hpa.Earlier.UpdateMode, true, spec); err != nil {
		return err
	}
	c.in, err = c.scaling("hpa.scaleDown", spec.Hpa.ScaleDown, spec.Hpa.Earlier.UpdateMode, false, spec)
	return err
}

// scaling is one direction of the number of replicas; nil where nothing is said of it.
func (c *converted) scaling(name string, s peer.ScaleType, earlier change.Mode, up bool, spec peer.HVPASpec) (*config.Scaling, error) {
	timing, err := c.timing(name, s, earlier, up, spec)
	if err != nil {
		return nil, err
	}
	out := &config.Scaling{Timing: timing}
	least := s.MinChange.Replicas
	q, err := least.Value.Quantity()
	if err != nil {
		return nil, fmt.Errorf("reading %s.minChange.replicas: %w", name, err)
	}
	step := config.CountStep{}
	if q != nil {
		step.Value = int(min(max(q.Value(), 0), mostStep))
	}
	if least.Percentage != nil {
		step.Percentage = config.Percent(min(max(*least.Percentage, 0), 100))
	}
	if step != (config.CountStep{}) {
		out.MinChange = &step
		c.note("%s: minChange.replicas holds back what is less, which HVPA reads and passes over", name)
	}
	if timing.Cooldown > 0 {
		c.note("%s: stabilizationDuration is the cooldown since the number changed last, and not since any size did",
			name)
	}
	said := timing.Mode != "" && timing.Mode != change.Auto
	if !said && timing.Cooldown == 0 && out.MinChange == nil {
		return nil, nil
	}
	return out, nil
}

// mostStep is more replicas than there may be.
const mostStep = 999

// intervals turns weights by replica counts into weights by load, at what a replica carries today.
func (c *converted) intervals(spec peer.HVPASpec, o convertOptions) error {
	if len(spec.Intervals) == 0 {
		return nil
	}
	if spec.Hpa.Template.Spec.MaxReplicas <= 0 {
		c.note("weightBasedScalingIntervals are left out: they go up to hpa.template.spec.maxReplicas, which is not given; " +
			"write it into the manifest and convert it again")
		return nil
	}
	whole := c.spans(spec)
	if len(whole) == 0 {
		c.note("weightBasedScalingIntervals are left out: minReplicas is above maxReplicas")
		return nil
	}
	if o.capacity == "" {
		c.note("weightBasedScalingIntervals are size.weights, by load instead of by replicas: " +
			"give --capacity, the load that a replica carries today")
		return nil
	}
	capacity, err := strconv.ParseFloat(o.capacity, 64)
	if err != nil || !(capacity > 0 && capacity < 1e9) {
		return fmt.Errorf("--capacity %.40q is no load above 0", o.capacity)
	}
	if c.partition == nil {
		c.partition = map[string]any{}
	}
	c.partition["capacity"] = number(capacity)
	vertical := false
	for i, in := range whole {
		w := config.WeightInterval{From: number(float64(in.Start-1) * capacity), Weight: in.VpaWeight}
		if i == 0 {
			w.From = "0"
		}
		if i < len(whole)-1 {
			w.To = number(float64(in.Last) * capacity)
		}
		vertical = vertical || w.Weight > 0
		c.size.Weights = append(c.size.Weights, w)
		c.note("%d to %d replicas, at %v each, are a load of %v to %v: %d %% of the growth vertical", in.Start, in.Last,
			capacity,
			float64(in.Start-1)*capacity, float64(in.Last)*capacity, in.VpaWeight)
	}
	c.note("HVPA takes a share of the HPA's difference and rounds it away from what is (up: ceil, down: floor)")
	c.note("ours counts growth from what stands when it takes over, each part of it by its interval's weight, and rounds the number up")
	c.note("partition.capacity is what each of today's replicas carries, from which growth is counted")
	if vertical && len(c.size.Policies) == 0 {
		perCore := config.SizeRule{List: config.Requests, Resource: "cpu", Slope: perLoad(capacity),
			Input: config.InputLoad}
		c.size.Policies = []config.SizePolicy{{Name: "from-hvpa", Rules: []config.SizeRule{perCore}}}
		c.note("weights above 0 need rules that make replicas larger: " +
			"the one here requests a core for today's load of a replica; fit it, and add memory's")
	}
	return nil
}

// perLoad is a core for that load.
func perLoad(capacity float64) config.Quantity {
	return config.Quantity(strconv.Itoa(max(int(1000/capacity), 1)) + "m")
}

// number is a decimal without an exponent, and with no more digits than a load has.
func number(f float64) config.Decimal {
	text := strconv.FormatFloat(f, 'f', 9, 64)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return config.Decimal(text)
}

// spans are the intervals without gaps and overlaps, and neighbours of one weight as one.
func (c *converted) spans(spec peer.HVPASpec) (whole []peer.Span) {
	least, most := spec.Bounds()
	open := func(in peer.WeightInterval) bool { return in.Start == 0 || in.Last == 0 }
	if slices.ContainsFunc(spec.Intervals, open) {
		c.note("an interval leaves out where it starts or ends: %d and %d, the least and the most replicas, are meant",
			least, most)
	}
	if slices.ContainsFunc(spec.Intervals, func(in peer.WeightInterval) bool { return in.VpaWeight == 1 }) {
		c.note("a vpaWeight of 1 is 1 %%, as HVPA reads it; where 100 %% is meant, as in its README, write 100")
	}
	for _, span := range spec.Spans() {
		switch {
		case span.Said == 0:
			c.note("nothing is said of %d to %d replicas: HVPA takes a weight of 0", span.Start, span.Last)
		case span.Said > 1:
			c.note("%d intervals speak of %d to %d replicas: HVPA takes the one that is listed first", span.Said,
				span.Start, span.Last)
		}
		if last := len(whole) - 1; last >= 0 && whole[last].VpaWeight == span.VpaWeight {
			whole[last].Last = span.Last
			continue
		}
		whole = append(whole, span)
	}
	all := func(s peer.Span) bool { return s.VpaWeight == 100 }
	part := func(in peer.WeightInterval) bool { return in.VpaWeight < 100 }
	if slices.ContainsFunc(whole, all) && slices.ContainsFunc(spec.Intervals, part) {
		c.note("a weight of 100 keeps the number of replicas here: HVPA takes the next weight below 100 of its list in its place where " +
			"the HPA wants more, and the last one before it where the HPA wants fewer")
	}
	return whole
}
