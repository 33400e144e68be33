package validation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
	"ballast/planner/config"
	"ballast/planner/size"
)

// Bounds of what changes a fleet.
const (
	minStageTimeout = config.Duration(10 * time.Second) // below, no pod becomes ready in time
	minRatePeriod   = config.Duration(time.Minute)      // moves are remembered by the minute
	maxRatePeriod   = config.Duration(7 * 24 * time.Hour)
	maxMovesPerWave = 1000                              // a wave stands in the plan whole, and is turned back whole
	minAfter        = config.Duration(10 * time.Second) // the period of a kubelet's probes: below, one missed probe moves a replica
	maxAfter        = config.Duration(24 * time.Hour)
)

func validateChange(c config.Change, p *field.Path) field.ErrorList {
	errs := append(validateScaling(c.Out, p.Child("out")), validateScaling(c.In, p.Child("in"))...)
	errs = append(errs, slices.Concat(validateResizing(c.Up, p.Child("up")),
		validateResizing(c.Down, p.Child("down")))...)
	errs = append(errs, between(p.Child("restarts", "every"), c.Restarts.Every, 0, maxRatePeriod)...)
	errs = append(errs, validateTiming(c.Moves.Timing, p.Child("moves"))...)
	p = p.Child("moves", "rate")
	periods := map[config.Duration]int{}
	for i, r := range c.Moves.Rate {
		at := p.Index(i)
		errs = append(errs, required(at.Child("percent"), r.Percent, 1, 100)...)
		errs = append(errs, required(at.Child("period"), r.Period, minRatePeriod, maxRatePeriod)...)
		if first, twice := periods[r.Period]; twice && r.Period != 0 {
			errs = append(errs, field.Invalid(at.Child("period"), field.OmitValueType{},
				fmt.Sprintf("%v is the period of entry %d, too: delete one of them", r.Period, first)))
			continue
		}
		periods[r.Period] = i
	}
	return errs
}

func validateRollout(r config.Rollout, p *field.Path) field.ErrorList {
	errs := oneImplementation(&r, p)
	if r.Live != nil {
		errs = append(errs, between(p.Child("live", "maxMovesPerWave"), r.Live.MaxMovesPerWave, 1, maxMovesPerWave)...)
		errs = append(errs, only(p.Child("live", "adopt"), r.Live.Adopt, config.AdoptNow, config.AdoptWithNext)...)
	}
	return append(errs, between(p.Child("stageTimeout"), r.StageTimeout, minStageTimeout, maxTime)...)
}

func validateFailover(f *config.Failover, p *field.Path) field.ErrorList {
	if f == nil {
		return nil
	}
	errs := between(p.Child("after"), f.After, minAfter, maxAfter)
	return append(errs, between(p.Child("settle"), f.Settle, 0, maxAfter)...)
}

// mostWindows bounds what is looked at for each change.
const mostWindows = 32

func validateTiming(t config.Timing, p *field.Path) (errs field.ErrorList) {
	if t.Mode != "" {
		errs = only(p.Child("mode"), t.Mode, change.Auto, change.Off, change.Maintenance)
	}
	at := p.Child("windows")
	switch {
	case t.Mode == change.Maintenance && len(t.Windows) == 0:
		errs = append(errs, field.Required(at, "name the windows of mode MaintenanceWindow, like {begin: \"22:00\", end: \"02:00\", timeZone: Europe/Berlin}"))
	case t.Mode != change.Maintenance && len(t.Windows) > 0:
		errs = append(errs, field.Invalid(at, field.OmitValueType{},
			"count for nothing without mode: MaintenanceWindow: write that, or delete them"))
	case len(t.Windows) > mostWindows:
		errs = append(errs, field.TooMany(at, len(t.Windows), mostWindows))
	}
	for i, w := range t.Windows {
		if _, err := maintenance.Parse(w.Begin, w.End, w.TimeZone, w.Weekdays); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), field.OmitValueType{}, err.Error()))
		}
	}
	return append(errs, between(p.Child("cooldown"), t.Cooldown, 0, maxRatePeriod)...)
}

func validateResizing(r config.Resizing, p *field.Path) (errs field.ErrorList) {
	errs = append(validateTiming(r.Timing, p), between(p.Child("stabilizationWindow"), r.StabilizationWindow, 0,
		maxRatePeriod)...)
	for _, name := range []string{size.CPU, size.Memory} {
		if step := r.MinChange.Of(name); step != nil {
			errs = append(errs, validateSizeStep(*step, p.Child("minChange", name))...)
		}
	}
	for i, pace := range r.Rate {
		errs = append(errs, validatePace(pace, p.Child("rate").Index(i))...)
	}
	return errs
}

func validateSizeStep(s config.SizeStep, p *field.Path) field.ErrorList {
	if s.Value == "" && s.Percentage == 0 {
		return field.ErrorList{field.Required(p, "write value, percentage or both, or leave it out: a tenth of what is in force counts then")}
	}
	return between(p.Child("percentage"), s.Percentage, 0, 100)
}

func validatePace(r config.Pace, p *field.Path) (errs field.ErrorList) {
	if (r.Replicas > 0) == (r.Percent > 0) {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			fmt.Sprintf("has %d replicas and %d percent: write one of them, above 0", r.Replicas, r.Percent)))
	}
	errs = append(errs, between(p.Child("replicas"), r.Replicas, 0, maxReplicas)...)
	errs = append(errs, between(p.Child("percent"), r.Percent, 0, 100)...)
	return append(errs, required(p.Child("period"), r.Period, minRatePeriod, maxRatePeriod)...)
}

func validateScaling(s config.Scaling, p *field.Path) (errs field.ErrorList) {
	errs = validateTiming(s.Timing, p)
	if s.StabilizationWindow != nil {
		errs = append(errs, between(p.Child("stabilizationWindow"), *s.StabilizationWindow, 0, maxRatePeriod)...)
	}
	if s.MinChange != nil {
		errs = append(errs, validateCountStep(*s.MinChange, p.Child("minChange"))...)
	}
	for i, pace := range s.Rate {
		errs = append(errs, validatePace(pace, p.Child("rate").Index(i))...)
	}
	return errs
}

func validateCountStep(s config.CountStep, p *field.Path) field.ErrorList {
	if s.Value == 0 && s.Percentage == 0 {
		return field.ErrorList{field.Required(p, "write value, percentage or both, or leave it out: any change is large enough then")}
	}
	errs := between(p.Child("value"), s.Value, 0, maxReplicas)
	return append(errs, between(p.Child("percentage"), s.Percentage, 0, 100)...)
}

// validateIntervals refuses intervals that are no table of every load, and what they cannot hold beside.
func validateIntervals(c config.PlannerConfig, p *field.Path) (errs field.ErrorList) {
	if len(c.Size.Weights) == 0 {
		return nil
	}
	_, wrong := c.Size.Intervals()
	for _, message := range wrong {
		errs = append(errs, field.Invalid(p, field.OmitValueType{}, message))
	}
	vertical := false
	for i, w := range c.Size.Weights {
		if w.From == "" {
			errs = append(errs, field.Required(p.Index(i).Child("from"),
				"write the load from which it holds on, like 0"))
		}
		vertical = vertical || w.Weight > 0
	}
	if vertical && len(c.Size.All()) == 0 {
		errs = append(errs, field.Invalid(p, field.OmitValueType{},
			"let replicas grow, and no policy makes them larger: write size.policies, or weights of 0"))
	}
	return append(errs, clashesWithWeights(c, p)...)
}

func clashesWithWeights(c config.PlannerConfig, p *field.Path) (errs field.ErrorList) {
	clash := func(format string, args ...any) {
		errs = append(errs, field.Invalid(p, field.OmitValueType{}, fmt.Sprintf(format, args...)))
	}
	of := c.Partition
	switch {
	case of.Replicas != nil:
		clash("say how many replicas there are, and partition.replicas does, too: delete one of them")
	case of.MinReplicas != nil && of.MaxReplicas != nil && *of.MinReplicas == *of.MaxReplicas:
		clash("say how many replicas there are, and partition.minReplicas and maxReplicas leave %d alone: widen them, or delete the weights", *of.MinReplicas)
	}
	if c.Normalize.Robust != nil || c.Normalize.MinMax != nil {
		clash("go by the fleet's load, and normalize.robust and minMax make it a share of what the fleet has now: set normalize.reference, or none")
	}
	return errs
}
