package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/sizing"
	"ballast/planner/poll"
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
			in := untilNow(w.in)
			c := newCycle(in, w.in.InForce, sizing.Ungrown{})
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

// TestWhoKeepsTheOnlyLiveCacheOwnsIt, where Argo CD shows nobody for a cluster: waves of them end as those of others do. While two pods keep
// a cache, or the one is not connected, nobody can tell, and the wave waits.
func TestWhoKeepsTheOnlyLiveCacheOwnsIt(t *testing.T) {
	for name, test := range map[string]struct {
		unread, lingers bool
		moved           int // of 12, in waves of 5
	}{
		"the new one's alone":           {moved: 12},
		"the old one's, too":            {lingers: true, moved: 5},
		"the new one's, unconnected":    {unread: true, moved: 5},
		"both, of which none is a live": {unread: true, lingers: true, moved: 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, slices.Repeat([]float64{10}, 36)...)
			w.unshown, w.lingers = map[string]bool{}, map[string]bool{}
			of0 := w.on(0)
			for _, cluster := range of0 {
				w.unshown[cluster] = true
			}
			w.frozenFor(3, func(int) {})
			if got := w.last.Verdict.Owned[of0[0]].Live; !slices.Equal(got, []int{0}) {
				t.Fatalf("cluster %q is connected to %v, want replica 0", of0[0], got)
			}
			w.in.Cordon = fmt.Sprintf("0=%s", w.in.Now.Add(6*time.Hour).UTC().Format(time.RFC3339))
			w.unread = test.unread
			for _, cluster := range of0 {
				w.lingers[cluster] = test.lingers
			}
			for range 9 {
				w.step(time.Minute)
			}
			if got := len(of0) - len(w.on(0)); got != test.moved {
				t.Errorf("9 min after the cordon %d clusters are elsewhere, want %d: %v", got, test.moved, messages(w.last))
			}
		})
	}
}

// TestWhatHasApplicationsByNameAloneKeepsItsLoad for days, and the others' loads go on; one that never had a value has the middle of them.
func TestWhatHasApplicationsByNameAloneKeepsItsLoad(t *testing.T) {
	w := undecided(t, slices.Repeat([]float64{10}, 36)...)
	w.unshown = map[string]bool{}
	of0 := w.on(0)
	hidden := map[string]bool{}
	for _, cluster := range of0 {
		w.unshown[cluster], hidden[w.secret(cluster).Server] = true, true
	}
	w.add("late", 0)
	w.secret("late").Shard = w.secret(of0[0]).Shard
	w.in.Fetched[0].Samples = w.in.Fetched[0].Samples[:36]
	w.unshown["late"], hidden[w.secret("late").Server] = true, true
	w.frozenFor(2, func(int) {}) // so many looks say that it is so
	refused := 0
	for range 49 {
		for _, cluster := range w.on(1) {
			w.setLoad(cluster, 12)
		}
		w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return hidden[s.Key] })
		if w.step(time.Hour).Table.Frozen {
			refused++
		}
	}
	if refused > 0 {
		t.Errorf("the metrics were refused at %d of 49 looks", refused)
	}
	values := map[string]float64{}
	for i, s := range w.last.Table.Shards {
		values[s.ID] = w.last.Table.Columns[0].Values[i]
	}
	want := map[string]float64{of0[0]: 10, of0[5]: 10, w.on(1)[0]: 12, w.on(2)[0]: 10, "late": 10}
	for cluster, load := range want {
		if values[cluster] != load {
			t.Errorf("cluster %q has %v, want %v", cluster, values[cluster], load)
		}
	}
	if !slices.ContainsFunc(w.last.Problems, func(p problem.Problem) bool {
		return p.Kind == "DestServerEmpty" && strings.HasSuffix(p.Message, "upgrade Argo CD to 3.0.6 or later")
	}) {
		t.Errorf("nobody is told to upgrade: %v", messages(w.last))
	}
}
