package harm

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// start lies within a minute and within ten of them.
var start = time.Date(2026, 11, 20, 17, 3, 20, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// before is an ordinary replica: 1,000 reconciles of 0.4 s.
var before = map[int]Work{0: {1000, 400}, 1: {1000, 400}}

func wave() Wave {
	return Wave{Began: at(-60), Ended: at(0), Clusters: []string{"prod-us", "prod-eu"}, Receivers: []int{1, 0, 1}, Orphans: []string{"lost-long-ago"}, Work: whole(before)}
}

// plus is a replica's counters after so many more reconciles of so many seconds each.
func plus(w Work, reconciles uint64, each float64) Work {
	return Work{w.Reconciles + reconciles, w.Seconds + float64(reconciles)*each}
}

// whole is work of one portion on each replica.
func whole(work map[int]Work) map[Portion]Work {
	all := map[Portion]Work{}
	for replica, w := range work {
		all[Portion(replica*portions)] = w
	}
	return all
}

// look is a judgement at a second after the wave.
type look struct {
	second int
	signs  Signs
}

func judged(w Watch, looks []look) (*Trip, Watch) {
	for _, l := range looks {
		trip, next := Judge(w, at(l.second), l.signs)
		if trip != nil {
			return trip, next
		}
		w = next
	}
	return nil, w
}

func TestASignOfHarmWithinFifteenMinutesTrips(t *testing.T) {
	warmed := map[int]Work{0: plus(before[0], 30, 9), 1: plus(before[1], 30, 9)} // what fills caches is slow
	slow := map[int]Work{0: plus(warmed[0], 100, 0.4), 1: plus(warmed[1], 100, 1.5)}
	for name, test := range map[string]struct {
		looks []look
		want  *Trip
	}{
		"an orphan": {[]look{{120, Signs{Orphans: []string{"elsewhere", "prod-us"}}}},
			&Trip{At: at(120), Reason: Orphaned, Why: `cluster "prod-us" has no owner, 2m0s after cluster "prod-eu" and 1 more moved`}},
		"an orphan that did not move itself": {[]look{{900, Signs{Orphans: []string{"lost-long-ago", "elsewhere"}}}},
			&Trip{At: at(900), Reason: Orphaned, Why: `cluster "elsewhere" has no owner, 15m0s after cluster "prod-eu" and 1 more moved`}},
		"an orphan that was there before": {[]look{{120, Signs{Orphans: []string{"lost-long-ago"}}}}, nil},
		"an orphan after 15 minutes":      {[]look{{901, Signs{Orphans: []string{"prod-us"}}}}, nil},
		"an OOM kill": {[]look{{300, Signs{Kills: []Kill{{"controller-1", 1, at(200)}, {"controller-0", 0, at(100)}}}}},
			&Trip{At: at(300), Reason: OOMKilled, Why: `pod "controller-0" was killed for its memory, 5m0s after cluster "prod-eu" and 1 more moved`, Replicas: []int{0, 1}, Moved: 2}},
		"an OOM kill while the wave moved": {[]look{{1, Signs{Kills: []Kill{{"controller-1", 1, at(-30)}}}}},
			&Trip{At: at(1), Reason: OOMKilled, Why: `pod "controller-1" was killed for its memory, 1s after cluster "prod-eu" and 1 more moved`, Replicas: []int{1}, Moved: 2}},
		"an OOM kill as the wave began": {[]look{{1, Signs{Kills: []Kill{{"controller-1", 1, at(-60)}}}}},
			&Trip{At: at(1), Reason: OOMKilled, Why: `pod "controller-1" was killed for its memory, 1s after cluster "prod-eu" and 1 more moved`, Replicas: []int{1}, Moved: 2}},
		"an OOM kill of a replica that received nothing": {[]look{{300, Signs{Kills: []Kill{{"controller-2", 2, at(100)}}}}}, nil},
		"an OOM kill before the wave":                    {[]look{{60, Signs{Kills: []Kill{{"controller-1", 1, at(-61)}}}}}, nil},
		"an OOM kill that is seen late":                  {[]look{{4000, Signs{Kills: []Kill{{"controller-1", 1, at(900)}}}}}, &Trip{At: at(4000), Reason: OOMKilled, Why: `pod "controller-1" was killed for its memory, 1h6m40s after cluster "prod-eu" and 1 more moved`, Replicas: []int{1}, Moved: 2}},
		"an OOM kill after 15 minutes":                   {[]look{{902, Signs{Kills: []Kill{{"controller-1", 1, at(901)}}}}}, nil},
		"reconciles that take more than twice as long": {[]look{{180, Signs{Work: whole(warmed)}}, {600, Signs{Work: whole(slow)}}},
			&Trip{At: at(600), Reason: Slowed, Why: `replica 1 takes 1.50 s for a reconcile instead of 0.40 s, 10m0s after cluster "prod-eu" and 1 more moved`}},
		"slow reconciles while caches fill": {[]look{{60, Signs{Work: whole(warmed)}}, {179, Signs{Work: whole(slow)}}, {180, Signs{Work: whole(slow)}}}, nil},
		"a clock that went back":            {[]look{{180, Signs{Work: whole(warmed)}}, {-4000, Signs{Orphans: []string{"prod-us"}}}}, &Trip{At: at(-4000), Reason: Orphaned, Why: `cluster "prod-us" has no owner, 0s after cluster "prod-eu" and 1 more moved`}},
		"nothing":                           {[]look{{0, Signs{}}, {180, Signs{Work: whole(warmed)}}, {900, Signs{Work: whole(map[int]Work{0: plus(warmed[0], 500, 0.7), 1: plus(warmed[1], 500, 0.7)})}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, w := judged(Watch{}.After(wave()), test.looks)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got != nil && !w.Ended.IsZero() {
				t.Errorf("the watch goes on after its trip: %+v", w)
			}
		})
	}
}

func TestFewOrFastReconcilesTripNothing(t *testing.T) {
	for name, test := range map[string]struct {
		base  Work
		after Work // in addition
		trips bool
	}{
		"from 2 ms to 5 ms on three samples":        {Work{3, 0.006}, Work{3, 0.015}, false},
		"from 2 ms to 20 ms on a thousand":          {Work{1000, 2}, Work{1000, 20}, false},
		"from 2 s to 9 s on 19 after":               {Work{1000, 2000}, Work{19, 171}, false},
		"from 2 s to 9 s on 20 after":               {Work{1000, 2000}, Work{20, 180}, true},
		"from 2 s to 9 s on 19 before":              {Work{19, 38}, Work{1000, 9000}, false},
		"from 2 s to 4 s, which is twice":           {Work{100, 200}, Work{100, 400}, false},
		"from 2 s to 4.01 s, which is more":         {Work{100, 200}, Work{100, 401}, true},
		"from 0.2 s to 0.44 s, less than a bucket":  {Work{100, 20}, Work{100, 44}, false},
		"from 0.25 s to 0.51 s, more than a bucket": {Work{100, 25}, Work{100, 51}, true},
		"nothing was measured before":               {Work{}, Work{1000, 9000}, false},
		"not a number":                              {Work{100, math.NaN()}, Work{1000, 9000}, false},
		"less than no time before":                  {Work{100, -20}, Work{1000, 9000}, false},
		"not a number now":                          {Work{100, 20}, Work{1000, math.NaN()}, false},
		"infinite":                                  {Work{100, 20}, Work{1000, math.Inf(1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := Watch{}.After(Wave{Ended: at(0), Work: whole(map[int]Work{4: test.base})})
			_, w = Judge(w, at(180), Signs{Work: whole(map[int]Work{4: test.base})})
			now := Work{test.base.Reconciles + test.after.Reconciles, test.base.Seconds + test.after.Seconds}
			trip, _ := Judge(w, at(300), Signs{Work: whole(map[int]Work{4: now})})
			if (trip != nil) != test.trips {
				t.Errorf("trip %+v, want one: %t", trip, test.trips)
			}
		})
	}
}

func TestAProcessThatBeganAnewIsMeasuredAnew(t *testing.T) {
	w := Watch{}.After(wave())
	_, w = Judge(w, at(180), Signs{Work: whole(before)})
	trip, w := Judge(w, at(240), Signs{Work: whole(map[int]Work{0: {50, 300}, 1: plus(before[1], 50, 0.4)})})
	if trip != nil {
		t.Errorf("a cold cache tripped: %+v", trip)
	}
	trip, _ = Judge(w, at(300), Signs{Work: whole(map[int]Work{0: {70, 320}, 2: {500, 5000}})})
	want := &Trip{At: at(300), Reason: Slowed, Why: `replica 0 takes 1.00 s for a reconcile instead of 0.40 s, 5m0s after cluster "prod-eu" and 1 more moved`}
	if diff := cmp.Diff(want, trip); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEitherCounterThatFellTellsOfAnotherProcess(t *testing.T) {
	for name, now := range map[string]Work{"fewer reconciles": {90, 4000}, "less time": {4000, 390}} {
		t.Run(name, func(t *testing.T) {
			_, w := Judge(Watch{}.After(wave()), at(180), Signs{Work: whole(map[int]Work{0: {100, 400}})})
			trip, w := Judge(w, at(240), Signs{Work: whole(map[int]Work{0: now})})
			if diff := cmp.Diff(whole(map[int]Work{0: now}), w.From); trip != nil || diff != "" {
				t.Errorf("trip %+v, measured from -want +got:\n%s", trip, diff)
			}
		})
	}
}

func TestJudgingChangesNothingItWasGiven(t *testing.T) {
	first := Watch{}.After(Wave{Ended: at(0), Work: whole(map[int]Work{0: {5, 5}})})
	_, second := Judge(first, at(180), Signs{Work: whole(map[int]Work{0: {6, 6}})})
	_, third := Judge(second, at(181), Signs{Work: whole(map[int]Work{0: {6, 6}, 1: {7, 7}})})
	third.After(Wave{Ended: at(200), Work: whole(map[int]Work{2: {8, 8}})})
	want := []Watch{
		{Ended: at(0), Before: whole(map[int]Work{0: {5, 5}})},
		{Ended: at(0), Before: whole(map[int]Work{0: {5, 5}}), From: whole(map[int]Work{0: {6, 6}})},
		{Ended: at(0), Before: whole(map[int]Work{0: {5, 5}}), From: whole(map[int]Work{0: {6, 6}, 1: {7, 7}})},
	}
	if diff := cmp.Diff(want, []Watch{first, second, third}, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	given := map[int]Work{0: {5, 5}}
	watch := Watch{}.After(Wave{Ended: at(0), Work: whole(given)})
	watch.After(Wave{Ended: at(0), Work: whole(map[int]Work{9: {1, 1}})})
	given[0] = Work{}
	if diff := cmp.Diff(whole(map[int]Work{0: {5, 5}}), watch.Before); diff != "" {
		t.Errorf("the wave's own map is kept -want +got:\n%s", diff)
	}
}

func TestASumOfWorkIsANumber(t *testing.T) {
	for name, tc := range map[string]struct{ a, b, want Work }{
		"as it is":           {Work{2, 0.5}, Work{3, 0.25}, Work{5, 0.75}},
		"seconds beyond all": {Work{1, 1.7e308}, Work{1, 1.7e308}, Work{2, math.MaxFloat64}},
		"a count beyond all": {Work{math.MaxUint64 - 1, 1}, Work{2, 1}, Work{math.MaxUint64, 2}},
	} {
		if got := tc.a.Plus(tc.b); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestWhatIsNoMeasurementIsNotRemembered(t *testing.T) {
	bad := map[int]Work{0: {1, math.NaN()}, 1: {1, math.Inf(1)}, 2: {1, -1}, 3: {1, 1}}
	_, w := Judge(Watch{}.After(Wave{Ended: at(0), Work: whole(bad)}), at(180), Signs{Work: whole(bad)})
	good := map[int]Work{3: {1, 1}}
	if diff := cmp.Diff([]map[Portion]Work{whole(good), whole(good)}, []map[Portion]Work{w.Before, w.From}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := json.Marshal(w); err != nil {
		t.Error(err)
	}
}

// TestOneSlowClusterMakesNoReplicaSlow: nor do some, as long as half of the others is as before.
func TestOneSlowClusterMakesNoReplicaSlow(t *testing.T) {
	for name, test := range map[string]struct {
		portions, slow int
		want           string
	}{
		"the only one":       {1, 1, "replica 2 takes 60.00 s for a reconcile instead of 0.40 s, 5m0s after clusters moved"},
		"one of two":         {2, 1, ""},
		"both":               {2, 2, "replica 2 takes 60.00 s for a reconcile instead of 0.40 s, 5m0s after clusters moved"},
		"one of eight":       {8, 1, ""},
		"two of eight":       {8, 2, ""},
		"four of eight":      {8, 4, ""},
		"five of eight":      {8, 5, "replica 2 takes 15.30 s for a reconcile instead of 0.40 s, 5m0s after clusters moved"},
		"the whole of eight": {8, 8, "replica 2 takes 60.00 s for a reconcile instead of 0.40 s, 5m0s after clusters moved"},
	} {
		t.Run(name, func(t *testing.T) {
			base, now := map[Portion]Work{}, map[Portion]Work{}
			for i := range test.portions {
				portion, each := Portion(2*portions+i), 0.4
				if i < test.slow {
					each = 60
				}
				base[portion] = Work{1000, 400}
				now[portion] = plus(base[portion], 100, each)
			}
			_, w := Judge(Watch{}.After(Wave{Ended: at(0), Work: base}), at(180), Signs{Work: base})
			trip, _ := Judge(w, at(300), Signs{Work: now})
			var got string
			if trip != nil {
				got = trip.Why
			}
			if got != test.want {
				t.Errorf("tripped %q, want %q", got, test.want)
			}
		})
	}
}

// TestAServerIsInOnePortion of each replica, and of no other replica's.
func TestAServerIsInOnePortion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server, replica := rapid.String().Draw(t, "server"), rapid.IntRange(0, 5000).Draw(t, "replica")
		if p := PortionOf(replica, server); p != PortionOf(replica, server) || p.replica() != replica {
			t.Fatalf("portion %d of replica %d is replica %d's", p, replica, p.replica())
		}
	})
}

func TestAWatchEndsAndKeepsQuietWithoutAWave(t *testing.T) {
	trip, w := Judge(Watch{}.After(wave()), at(901), Signs{Orphans: []string{"prod-eu"}})
	if diff := cmp.Diff(Watch{}, w.Standing()); trip != nil || diff != "" {
		t.Errorf("after its time: %+v %s", trip, diff)
	}
	if trip, w := Judge(Watch{}, at(0), Signs{Orphans: []string{"prod-eu"}, Kills: []Kill{{"controller-0", 0, at(0)}}}); trip != nil || !w.Ended.IsZero() {
		t.Errorf("without a wave: %+v %+v", trip, w)
	}
}

func TestWavesInARowAreComparedWithWhatWasBeforeTheFirst(t *testing.T) {
	w := Watch{}.After(wave())
	_, w = Judge(w, at(180), Signs{Work: whole(before)})
	second := Wave{Began: at(200), Ended: at(260), Clusters: []string{"prod-eu", "dev"}, Receivers: []int{2, 1}, Orphans: []string{"prod-us"}, Work: whole(map[int]Work{1: {1100, 900}, 2: {40, 8}})}
	want := Watch{Began: at(-60), Ended: at(260), Clusters: []string{"dev", "prod-eu", "prod-us"}, Receivers: []int{0, 1, 2}, Orphans: []string{"lost-long-ago"},
		Before: whole(map[int]Work{0: {1000, 400}, 1: {1000, 400}, 2: {40, 8}})}
	w = w.After(second)
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[int]Work{0: {1000, 400}, 1: {1000, 400}}, before); diff != "" {
		t.Errorf("the first wave's measure was changed:\n%s", diff)
	}
	if trip, _ := Judge(w, at(300), Signs{Orphans: []string{"prod-us"}}); trip == nil {
		t.Error("what the first wave orphaned is forgiven by the second")
	}
}

// TestAWatchSurvivesItsLeader plays the same looks with and without a change of leaders in between.
func TestAWatchSurvivesItsLeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Watch{}.After(wave())
		b := a
		for second := 0; second <= 960; second += rapid.IntRange(20, 200).Draw(t, "seconds") {
			signs := Signs{Work: map[Portion]Work{}}
			for portion := range Portion(rapid.IntRange(0, 3*portions).Draw(t, "portions")) {
				signs.Work[portion] = Work{rapid.Uint64Range(0, 3000).Draw(t, "n"), float64(rapid.IntRange(0, 5000).Draw(t, "s"))}
			}
			if rapid.IntRange(0, 20).Draw(t, "orphan") == 0 {
				signs.Orphans = []string{"prod-eu"}
			}
			data, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			b = Watch{}
			if err := json.Unmarshal(data, &b); err != nil {
				t.Fatal(err)
			}
			var tripA, tripB *Trip
			tripA, a = Judge(a, at(second), signs)
			tripB, b = Judge(b, at(second), signs)
			if diff := cmp.Diff(tripA, tripB); diff != "" {
				t.Fatalf("-one leader +two:\n%s", diff)
			}
		}
		_, over := Judge(b, at(901), Signs{})
		if standing := over.Standing(); !standing.Ended.IsZero() {
			t.Fatalf("it goes on after 15 minutes: %+v", over)
		}
		if _, gone := Judge(over, at(3600), Signs{}); !gone.Ended.IsZero() {
			t.Fatalf("it is remembered for an hour: %+v", gone)
		}
	})
}

// TestAWatchGoesOnBehindAClockThatWasAhead, once that is back; one whose time is over is no part of the next wave's.
func TestAWatchGoesOnBehindAClockThatWasAhead(t *testing.T) {
	w := Watch{}.After(wave())
	_, ahead := Judge(w, at(6*3600), Signs{Orphans: []string{"prod-eu"}})
	if next := ahead.After(Wave{Ended: at(6 * 3600), Clusters: []string{"x"}, Receivers: []int{7}}); !slices.Equal(next.Clusters, []string{"x"}) || !slices.Equal(next.Receivers, []int{7}) {
		t.Errorf("the next wave's watch has what is over: %+v", next)
	}
	_, back := Judge(ahead, at(60), Signs{})
	if diff := cmp.Diff(w, back, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the watch (-before +after the clock was ahead):\n%s", diff)
	}
	if trip, _ := Judge(back, at(120), Signs{Orphans: []string{"prod-eu"}}); trip == nil || trip.Reason != Orphaned {
		t.Errorf("no trip behind it: %+v", trip)
	}
}
