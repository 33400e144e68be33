package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/ownership"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// unlevel lets the clusters of replica 0 grow to four times their load, as a working day does.
func (w *liveWorld) unlevel(t *testing.T, clusters int) {
	for i := range clusters {
		if name := fmt.Sprintf("c%03d", i); w.row(t, name) == 0 {
			w.setLoad(name, 40)
		}
	}
}

// honest has 40 clusters of a load of 10 each, known for an hour and a half, and so many of somebody's own beside them.
func honest(t *testing.T, own int) *liveWorld {
	w := adopted(t, slices.Repeat([]float64{10}, 40)...)
	for i := range own {
		w.add(fmt.Sprintf("own%02d", i), 1)
	}
	w.frozenFor(90, func(int) {})
	w.known()
	w.frozenFor(2, func(int) {})
	return w
}

// silence ends the series of somebody's own clusters.
func (w *liveWorld) silence() {
	w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return strings.Contains(s.Key, "own") })
}

// frozenFor counts the cycles, a minute each, in which the metrics are refused.
func (w *liveWorld) frozenFor(cycles int, each func(cycle int)) (frozen int) {
	for i := range cycles {
		each(i)
		w.step(time.Minute)
		if w.last.Table.Frozen {
			frozen++
		}
	}
	return frozen
}

// Whose clusters lose their series keeps the fleet from being levelled for half an hour, and by doing so again and again for no more
// than an hour a day. The first clusters without a value are named.
func TestClustersThatLoseTheirSeriesKeepTheFleetNoLongerThanAnHour(t *testing.T) {
	const day = 24 * 60
	for name, test := range map[string]struct {
		own  int
		each func(w *liveWorld, minute int)
		want int // minutes of a day
	}{
		"nobody's": {own: 0, each: func(*liveWorld, int) {}},
		"for good": {own: 5, each: func(w *liveWorld, _ int) { w.silence() }, want: 30},
		"by turns": {own: 5, want: 30, each: func(w *liveWorld, minute int) {
			if w.silence(); minute%29 == 0 {
				for i := range 5 {
					w.setLoad(fmt.Sprintf("own%02d", i), 1)
				}
			}
		}},
		"one batch after the other": {own: 30, want: 60, each: func(w *liveWorld, minute int) {
			if w.silence(); minute < 100 {
				for i := range max(22-minute/25*8, 0) {
					w.setLoad(fmt.Sprintf("own%02d", i), 1)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := honest(t, test.own)
			w.unlevel(t, 40)
			grown := w.on(0)
			got := w.frozenFor(day, func(minute int) { test.each(w, minute) })
			if got > test.want || got < test.want-2 {
				t.Errorf("the metrics were refused for %d min of a day, want %d", got, test.want)
			}
			heavy := 0
			for _, at := range w.on(0) {
				if strings.HasPrefix(at, "c0") && slices.Contains(grown, at) {
					heavy++
				}
			}
			if heavy >= 10 {
				t.Errorf("replica 0 still has %d of the clusters that grew: %v", heavy, w.on(0))
			}
		})
	}
}

func TestTheClustersWithoutAValueAreNamed(t *testing.T) {
	w := honest(t, 5)
	w.silence()
	w.step(time.Minute)
	until := w.in.Now.Add(measure.AcceptLossAfter).UTC().Format(time.RFC3339)
	want := []string{`metric "apps": only 40 of the 45 clusters measured last time have a value now ("own00" "own01" "own02" and 2 more: none), ` +
		"so all keep their last good one until " + until}
	var got []string
	for _, p := range w.last.Problems {
		if p.Kind == string(measure.LowCoverage) {
			got = append(got, p.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the pods say of clusters without series: without Applications they are no loss; where no pod shows them, one that lasts; while
// pods show them, half of the fleet that has no series is Prometheus' fault for good.
func TestWhatThePodsSayOfALostSeries(t *testing.T) {
	own := func(w *liveWorld, change func(*ownership.ClusterObservation)) {
		for name, c := range w.in.Observed.Reported.Clusters {
			if strings.HasPrefix(name, "own") {
				change(&c)
				w.in.Observed.Reported.Clusters[name] = c
			}
		}
	}
	unread := func(c *ownership.ClusterObservation) {
		*c = ownership.ClusterObservation{Server: c.Server, Apps: ownership.Unknown}
	}
	for name, test := range map[string]struct {
		pods func(w *liveWorld)
		want int // of 180 minutes
	}{
		"they have no Applications": {func(w *liveWorld) {
			own(w, func(c *ownership.ClusterObservation) { *c = ownership.ClusterObservation{Server: c.Server} })
		}, 0},
		"no pod shows them":       {func(w *liveWorld) { own(w, unread) }, 30},
		"none is connected to it": {func(w *liveWorld) { own(w, func(c *ownership.ClusterObservation) { c.Live = nil }) }, 30},
		"a pod did not answer":    {func(w *liveWorld) { own(w, unread); w.in.Observed.Reported.Asked = false }, 180},
		"the pods are away": {func(w *liveWorld) {
			own(w, unread)
			w.in.Observed.Reported.Pods = nil
		}, 180},
		"the pods show them": {func(*liveWorld) {}, 180},
	} {
		t.Run(name, func(t *testing.T) {
			w := honest(t, 50)
			w.silence()
			got := 0
			for range 180 {
				w.in.Now = w.in.Now.Add(time.Minute)
				w.observe()
				test.pods(w)
				if w.cycle().Table.Frozen {
					got++
				}
			}
			if got != test.want {
				t.Errorf("the metrics were refused for %d min of 180, want %d: %v", got, test.want, problems(w.last))
			}
		})
	}
}

// All clusters of a replica lose their series, eight of 24. Where its pod answers and has none of them connected, they ended, though another
// pod keeps silent, and the others' loads count six hours later. Where nobody hears of that pod, it may be dead, and they nobody's.
func TestAReplicaOfClustersThatEndedStopsNothingForGood(t *testing.T) {
	for name, test := range map[string]struct {
		mute  int
		shown bool // by their pod
		want  int  // of 500 minutes
	}{
		"another pod keeps silent": {mute: 0, want: 360},
		"and theirs has them":      {mute: 0, shown: true, want: 500},
		"theirs keeps silent":      {mute: 2, want: 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, slices.Repeat([]float64{10}, 24)...)
			silent, of2 := map[string]bool{}, w.on(2)
			for _, cluster := range of2 {
				w.taken[cluster], silent[w.secret(cluster).Server] = !test.shown, true
			}
			w.mute = map[int]bool{test.mute: true}
			got := w.frozenFor(500, func(int) {
				w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return silent[s.Key] })
			})
			if len(of2) != 8 || len(w.on(2)) != 8 {
				t.Fatalf("replica 2 had %d clusters and has %d, want 8", len(of2), len(w.on(2)))
			}
			if got != test.want {
				t.Errorf("the metrics were refused for %d min of 500, want %d: %v", got, test.want, problems(w.last))
			}
		})
	}
}

// A replica that Prometheus does not scrape is never believed to have lost its clusters, and nothing moves by it.
func TestAReplicaThatIsNotScrapedMovesNothing(t *testing.T) {
	w := adopted(t, slices.Repeat([]float64{10}, 40)...)
	before := w.in.InForce.Clone()
	w.unlevel(t, 40)
	blind := map[string]bool{}
	for _, name := range w.on(2) {
		blind[w.secret(name).Server] = true
	}
	got := w.frozenFor(49*60, func(int) {
		w.in.Fetched[0].Samples = slices.DeleteFunc(w.in.Fetched[0].Samples, func(s poll.Sample) bool { return blind[s.Key] })
	})
	if got != 49*60 {
		t.Errorf("the metrics were refused for %d min, want %d", got, 49*60)
	}
	if diff := cmp.Diff(rows(before), rows(*w.in.InForce)); diff != "" {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
}

func rows(p plan.Plan) map[string]int {
	at := map[string]int{}
	for name, row := range p.Clusters {
		at[name] = row.Replica
	}
	return at
}

// Five Secrets that sort first stand beside others' for two minutes and then have another server: they never carried those clusters'
// values, so none is lost.
func TestATwinThatLeavesTakesNoValueAlong(t *testing.T) {
	w := honest(t, 0)
	twin := func(i int, server string) {
		name := fmt.Sprintf("aa%02d", i)
		if w.secret(name) == nil {
			w.add(name, 0)
			w.in.Fetched[0].Samples = w.in.Fetched[0].Samples[:40]
			w.secret(name).Created = w.in.Now
		}
		w.secret(name).Server = server
	}
	for i := range 5 {
		twin(i, w.secret(fmt.Sprintf("c%03d", i)).Server)
	}
	w.frozenFor(2, func(int) {})
	for i := range 5 {
		twin(i, fmt.Sprintf("https://nowhere%02d.example", i))
	}
	if got := w.frozenFor(60, func(int) {}); got != 0 {
		t.Errorf("the metrics were refused for %d min, want none: %v", got, problems(w.last))
	}
}

// Whatever Secrets others make, change and delete within an hour beside a measured fleet, its metrics are believed or refused as
// without them, and its clusters have the same values.
func TestOthersSecretsChangeNoVerdictOfTheMetrics(t *testing.T) {
	const clusters = 8
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		worlds := [2]*world{newWorld(slices.Repeat([]float64{10}, clusters)...), newWorld(slices.Repeat([]float64{10}, clusters)...)}
		for i := range clusters {
			names = append(names, fmt.Sprintf("c%03d", i))
		}
		for _, w := range worlds { // nothing moves, or the clusters would be on other replicas
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
			w.run(3)
		}
		servers := []string{"https://x1.example", "https://x2.example", server("c000"), server("c001"), server("c002") + "/"}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			var lost []string
			if rapid.IntRange(0, 3).Draw(t, "loses") == 0 {
				lost = rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "lost")
			}
			var samples []poll.Sample
			for _, name := range names {
				if !slices.Contains(lost, name) {
					samples = append(samples, poll.Sample{Key: server(name), Value: float64(rapid.IntRange(1, 30).Draw(t, "load"))})
				}
			}
			worlds[0].others(t, servers)
			minutes := rapid.IntRange(1, 4).Draw(t, "minutes")
			for k, w := range worlds {
				w.in.Fetched[0].Samples = slices.Clone(samples)
				if k == 0 && rapid.Bool().Draw(t, "measured") {
					w.in.Fetched[0].Samples = append(w.in.Fetched[0].Samples, poll.Sample{Key: servers[0], Value: 1e6}, poll.Sample{Key: servers[1], Value: 5})
				}
				w.run(minutes)
			}
			if diff := cmp.Diff(honestVerdict(worlds[1], names), honestVerdict(worlds[0], names)); diff != "" {
				t.Fatalf("step %d (-without others' +with them):\n%s", step, diff)
			}
		}
	})
}

// others makes, changes and deletes Secrets that are not the fleet's.
func (w *world) others(t *rapid.T, servers []string) {
	for _, name := range []string{"aa", "bb", "c000a", "yy", "zz"} {
		if rapid.Bool().Draw(t, "stays") {
			continue
		}
		w.remove(name)
		if rapid.Bool().Draw(t, "gone") {
			continue
		}
		w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, discover.Secret{
			UID: "uid-" + name, Name: name, Cluster: name, HasData: true, Created: w.in.Now, Server: rapid.SampledFrom(servers).Draw(t, "server"),
			Unmanaged: rapid.Bool().Draw(t, "unmanaged"), Immutable: rapid.Bool().Draw(t, "immutable"), SkipReconcile: rapid.Bool().Draw(t, "skip"),
		})
	}
}

type verdict struct {
	Frozen bool
	Kinds  []string
	Values map[string]float64
	Flags  map[string]measure.Flag
}

func honestVerdict(w *world, names []string) verdict {
	v := verdict{Frozen: w.last.Table.Frozen, Values: map[string]float64{}, Flags: map[string]measure.Flag{}}
	for _, p := range w.last.Table.Problems {
		if p.Kind == measure.LowCoverage || p.Kind == measure.TotalDropped {
			v.Kinds = append(v.Kinds, string(p.Kind))
		}
	}
	for i, s := range w.last.Table.Shards {
		if slices.Contains(names, s.ID) {
			v.Values[s.ID], v.Flags[s.ID] = w.last.Table.Columns[0].Values[i], w.last.Table.Columns[0].Flags[i]
		}
	}
	return v
}
