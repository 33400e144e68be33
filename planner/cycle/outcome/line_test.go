package outcome

import (
	"testing"

	"ballast/planner/plan"
)

func TestHeadroomIsOfTheFullest(t *testing.T) {
	of := func(loads ...plan.Load) (all []plan.Replica) {
		for i, l := range loads {
			all = append(all, plan.Replica{ID: i, TotalLoad: l * plan.LoadUnit / 10})
		}
		return all
	}
	now, then := of(3, 11, 4), of(6, 6, 5, 1)
	for want, l := range map[string]*Line{
		"": nil,
		"the fullest at 0.60 of partition.capacity instead of 1.10":        {Load: plan.LoadUnit, Configured: true},
		"the fullest at 0.30 of what one is known to bear instead of 0.55": {Load: 2 * plan.LoadUnit},
	} {
		if got := l.Headroom(now, then); got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
	if got := (&Line{Configured: true}).Headroom(now, then); got != "" {
		t.Errorf("of a line of nothing: %q", got)
	}
}
