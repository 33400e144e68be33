package track

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/sim"
)

func TestTheEvidenceIsHeld(t *testing.T) {
	at := func(d time.Duration) time.Time { return sim.Epoch.Add(d) }
	seen := func(fullest plan.Load) Seen { return Seen{Fullest: fullest, Heaviest: 30, All: 3 * fullest} }
	held := Evidence{}.Next(seen(100), "a", true, at(0))
	for name, test := range map[string]struct {
		got, want Evidence
	}{
		"adopted":                     {held, Evidence{Load: 100, Of: "a", At: at(0)}},
		"less":                        {held.Next(seen(20), "a", true, at(time.Hour)), held},
		"a little more":               {held.Next(seen(125), "a", true, at(time.Hour)), held},
		"more":                        {held.Next(seen(126), "a", true, at(time.Hour)), Evidence{Load: 100, Of: "a", At: at(0), Above: at(time.Hour)}},
		"more, and less again":        {held.Next(seen(200), "a", true, at(0)).Next(seen(100), "a", true, at(time.Hour)), held},
		"loads that mean another":     {held.Next(seen(500), "b", true, at(time.Hour)), Evidence{Load: 500, Of: "b", At: at(time.Hour)}},
		"not taken over":              {held.Next(seen(500), "a", false, at(time.Hour)), Evidence{Load: 500, Of: "a", At: at(time.Hour)}},
		"nothing is measured":         {held.Next(Seen{}, "a", true, at(time.Hour)), held},
		"one cluster is heavier":      {Evidence{}.Next(Seen{Fullest: 10, Heaviest: 30, All: 40}, "a", true, at(0)), Evidence{Load: 30, Of: "a", At: at(0)}},
		"no replica has carried that": {Evidence{Load: math.MaxInt64, Of: "a", At: at(0)}.Next(seen(100), "a", true, at(0)), held},
		"less than nothing":           {Evidence{Load: -5, Of: "a", At: at(0)}.Next(seen(100), "a", true, at(0)), held},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	above := held.Next(seen(200), "a", true, at(0))
	if above.Exceeded(at(59*time.Minute)) || !above.Exceeded(at(time.Hour)) || held.Exceeded(at(time.Hour)) {
		t.Error("it is told after an hour")
	}
	if back := above.Next(seen(200), "a", true, at(-time.Hour)); !back.Above.Equal(at(-time.Hour)) {
		t.Errorf("the clock went back: since %v", back.Above)
	}
}

// Whatever was kept, the line is no less than the heaviest and no more than what a fleet's replicas can have carried, and what is
// told is true.
func TestNoEvidenceIsAbsurd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		load := rapid.Custom(func(t *rapid.T) plan.Load { return plan.Load(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "load")) })
		e := Evidence{Load: plan.Load(rapid.Int64().Draw(t, "kept")), Of: rapid.SampledFrom([]string{"", "a"}).Draw(t, "of"), At: sim.Epoch}
		s := Seen{Fullest: load.Draw(t, "fullest"), Heaviest: load.Draw(t, "heaviest")}
		s.All = max(s.Fullest, s.Heaviest) + load.Draw(t, "others")
		if s.All == 0 {
			return
		}
		e = e.Next(s, "a", true, sim.Epoch)
		line := e.Line(s)
		if line < s.Heaviest || float64(line) > absurd*float64(s.All)*(1+1e-9)+absurd {
			t.Fatalf("%s, of %+v", line, s)
		}
		if !e.Above.IsZero() && s.Fullest <= line {
			t.Fatalf("%+v is above %s", s, line)
		}
	})
}
