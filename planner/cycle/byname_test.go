package cycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/sizing"
)

// TestWhatHasApplicationsByNameAloneIsNoOrphan: Argo CD 3.0.0 to 3.0.5 shows nobody as its owner. Whom no pod keeps a cache of, or who
// has an Application that gives its server, is one all the same, and so are few by name, which may be a page that was read late.
func TestWhatHasApplicationsByNameAloneIsNoOrphan(t *testing.T) {
	for name, test := range map[string]struct {
		byName  int      // clusters of replica 0
		taken   []int    // of those, whom no pod has
		other   bool     // a cluster of replica 1 loses its owner, too
		orphans []string // by the place among the clusters of replica 0; "other" is the one of replica 1
		told    bool
	}{
		"many by name":                       {byName: 6, told: true},
		"one of them nobody has":             {byName: 6, taken: []int{0}, orphans: []string{"0"}, told: true},
		"another one beside them":            {byName: 6, other: true, orphans: []string{"other"}, told: true},
		"few by name":                        {byName: 2, orphans: []string{"0", "1"}},
		"none by name, and one is an orphan": {other: true, orphans: []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, slices.Repeat([]float64{10}, 128)...)
			of0, of1 := w.on(0), w.on(1)
			w.unshown = map[string]bool{}
			names := map[string]string{"other": of1[0], "0": of0[0], "1": of0[1]}
			for _, cluster := range of0[:test.byName] {
				w.unshown[cluster] = true
			}
			for _, i := range test.taken {
				w.taken[of0[i]] = true
			}
			w.taken[of1[0]] = test.other
			var out outcome.Outcome
			for range 10 {
				out = w.step(time.Minute)
			}
			var got, want []string
			for _, o := range out.Verdict.Orphans {
				got = append(got, o.Cluster)
			}
			for _, o := range test.orphans {
				want = append(want, names[o])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("orphans (-want +got):\n%s", diff)
			}
			in, _ := untilNow(w.in)
			c := newCycle(in, false, sizing.Ungrown{})
			c.run()
			shut := ""
			if len(want) > 0 {
				shut = fmt.Sprintf("nobody reconciles cluster %q", want[0])
			}
			if got := c.verdicts[gate.Balance]; got != shut {
				t.Errorf("levelling waits for %q, want %q", got, shut)
			}
			if told := slices.Contains(problems(out), "ownership/DestServerEmpty/"); told != test.told {
				t.Errorf("people are told: %t, want %t", told, test.told)
			}
		})
	}
}
