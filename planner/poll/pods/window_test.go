package pods

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/gz"
	"ballast/planner/measure"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// noon is at a full five minutes.
var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const all = scrape.ShowsObjects | scrape.ShowsEvents | scrape.ShowsReconciles

// says is a pod that answered.
func says(pod int, at time.Time, servers map[string]scrape.ServerReport) scrape.PodReport {
	name := fmt.Sprintf("c-%d", pod)
	return scrape.PodReport{Controller: observed.Controller{Pod: observed.Pod{Name: name, Replica: pod},
		Address: fmt.Sprintf("10.0.0.%d:8082", pod+1)},
		SampledAt: at, Servers: servers}
}

// silent is one that did not.
func silent(pod int) scrape.PodReport {
	r := says(pod, time.Time{}, nil)
	r.Err = "asking pod: connection refused"
	return r
}

// values are the samples of a metric, by server.
func values(t testing.TB, fetched []poll.Fetched, id string) map[string]float64 {
	t.Helper()
	i := slices.IndexFunc(fetched, func(f poll.Fetched) bool { return f.Metric == id })
	if fetched[i].Err != "" {
		t.Fatalf("%s: %s", id, fetched[i].Err)
	}
	got := map[string]float64{}
	for _, s := range fetched[i].Samples {
		got[s.Key] = math.Round(s.Value*1e5) / 1e5
	}
	return got
}

func TestTheMetricsAreTheDefaultOnes(t *testing.T) {
	got := map[string]float64{}
	var ids []string
	for _, m := range Metrics() {
		got[m.ID], ids = poll.DefaultWeights()[m.ID], append(ids, m.ID)
		if diff := cmp.Diff(poll.Match{Label: "server", To: poll.ToServer}, m.Match); diff != "" || *m.NoData != 0 || m.PerCluster() {
			t.Errorf("metric %+v: %s", m, diff)
		}
	}
	if diff := cmp.Diff(poll.DefaultWeights(), got); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"objects", "events", "reconciles", "apps"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What pods do is one value a minute here: a counter rises by 60 a minute, one a second.
func TestWhatPodsShowBecomesLoads(t *testing.T) {
	const a, b = "https://a", "https://b"
	minutes := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	counts := func(n float64, apps int, objects float64) scrape.ServerReport {
		return scrape.ServerReport{Apps: apps, Events: n, Reconciles: n / 2, Objects: objects, Counts: all}
	}
	left := func(n float64) scrape.ServerReport { // of a cluster that another pod has now
		return scrape.ServerReport{Events: n, Reconciles: n / 2, Counts: scrape.ShowsEvents | scrape.ShowsReconciles}
	}
	type servers = map[string]scrape.ServerReport
	for name, test := range map[string]struct {
		look    func(n int) []scrape.PodReport
		events  map[string]float64
		objects map[string]float64
		apps    map[string]float64
	}{
		"a steady cluster": {
			func(n int) []scrape.PodReport {
				return []scrape.PodReport{says(0, minutes(n), servers{a: counts(float64(60*n), 3, 100)})}
			}, map[string]float64{a: 1}, map[string]float64{a: 100}, map[string]float64{a: 3}},
		"a cluster that moved: the old pod's counters stand still": {
			func(n int) []scrape.PodReport {
				if n < 100 {
					return []scrape.PodReport{says(0, minutes(n), servers{a: counts(float64(60*n), 3, 100)}), says(1, minutes(n), servers{b: counts(float64(60*n), 1, 5)})}
				}
				return []scrape.PodReport{says(0, minutes(n), servers{a: left(60 * 99)}),
					says(1, minutes(n), servers{a: counts(float64(60*(n-100)), 3, 110), b: counts(float64(60*n), 1, 5)})}
			}, map[string]float64{a: 1, b: 1}, map[string]float64{a: 110, b: 5}, map[string]float64{a: 3, b: 1}},
		"a pod that restarted in place": {
			func(n int) []scrape.PodReport {
				r := says(0, minutes(n), servers{a: counts(float64(60*(n%90)), 3, 100)})
				r.Started = minutes(n - n%90)
				return []scrape.PodReport{r}
			}, map[string]float64{a: 1}, map[string]float64{a: 100}, map[string]float64{a: 3}},
		"a pod that was replaced under its name, at another address, counts higher at once": {
			func(n int) []scrape.PodReport {
				r := says(0, minutes(n), servers{a: counts(float64(60*n), 3, 100)})
				if n > 120 {
					r.Address, r.Servers[a] = "10.9.9.9:8082", counts(float64(1e6+60*n), 3, 100)
				}
				return []scrape.PodReport{r}
			}, map[string]float64{a: 1}, map[string]float64{a: 100}, map[string]float64{a: 3}},
		"looks that failed leave a gap and no zero": {
			func(n int) []scrape.PodReport {
				if n%60 > 20 {
					return []scrape.PodReport{silent(0)}
				}
				return []scrape.PodReport{says(0, minutes(n), servers{a: counts(float64(60*n), 3, 100)})}
			}, map[string]float64{a: 1}, map[string]float64{a: 100}, map[string]float64{a: 3}},
		"two that have one cluster show the same Applications": {
			func(n int) []scrape.PodReport {
				return []scrape.PodReport{says(0, minutes(n), servers{a: counts(float64(60*n), 3, 90)}), says(1, minutes(n), servers{a: counts(float64(30*n), 3, 80)})}
			}, map[string]float64{a: 1.5}, map[string]float64{a: 90}, map[string]float64{a: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var w Window
			const last = 190
			for n := range last + 1 {
				w.Take(test.look(n), []string{a, b}, minutes(n))
			}
			got := w.Fetched(minutes(last))
			if diff := cmp.Diff(test.events, values(t, got, "events")); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.objects, values(t, got, "objects")); name != "looks that failed leave a gap and no zero" && diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.apps, values(t, got, "apps")); diff != "" {
				t.Errorf("apps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThereIsNoAnswerBeforeThereIsARate(t *testing.T) {
	const silence = "no pod of the application-controller answers: "
	const early = "the pods are asked since 2026-08-01T12:01:00Z, and a rate needs two looks before a full five minutes: the first is there by 2026-08-01T12:10:00Z"
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	look := func(w *Window, n int) {
		w.Take([]scrape.PodReport{says(0, at(n), map[string]scrape.ServerReport{"a": {Apps: 1, Events: float64(n), Objects: 7, Counts: all}})}, []string{"a"}, at(n))
	}
	for name, test := range map[string]struct {
		until int
		want  map[string]string
	}{
		"after one look":      {1, map[string]string{"events": early, "reconciles": early}},
		"before five minutes": {4, map[string]string{"events": early, "reconciles": early}},
		"after five minutes":  {5, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var w Window
			for n := 1; n <= test.until; n++ {
				look(&w, n)
			}
			got := map[string]string{}
			for _, f := range w.Fetched(at(test.until)) {
				if f.Err != "" {
					got[f.Metric] = f.Err
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for why, reports := range map[string][]scrape.PodReport{
		"the application-controller has no pods": nil, "asking pod: connection refused": {silent(0)},
	} {
		var w Window
		w.Take(reports, []string{"a"}, noon)
		for _, f := range w.Fetched(noon) {
			if f.Err != silence+why {
				t.Errorf("%s: %q", f.Metric, f.Err)
			}
		}
	}
}

// A server that is no cluster's is told, and costs nothing.
func TestAServerOfNoClusterIsToldAndNotKept(t *testing.T) {
	var w Window
	servers := map[string]scrape.ServerReport{"https://ours": {Apps: 1, Counts: all}}
	for i := range 5000 {
		servers[fmt.Sprintf("https://other-%04d", i)] = scrape.ServerReport{Apps: 1, Counts: all}
	}
	w.Take([]scrape.PodReport{says(0, noon, servers)}, []string{"https://ours"}, noon)
	answer := w.Fetched(noon)[apps]
	if len(answer.Samples) != 101 || answer.Samples[0].Key != "https://other-0000" || answer.Samples[100].Key != "https://ours" {
		t.Errorf("%d samples, the first %+v", len(answer.Samples), answer.Samples[0])
	}
	if len(w.servers) != 1 || w.series != 1 {
		t.Errorf("%d servers and %d series are kept", len(w.servers), w.series)
	}
}

// A clock that was ahead, and one that jumps ahead, leave what was measured before.
func TestAClockThatStepsForgetsNothingOfBefore(t *testing.T) {
	var w Window
	take := func(at time.Time, n int) {
		w.Take([]scrape.PodReport{says(0, at, map[string]scrape.ServerReport{"a": {Apps: 1, Events: float64(60 * n), Objects: 7, Counts: all}})}, []string{"a"}, at)
	}
	for n := range 121 {
		take(noon.Add(time.Duration(n)*time.Minute), n)
	}
	now := noon.Add(2 * time.Hour)
	for step, at := range map[string][]time.Duration{"ahead and back": {2 * time.Hour, time.Minute, 2 * time.Minute}, "back": {-30 * time.Minute}} {
		for i, d := range at {
			take(now.Add(d), 121+i)
		}
		last := now.Add(at[len(at)-1])
		if diff := cmp.Diff(map[string]float64{"a": 1}, values(t, w.Fetched(last), "events")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
		for _, p := range w.processes {
			if !slices.IsSortedFunc(p.looks, func(a, b look) int { return int(a.at - b.at) }) {
				t.Errorf("%s: looks %v", step, p.looks)
			}
		}
	}
}

// TestALeaderOfTomorrowLeavesNoRateThatStands: where the last leader's clock was a day ahead, what the pods show now counts at once.
// TestNoCountMakesARateThatIsNone: a pod counts as high as a number goes, and falls three times. The rate is the largest there is, and what
// the window is kept as is read by the next leader.
func TestNoCountMakesARateThatIsNone(t *testing.T) {
	var w Window
	at := noon
	for n := range 31 {
		at = noon.Add(time.Duration(n) * time.Minute)
		shown := map[string]scrape.ServerReport{"a": {Apps: 1, Events: 1.7e308 - 1e306*float64(n), Objects: 7, Counts: all}, "b": {Apps: 1, Events: float64(120 * n), Objects: 7, Counts: all}}
		w.Take([]scrape.PodReport{says(0, at, shown)}, []string{"a", "b"}, at)
	}
	packed, err := w.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var next Window
	if err := next.UnmarshalBinary(packed); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"a": math.MaxFloat32, "b": 2}
	if diff := cmp.Diff(want, values(t, w.Fetched(at), "events"), cmpopts.EquateApprox(1e-6, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALeaderOfTomorrowLeavesNoRateThatStands(t *testing.T) {
	take := func(w *Window, at time.Time, events int) {
		w.Take([]scrape.PodReport{says(0, at, map[string]scrape.ServerReport{"a": {Apps: 1, Events: float64(events), Objects: 7, Counts: all}})}, []string{"a"}, at)
	}
	var last Window
	tomorrow := noon.Add(24 * time.Hour)
	for n := range 61 {
		take(&last, tomorrow.Add(time.Duration(n)*time.Minute), 60*n)
	}
	packed, err := last.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var w Window
	if err := w.UnmarshalBinary(packed); err != nil {
		t.Fatal(err)
	}
	now := noon
	for n := range 31 {
		now = noon.Add(time.Duration(n) * time.Minute)
		take(&w, now, 120*n)
	}
	answer := w.Fetched(now)
	if diff := cmp.Diff(map[string]float64{"a": 2}, values(t, answer, "events")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range answer {
		for _, s := range f.Samples {
			if s.At.After(now) {
				t.Errorf("%s of %s was seen at %s, after %s", f.Metric, s.Key, s.At, now)
			}
		}
	}
}

// Whoever begins to look has last good values for three hours, beside what is measured since.
func TestLastGoodValuesStandForWhatNobodySaw(t *testing.T) {
	in := discover.Input{Namespace: "argocd", Secrets: []discover.Secret{{UID: "a", Name: "a", Cluster: "a", Server: "https://a/", HasData: true}}}
	fleet, _, err := discover.Discover(in, discover.Known{}, discover.Options{MaxShrink: 1}, noon)
	if err != nil {
		t.Fatal(err)
	}
	good := measure.LastGood{IDs: []string{"a"}, Columns: []measure.LastColumn{
		{ID: "events", Values: []float64{8}, At: []int64{noon.Add(-time.Minute).Unix()}},
		{ID: "reconciles", Values: []float64{9}, At: []int64{0}},
	}}
	var w Window
	got := map[int]map[string]float64{}
	for n := range 200 {
		at := noon.Add(time.Duration(n) * time.Minute)
		w.Take([]scrape.PodReport{says(0, at, map[string]scrape.ServerReport{"https://a": {Events: float64(60 * n), Counts: scrape.ShowsEvents}})}, Servers(fleet), at)
		if w.Empty(at) {
			w.Seed(good, fleet, at)
		}
		if n%60 == 10 || n > 195 {
			got[n] = values(t, w.Fetched(at), "events")
		}
	}
	eight, one := map[string]float64{"https://a": 8}, map[string]float64{"https://a": 1}
	want := map[int]map[string]float64{10: eight, 70: eight, 130: eight, 190: one, 196: one, 197: one, 198: one, 199: one}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// history is what pods showed at random: looks that fail, clusters that move, processes that begin anew.
type history struct {
	times   []time.Time
	reports [][]scrape.PodReport
	servers []string
}

func drawHistory(t *rapid.T) history {
	h := history{servers: []string{"https://a", "https://b"}}
	at := noon.Add(time.Duration(rapid.IntRange(0, 299_999).Draw(t, "offset")) * time.Millisecond)
	owner := map[string]int{"https://a": 0, "https://b": 1}
	counts := [2]map[string]*scrape.ServerReport{{}, {}}
	addresses, started := [2]int{}, [2]time.Time{at, at}
	for range rapid.IntRange(3, 90).Draw(t, "looks") {
		at = at.Add(time.Duration(rapid.IntRange(46_000, 150_000).Draw(t, "apart")) * time.Millisecond)
		var reports []scrape.PodReport
		for pod := range 2 {
			switch rapid.IntRange(0, 30).Draw(t, "what") {
			case 0:
				reports = append(reports, silent(pod))
				continue
			case 1:
				counts[pod], started[pod] = map[string]*scrape.ServerReport{}, at
				addresses[pod] += rapid.IntRange(0, 1).Draw(t, "moved")
			case 2:
				owner[h.servers[pod]] = rapid.IntRange(0, 1).Draw(t, "owner")
			}
			shown := map[string]scrape.ServerReport{}
			for _, url := range h.servers {
				c := counts[pod][url]
				if owner[url] == pod {
					if c == nil {
						c = &scrape.ServerReport{Counts: scrape.ShowsEvents}
						counts[pod][url] = c
					}
					c.Events += float64(rapid.IntRange(0, 500).Draw(t, "events"))
				}
				if c != nil {
					shown[url] = *c
				}
				if owner[url] == pod {
					now := shown[url]
					now.Apps, now.Objects, now.Counts = rapid.IntRange(1, 9).Draw(t, "apps"), float64(rapid.IntRange(0, 99).Draw(t, "objects")), now.Counts|scrape.ShowsObjects
					shown[url] = now
				}
			}
			r := says(pod, at, shown)
			r.Address, r.Started = fmt.Sprintf("10.%d.0.%d:8082", addresses[pod], pod), started[pod]
			reports = append(reports, r)
		}
		h.times, h.reports = append(h.times, at), append(h.reports, reports)
	}
	return h
}

// model says in the slow way what Prometheus would answer, of all samples at once.
func (h history) model(url string, now time.Time) (events float64, any bool) {
	var rates []float64
	for s := stepOf(now.UnixMilli()) - steps + 1; s <= stepOf(now.UnixMilli()); s++ {
		until := time.UnixMilli(s * step.Milliseconds())
		if rate, ok := h.rate(url, until); ok {
			rates = append(rates, rate)
		}
	}
	if len(rates) == 0 {
		return 0, false
	}
	slices.Sort(rates)
	rank := 0.9 * float64(len(rates)-1)
	low, high := int(math.Floor(rank)), int(math.Ceil(rank))
	return rates[low] + (rates[high]-rates[low])*(rank-math.Floor(rank)), true
}

func (h history) rate(url string, until time.Time) (sum float64, any bool) {
	type sample struct {
		at      time.Time
		value   float64
		started time.Time
	}
	series := map[string][]sample{}
	for i, at := range h.times {
		if !at.After(until.Add(-10*time.Minute)) || at.After(until) {
			continue
		}
		for _, r := range h.reports[i] {
			if s, shown := r.Servers[url]; shown && r.Answered() && s.Shows(scrape.ShowsEvents) {
				series[r.Name+r.Address] = append(series[r.Name+r.Address], sample{at, s.Events, r.Started})
			}
		}
	}
	for _, samples := range series {
		if len(samples) < 2 {
			continue
		}
		first, last := samples[0], samples[len(samples)-1]
		rise := last.value - first.value
		for i := 1; i < len(samples); i++ {
			if samples[i].value < samples[i-1].value || !samples[i].started.Equal(samples[i-1].started) {
				rise += samples[i-1].value
			}
		}
		interval := last.at.Sub(first.at).Seconds()
		apart := interval / float64(len(samples)-1)
		lead, tail := first.at.Sub(until.Add(-10*time.Minute)).Seconds(), until.Sub(last.at).Seconds()
		if lead >= 1.1*apart {
			lead = apart / 2
		}
		if tail >= 1.1*apart {
			tail = apart / 2
		}
		if rise > 0 {
			lead = math.Min(lead, interval*first.value/rise)
		}
		sum += rise * (interval + lead + tail) / interval / 600
		any = true
	}
	return sum, any
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(b)) }

// The window, which forgets as it goes, answers at each look what the model makes of everything.
func TestAWindowAnswersAsPrometheusWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		var w Window
		for i, at := range h.times {
			w.Take(h.reports[i], h.servers, at)
			got := map[string]float64{}
			for _, s := range w.Fetched(at)[events].Samples {
				got[s.Key] = s.Value
			}
			for _, url := range h.servers {
				want, any := h.model(url, at)
				value, answered := got[url]
				if any != answered || !near(value, want) {
					t.Fatalf("look %d at %s: %s has %v %v, want %v %v", i, at, url, value, answered, want, any)
				}
			}
		}
	})
}

// The next leader answers what the last one would have, but for how exactly rates are saved and for its first ten minutes.
func TestTheNextLeaderAnswersAsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		change := rapid.IntRange(0, len(h.times)-1).Draw(t, "change")
		var last Window
		for i := range change + 1 {
			last.Take(h.reports[i], h.servers, h.times[i])
		}
		packed, err := last.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var next Window
		if err := next.UnmarshalBinary(packed); err != nil {
			t.Fatal(err)
		}
		if again, err := next.MarshalBinary(); err != nil || !slices.Equal(again, packed) {
			t.Fatalf("saved again, it differs: %v", err)
		}
		next.know(h.servers)
		clear(last.processes) // of these the next leader knows nothing: its own looks follow
		for n := range 40 {   // nobody answers any more: what was seen goes by and by
			at := h.times[change].Add(time.Duration(n) * step)
			compare(t, at, &last, &next)
			last.Take(nil, h.servers, at)
			next.Take(nil, h.servers, at)
		}
	})
}

func compare(t *rapid.T, at time.Time, last, next *Window) {
	want, got := last.Fetched(at), next.Fetched(at)
	for m := range want {
		if len(want[m].Samples) != len(got[m].Samples) {
			t.Fatalf("at %s %s has %d samples, want %d", at, want[m].Metric, len(got[m].Samples), len(want[m].Samples))
		}
		for i, s := range want[m].Samples {
			g := got[m].Samples[i]
			if off := math.Abs(g.Value - s.Value); g.Key != s.Key || off > 0.011*s.Value+1e-7 || g.At.Sub(s.At).Abs() > time.Second {
				t.Fatalf("at %s %s has %+v, want %+v", at, want[m].Metric, g, s)
			}
		}
	}
}

// FuzzWindow: whatever a history has, it is refused or is a window that answers with numbers.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{savedVersion, 0, 0})
	f.Add(append(append([]byte{savedVersion, 200, 1, 200, 1}, make([]byte, 6+metrics+4)...), 0, 0))
	var w Window
	for n := range 20 {
		at := noon.Add(time.Duration(n) * time.Minute)
		w.Take([]scrape.PodReport{says(0, at, map[string]scrape.ServerReport{"a": {Apps: 1, Events: float64(n * n), Objects: 7, Counts: all}})}, []string{"a"}, at)
	}
	good, err := w.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, text []byte) {
		var w Window
		if err := w.UnmarshalBinary(text); err != nil {
			if err = w.unpacked(text); err != nil {
				return
			}
		}
		w.know([]string{"a"})
		at := time.UnixMilli(max(w.restored, w.closed*step.Milliseconds()))
		for _, answer := range w.Fetched(at) {
			for _, s := range answer.Samples {
				if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0 {
					t.Errorf("%s of %s is %v", answer.Metric, s.Key, s.Value)
				}
			}
		}
		again, err := w.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Window).UnmarshalBinary(again); err != nil {
			t.Errorf("what was read cannot be saved and read again: %v", err)
		}
	})
}

func TestASavedWindowThatIsNoneIsRefused(t *testing.T) {
	w := Window{closed: 7}
	for text, want := range map[string]string{"": "unpacking", "x": "unpacking"} {
		if err := w.UnmarshalBinary([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || w.closed != 7 {
			t.Errorf("%q: %v, and the window is at %d", text, err, w.closed)
		}
	}
	for name, text := range map[string][]byte{"another version": {9}, "cut off": {savedVersion, 1}, "half a server": {savedVersion, 1, 1, 5},
		"an overlong number": {savedVersion, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}} {
		if err := w.unpacked(text); err == nil || w.closed != 7 {
			t.Errorf("%s is no error, or changed the window", name)
		}
	}
}

// fleetOf is a fleet of 5,000 clusters on 16 pods, each of which rises by its own random steps.
type bigFleet struct {
	servers []string
	counts  []float64
}

func newBigFleet(n int) *bigFleet {
	f := &bigFleet{counts: make([]float64, n)}
	for i := range n {
		f.servers = append(f.servers, fmt.Sprintf("https://api.prod-eu-central-%04d.example.com:6443", i))
	}
	return f
}

func (f *bigFleet) look(at time.Time, noise func(i int) float64) []scrape.PodReport {
	reports := make([]scrape.PodReport, 16)
	for p := range reports {
		reports[p] = says(p, at, map[string]scrape.ServerReport{})
	}
	for i, url := range f.servers {
		f.counts[i] += float64(60+i) * noise(i)
		reports[i%16].Servers[url] = scrape.ServerReport{Apps: 4, Events: f.counts[i], Reconciles: f.counts[i] / 3, Objects: float64(1000 + i), Counts: all}
	}
	return reports
}

// spread is a number around 1 that differs by cluster and minute: the deviation is a fifth.
func spread(i, n int) float64 {
	x := uint64(i)*0x9E3779B97F4A7C15 + uint64(n)*0xBF58476D1CE4E5B9
	x ^= x >> 31
	x *= 0x94D049BB133111EB
	x ^= x >> 29
	return math.Exp(0.35 * (float64(x%1000)/500 - 1))
}

// asJSON is the size of a saved window whose numbers are JSON before they are packed, as the history's other parts are.
func asJSON(t *testing.T, packed []byte) int {
	t.Helper()
	type saved struct {
		Server string
		Seen   [metrics]int64
		Most   [2][]int64 // by pairs: how many steps ago, and the value
		Rates  [2][]int64 // those that have one, those that matter, the highest level, and each by its distance from the highest before it
	}
	var w Window
	if err := w.UnmarshalBinary(packed); err != nil {
		t.Fatal(err)
	}
	var list []saved
	for d, s := range w.saved {
		one := saved{Server: fmt.Sprintf("%x", d)}
		for i, seen := range s.seen {
			one.Seen[i] = since(w.restored, seen)
		}
		for i, ring := range s.most {
			for _, slot := range ring {
				if slot.at != 0 {
					one.Most[i] = append(one.Most[i], w.closed+1-int64(slot.at), int64(slot.value))
				}
			}
		}
		for i, ring := range s.rates {
			one.Rates[i] = make([]int64, 3)
			for back := range int64(steps) {
				slot := ring[(w.closed-back)%steps]
				if slot.at == 0 {
					continue
				}
				one.Rates[i][0] |= 1 << back
				if level := int64(levelOf(slot.value)); level > 0 {
					one.Rates[i][1] |= 1 << back
					one.Rates[i][2] = max(one.Rates[i][2], level)
					one.Rates[i] = append(one.Rates[i], level-one.Rates[i][2])
				}
			}
		}
		list = append(list, one)
	}
	plain, err := (gz.Bounds{Bytes: mostSaved, Nested: 1 << 20}).PackJSON(list)
	if err != nil {
		t.Fatal(err)
	}
	return len(plain)
}

// TestASavedWindowOfFiveThousandClustersIsSmall: it keeps within what a part of the history may take, and as JSON it would not.
func TestASavedWindowOfFiveThousandClustersIsSmall(t *testing.T) {
	for name, noise := range map[string]func(i, n int) float64{
		"steady": func(int, int) float64 { return 1 },
		"noisy":  func(i, n int) float64 { return spread(i, n/2) },
	} {
		var w Window
		f := newBigFleet(5000)
		for n := range 74 {
			at := noon.Add(time.Duration(n) * 150 * time.Second)
			w.Take(f.look(at, func(i int) float64 { return noise(i, n) }), f.servers, at)
		}
		packed, err := w.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d KiB", name, len(packed)>>10)
		if len(packed) > 200<<10 {
			t.Errorf("%s: %d KiB, want at most 200", name, len(packed)>>10)
		}
		if plain := asJSON(t, packed); name == "noisy" && plain <= 200<<10 {
			t.Errorf("as JSON it takes %d KiB, which is little enough: write it so", plain>>10)
		} else {
			t.Logf("%s: %d KiB as JSON", name, plain>>10)
		}
	}
}

// BenchmarkWindow is a cycle's poll at 5,000 clusters on 16 pods once they answered: a look taken, every fifth of which closes a step, and
// the answers.
func BenchmarkWindow(b *testing.B) {
	var w Window
	f := newBigFleet(5000)
	n := 0
	look := func() ([]scrape.PodReport, time.Time) {
		n++
		at := noon.Add(time.Duration(n) * time.Minute)
		return f.look(at, func(i int) float64 { return spread(i, n/5) }), at
	}
	for range 190 {
		reports, at := look()
		w.Take(reports, f.servers, at)
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		reports, at := look()
		b.StartTimer()
		w.Take(reports, f.servers, at)
		w.Fetched(at)
	}
	b.StopTimer()
	packed, err := w.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(packed)), "saved-bytes")
}

func TestServersOfAFleetAreWrittenAsPodsDo(t *testing.T) {
	fleet := discover.Fleet{Units: []discover.Unit{{Server: "https://a/"}, {Server: ""}, {Server: plan.InClusterServer}}}
	if diff := cmp.Diff([]string{"https://a", plan.InClusterServer}, Servers(fleet)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEventsThatArePassedOverAreTold beside the answer, three pods of all, as long as they show such.
func TestEventsThatArePassedOverAreTold(t *testing.T) {
	var w Window
	look := func(at time.Time, long, pods int) []string {
		var reports []scrape.PodReport
		for pod := range pods {
			r := says(pod, at, map[string]scrape.ServerReport{"https://a": {Apps: 1, Events: 5, Counts: all}})
			r.LongEvents = long
			reports = append(reports, r)
		}
		w.Take(reports, []string{"https://a"}, at)
		var told []string
		for i, f := range w.Fetched(at) {
			if i != events && len(f.Warnings) > 0 {
				t.Errorf("%s warns of %q", f.Metric, f.Warnings)
			}
			told = append(told, f.Warnings...)
		}
		return told
	}
	if got := look(noon, 0, 1); got != nil {
		t.Errorf("where nothing is passed over: %q", got)
	}
	r := says(0, noon, nil)
	r.LongEvents = 3
	if diff := cmp.Diff([]string{r.Passed()}, look(noon.Add(time.Minute), 3, 1)); diff != "" || r.Passed() == "" {
		t.Errorf("of one pod (-want +got):\n%s", diff)
	}
	if got := look(noon.Add(2*time.Minute), 3, 9); len(got) != 3 {
		t.Errorf("of nine pods: %q", got)
	}
	if got := look(noon.Add(3*time.Minute), 0, 1); got != nil {
		t.Errorf("after it: %q", got)
	}
}
