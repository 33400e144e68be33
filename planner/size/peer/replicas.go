package peer

import (
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
)

// Weight is the share of growth that is vertical with so many replicas. With 100, where it could never leave, HVPA
// takes the next interval's or the last one's.
func (s HVPASpec) Weight(current, desired int) int {
	least := 1
	if s.Hpa.Template.Spec.MinReplicas != nil {
		least = *s.Hpa.Template.Spec.MinReplicas
	}
	fraction := 100
	for i, in := range s.Intervals {
		in = in.Within(least, s.Hpa.Template.Spec.MaxReplicas)
		if in.VpaWeight < 100 {
			fraction = in.VpaWeight
		}
		if current < in.Start || current > in.Last {
			continue
		}
		switch {
		case in.VpaWeight == 100 && desired < current:
			return fraction
		case in.VpaWeight == 100 && desired > current:
			return nextFraction(s.Intervals[i+1:])
		}
		return in.VpaWeight
	}
	return 0
}

// nextFraction is the first weight below 100; 100 where there is none.
func nextFraction(in []WeightInterval) int {
	if i := slices.IndexFunc(in, func(one WeightInterval) bool { return one.VpaWeight < 100 }); i >= 0 {
		return in[i].VpaWeight
	}
	return 100
}

// Off reports whether no direction may be taken now. The window that nobody gave holds nothing back.
func (s HVPASpec) Off(now time.Time) (bool, error) {
	windows, err := s.Windows()
	if err != nil {
		return false, err
	}
	for _, one := range []ScaleType{s.Hpa.ScaleUp, s.Hpa.ScaleDown, s.Vpa.ScaleUp, s.Vpa.ScaleDown} {
		if !offNow(one.UpdatePolicy.UpdateMode, windows, now) {
			return false, nil
		}
	}
	return true, nil
}

func offNow(mode change.Mode, windows []maintenance.Window, now time.Time) bool {
	shut := len(windows) > 0 && !maintenance.NextOf(windows, now).Equal(now)
	return mode == change.Off || mode == change.Maintenance && shut
}

// OutLimited reports whether the HPA can add no replica: it is at its most and says so, or may not.
func (s HVPASpec) OutLimited(desired int, limited bool, now time.Time) (bool, error) {
	windows, err := s.Windows()
	if err != nil {
		return false, err
	}
	return offNow(s.Hpa.ScaleUp.UpdatePolicy.UpdateMode, windows, now) || limited &&
		desired >= s.Hpa.Template.Spec.MaxReplicas, nil
}

// Replicas is how many replicas HVPA makes of what the HPA wants: a share of the difference, rounded away from what is.
func (s HVPASpec) Replicas(current, desired, hpaWeight int, m Moment) (change.Verdict, error) {
	stays := change.Verdict{Value: int64(current)}
	if !s.Hpa.Deploy || desired <= 0 || desired == current {
		return stays, nil
	}
	windows, err := s.Windows()
	if err != nil {
		return stays, err
	}
	ask := change.Ask{Now: m.Now, Current: int64(current), Wanted: int64(weighted(current, desired, hpaWeight)),
		OOMKilled: m.Override}
	if hpaWeight == 0 {
		ask.Wanted, ask.Known = int64(desired), []change.BlockReason{change.Weight}
	}
	rules := change.Rules{Out: s.Hpa.ScaleUp.policy(windows, change.MinChange{}),
		In: s.Hpa.ScaleDown.policy(windows, change.MinChange{})}
	return rules.Replicas(ask, m.history()), nil
}

func weighted(current, desired, weight int) int {
	part := (desired - current) * weight
	if part >= 0 {
		return current + (part+99)/100
	}
	return current - (-part+99)/100
}
