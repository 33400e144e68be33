package config

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of what changes a fleet.
const (
	minStageTimeout = Duration(10 * time.Second) // below, no pod becomes ready in time
	minRatePeriod   = Duration(time.Minute)      // moves are remembered by the minute
	maxRatePeriod   = Duration(7 * 24 * time.Hour)
	maxMovesPerWave = 1000                       // a wave stands in the plan whole, and is turned back whole
	minAfter        = Duration(10 * time.Second) // the period of a kubelet's probes: below, one missed probe moves a replica
	maxAfter        = Duration(24 * time.Hour)
)

func (c Change) validate(p *field.Path) field.ErrorList {
	errs := append(c.Out.validate(p.Child("out")), c.In.validate(p.Child("in"))...)
	errs = append(errs, slices.Concat(c.Up.validate(p.Child("up")), c.Down.validate(p.Child("down")))...)
	errs = append(errs, between(p.Child("restarts", "every"), c.Restarts.Every, 0, maxRatePeriod)...)
	errs = append(errs, c.Moves.validate(p.Child("moves"))...)
	p = p.Child("moves", "rate")
	periods := map[Duration]int{}
	for i, r := range c.Moves.Rate {
		at := p.Index(i)
		errs = append(errs, required(at.Child("percent"), r.Percent, 1, 100)...)
		errs = append(errs, required(at.Child("period"), r.Period, minRatePeriod, maxRatePeriod)...)
		if first, twice := periods[r.Period]; twice && r.Period != 0 {
			errs = append(errs, field.Invalid(at.Child("period"), field.OmitValueType{}, fmt.Sprintf("%v is the period of entry %d, too: delete one of them", r.Period, first)))
			continue
		}
		periods[r.Period] = i
	}
	return errs
}

// required wants low <= got <= high of a field that has no default.
func required[T int | Duration](p *field.Path, got, low, high T) field.ErrorList {
	if got == 0 {
		return field.ErrorList{field.Required(p, fmt.Sprintf("write one between %v and %v", low, high))}
	}
	return between(p, got, low, high)
}

func (r Rollout) validate(p *field.Path) field.ErrorList {
	errs := oneImplementation(&r, p)
	if r.Live != nil {
		errs = append(errs, between(p.Child("live", "maxMovesPerWave"), r.Live.MaxMovesPerWave, 1, maxMovesPerWave)...)
		errs = append(errs, only(p.Child("live", "adopt"), r.Live.Adopt, AdoptNow, AdoptWithNext)...)
	}
	return append(errs, between(p.Child("stageTimeout"), r.StageTimeout, minStageTimeout, maxTime)...)
}

func (f *Failover) validate(p *field.Path) field.ErrorList {
	if f == nil {
		return nil
	}
	errs := between(p.Child("after"), f.After, minAfter, maxAfter)
	return append(errs, between(p.Child("settle"), f.Settle, 0, maxAfter)...)
}
