package cycle

import (
	"strings"
	"testing"
	"time"

	"ballast/planner/config"

	"github.com/google/go-cmp/cmp"
)

// TestAClusterThatNobodyGetsKeepsOthersForAnHour: one that had an owner and has none may be a wave's doing, so nothing levels; after an
// hour it is its own people's, whatever they did. Where they are many, something is wrong with the fleet, however old it is.
func TestAClusterThatNobodyGetsKeepsOthersForAnHour(t *testing.T) {
	type course struct{ AfterMinutes, AfterHours, TurnedBack, Orphaned bool }
	for name, test := range map[string]struct {
		broken []string
		want   course
	}{
		"none":             {nil, course{AfterMinutes: true, AfterHours: true}},
		"one":              {[]string{"c003"}, course{AfterHours: true, Orphaned: true}},
		"a tenth":          {[]string{"c003", "c004"}, course{AfterHours: true, Orphaned: true}},
		"more than tenths": {[]string{"c003", "c004", "c005"}, course{Orphaned: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			w.breaks(test.broken...)
			for range 15 {
				w.step(time.Minute)
			}
			w.imbalanced()
			w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
			var got course
			for minute := range 150 {
				before := len(w.moved())
				out := w.step(time.Minute)
				got.TurnedBack = got.TurnedBack || strings.Contains(out.Reason, "turned back")
				got.Orphaned = got.Orphaned || strings.Contains(strings.Join(problems(out), " "), "ownership/Orphaned/c003")
				switch moved := len(w.moved()) > before; {
				case moved && minute < 40:
					got.AfterMinutes = true
				case moved:
					got.AfterHours = true
				}
			}
			if test.broken == nil { // done by then
				got.AfterHours = true
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what began (-want +got):\n%s\n%v", diff, messages(w.last))
			}
		})
	}
}

// TestNoWaveWaitsForAClusterThatNobodyGets: each one with it in waited its deadline out and was turned back, everybody's clusters with
// it, and began anew.
func TestNoWaveWaitsForAClusterThatNobodyGets(t *testing.T) {
	w := undecided(t, skewed(24)...)
	broken := w.on(2)[0]
	w.breaks(broken)
	for range 75 {
		w.step(time.Minute)
	}
	w.in.Cordon = "2=" + w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339)
	start := w.in.Now
	w.until(t, "replica 2 is empty, and all is at rest", 8*time.Minute, func(Outcome) bool {
		return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil && w.in.Now.After(start)
	})
	if !w.in.Memory.HoldOff.IsZero() {
		t.Errorf("a rollout failed, want none: held off since %s", w.in.Memory.HoldOff)
	}
	delete(w.taken, broken)
	w.step(time.Minute)
	if row := w.row(t, broken); row == 2 {
		t.Errorf("the cluster that nobody got is planned on replica %d, want another than the cordoned 2", row)
	}
}

// breaks has nobody get those clusters any more, in a way that ballast does not know of.
func (w *liveWorld) breaks(names ...string) {
	for _, name := range names {
		w.taken[name] = true
	}
}
