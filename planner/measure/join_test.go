package measure

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

var usual = Options{MinCoverage: 0.9, MaxDrop: 0.5, MaxAge: 10 * time.Minute}

// fleetOf makes clusters a, b, ... whose servers are the given ones; "-" before a server marks skip-reconcile.
func fleetOf(servers ...string) discover.Fleet {
	var secrets []discover.Secret
	for i, s := range servers {
		name := string(rune('a' + i))
		url, skip := strings.CutPrefix(s, "-")
		secrets = append(secrets, discover.Secret{UID: "uid-" + name, Name: name, Cluster: "the-" + name, Server: url, HasData: true, SkipReconcile: skip})
	}
	fleet, _, err := discover.Discover(discover.Input{Secrets: secrets}, discover.Known{}, discover.Options{}, noon)
	if err != nil {
		panic(err)
	}
	return fleet
}

var abc = fleetOf("https://a", "https://b", "https://c")

func apps() poll.Metric {
	return poll.Metric{ID: "apps", Query: "q", Match: poll.Match{Label: "dest_server"}}
}

func number(v float64) *float64 { return &v }

func answer(samples ...poll.Sample) []poll.Fetched {
	return []poll.Fetched{{Metric: "apps", Samples: samples}}
}

// lastly is a last good table of abc: 10, 20 and 30, all measured a minute ago.
func lastly() LastGood {
	at := noon.Add(-time.Minute).Unix()
	return LastGood{IDs: []string{"a", "b", "c"}, Columns: []LastColumn{{
		ID: "apps", Values: []float64{10, 20, 30}, At: []int64{at, at, at}, Measured: []bool{true, true, true}}}}
}

func lenient(o Options) Options {
	o.MinCoverage = 0.1
	return o
}

func TestJoin(t *testing.T) {
	type row struct {
		Value float64
		Flag  Flag
		Age   time.Duration // -1 is unknown
	}
	minute := time.Minute
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	tests := map[string]struct {
		metric   poll.Metric
		fleet    discover.Fleet
		fetched  []poll.Fetched
		last     LastGood
		options  Options
		want     []row
		wantKind []ProblemKind
		frozen   bool
	}{
		"values find their clusters by server, whatever slashes end it": {
			metric: apps(), fleet: abc, options: usual,
			fetched: answer(poll.Sample{Key: "https://b/", Value: 2, At: ago(minute)}, poll.Sample{Key: "https://a", Value: 1, At: time.Time{}}, poll.Sample{Key: "https://c", Value: 3, At: noon.Add(time.Hour)}),
			want:    []row{{1, Fresh, -1}, {2, Fresh, minute}, {3, Fresh, 0}},
		},
		"scheme and host may be written large, the path not": {
			metric: apps(), fleet: fleetOf("https://a/X", "https://b", "https://C"), options: usual,
			fetched:  answer(poll.Sample{Key: "HTTPS://A/X", Value: 1}, poll.Sample{Key: "https://B", Value: 2}, poll.Sample{Key: "https://c/x", Value: 3}),
			want:     []row{{1, Fresh, -1}, {2, Fresh, -1}, {0, Missing, -1}},
			wantKind: []ProblemKind{Unmatched},
		},
		"two servers that differ in case only are two clusters": {
			metric: apps(), fleet: fleetOf("https://a", "https://A", "https://c"), options: usual,
			fetched: answer(poll.Sample{Key: "https://A", Value: 2}, poll.Sample{Key: "https://a", Value: 1}, poll.Sample{Key: "https://C", Value: 3}),
			want:    []row{{1, Fresh, -1}, {2, Fresh, -1}, {3, Fresh, -1}},
		},
		"by name, and by an alias": {
			metric: poll.Metric{ID: "apps", Query: "q", Match: poll.Match{Label: "name", To: poll.ToName, Aliases: map[string]string{"old": "the-b"}}}, fleet: abc, options: usual,
			fetched: answer(poll.Sample{Key: "the-a", Value: 1}, poll.Sample{Key: "old", Value: 2}, poll.Sample{Key: "the-c", Value: 3}),
			want:    []row{{1, Fresh, -1}, {2, Fresh, -1}, {3, Fresh, -1}},
		},
		"each for itself, by the Secret's name": {
			metric: poll.Metric{ID: "apps", QueryPerCluster: "q"}, fleet: abc, options: usual,
			fetched: answer(poll.Sample{Key: "c", Value: 3}, poll.Sample{Key: "a", Value: 1}, poll.Sample{Key: "b", Value: 2}),
			want:    []row{{1, Fresh, -1}, {2, Fresh, -1}, {3, Fresh, -1}},
		},
		"a cluster without a value holds its last good one": {
			metric: apps(), fleet: abc, options: lenient(usual), last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 11}, poll.Sample{Key: "https://c", Value: 33}),
			want:    []row{{11, Fresh, -1}, {20, Held, minute}, {33, Fresh, -1}},
		},
		"NaN, infinities, negatives and old samples are no values": {
			metric: apps(), fleet: fleetOf("https://a", "https://b", "https://c", "https://d"), options: lenient(usual), last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: math.NaN()}, poll.Sample{Key: "https://b", Value: math.Inf(1)},
				poll.Sample{Key: "https://c", Value: 3, At: ago(11 * minute)}, poll.Sample{Key: "https://d", Value: -1}, poll.Sample{Key: "https://z", Value: 1}),
			want:   []row{{10, Held, minute}, {20, Held, minute}, {30, Held, minute}, {0, Missing, -1}},
			frozen: true, wantKind: []ProblemKind{Unmatched, BadValue, OldValue, LowCoverage},
		},
		"what was never measured is noData, and the rest goes on": {
			metric: poll.Metric{ID: "apps", Query: "q", NoData: number(7)}, fleet: abc, options: usual,
			fetched:  answer(poll.Sample{Key: "https://a", Value: 1}, poll.Sample{Key: "https://b", Value: 2, At: ago(time.Hour)}),
			want:     []row{{1, Fresh, -1}, {7, NoData, -1}, {7, NoData, -1}},
			wantKind: []ProblemKind{OldValue},
		},
		"without noData an old value is better than none": {
			metric: apps(), fleet: abc, options: usual,
			fetched:  answer(poll.Sample{Key: "https://a", Value: 1}, poll.Sample{Key: "https://b", Value: 2, At: ago(time.Hour)}),
			want:     []row{{1, Fresh, -1}, {2, Stale, time.Hour}, {0, Missing, -1}},
			wantKind: []ProblemKind{OldValue},
		},
		"noData is only for a cluster that never had a value": {
			metric: poll.Metric{ID: "apps", Query: "q", NoData: number(7)}, fleet: abc, options: lenient(usual), last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 10}),
			want:    []row{{10, Fresh, -1}, {20, Held, minute}, {30, Held, minute}},
		},
		"Secrets with one server carry its load once": {
			metric: apps(), fleet: fleetOf("https://a", "https://b", "https://a/"), options: usual,
			fetched: answer(poll.Sample{Key: "https://a", Value: 8}, poll.Sample{Key: "https://b", Value: 2}),
			want:    []row{{8, Fresh, -1}, {2, Fresh, -1}, {0, Shared, -1}},
		},
		"the one that leads carries it, not the first by name": {
			metric: apps(), options: usual,
			fleet: func() discover.Fleet {
				f := fleetOf("https://a", "https://b", "https://a/")
				f.Clusters[0].Follows, f.Clusters[2].Follows = true, false
				return f
			}(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 8}, poll.Sample{Key: "https://b", Value: 2}),
			want:    []row{{0, Shared, -1}, {2, Fresh, -1}, {8, Fresh, -1}},
		},
		"the one that is reconciled carries it": {
			metric: apps(), fleet: fleetOf("-https://a", "https://b", "https://a/"), options: usual,
			fetched: answer(poll.Sample{Key: "https://a", Value: 8}, poll.Sample{Key: "https://b", Value: 2}),
			want:    []row{{0, Skipped, -1}, {2, Fresh, -1}, {8, Fresh, -1}},
		},
		"of two values for one server the larger counts": {
			metric: poll.Metric{ID: "apps", QueryPerCluster: "q"}, fleet: fleetOf("https://a", "https://b", "https://a"), options: usual,
			fetched: answer(poll.Sample{Key: "a", Value: 3}, poll.Sample{Key: "b", Value: 2}, poll.Sample{Key: "c", Value: 5}),
			want:    []row{{5, Fresh, -1}, {2, Fresh, -1}, {0, Shared, -1}},
		},
		"a skipped cluster carries nothing": {
			metric: apps(), fleet: fleetOf("https://a", "-https://b"), options: usual,
			fetched: answer(poll.Sample{Key: "https://a", Value: 8}, poll.Sample{Key: "https://b", Value: 2}),
			want:    []row{{8, Fresh, -1}, {0, Skipped, -1}},
		},
		"two spellings of one server add up": {
			metric: apps(), fleet: fleetOf("https://a"), options: usual,
			fetched: answer(poll.Sample{Key: "https://a", Value: 3, At: ago(minute)}, poll.Sample{Key: "https://a/", Value: 4, At: ago(2 * minute)}),
			want:    []row{{7, Fresh, 2 * minute}},
		},
		"two series of one label refuse the metric": {
			metric: apps(), fleet: abc, options: usual, last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 3}, poll.Sample{Key: "https://a", Value: 4}, poll.Sample{Key: "https://b", Value: 4}, poll.Sample{Key: "https://c", Value: 4}),
			want:    []row{{10, Held, minute}, {20, Held, minute}, {30, Held, minute}},
			frozen:  true, wantKind: []ProblemKind{DuplicateSeries},
		},
		"a failed query keeps every last good value": {
			metric: apps(), fleet: abc, options: usual, last: lastly(),
			fetched: []poll.Fetched{{Metric: "apps", Err: "context deadline exceeded"}},
			want:    []row{{10, Held, minute}, {20, Held, minute}, {30, Held, minute}},
			frozen:  true, wantKind: []ProblemKind{QueryFailed},
		},
		"too few clusters measured keep every last good value": {
			metric: apps(), fleet: abc, options: usual, last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 11}, poll.Sample{Key: "https://b", Value: 22}),
			want:    []row{{10, Held, minute}, {20, Held, minute}, {30, Held, minute}},
			frozen:  true, wantKind: []ProblemKind{LowCoverage},
		},
		"an empty answer keeps every last good value": {
			metric: poll.Metric{ID: "apps", Query: "q", NoData: number(0)}, fleet: abc, options: Options{MaxDrop: 1}, last: lastly(),
			fetched: answer(),
			want:    []row{{10, Held, minute}, {20, Held, minute}, {30, Held, minute}},
			frozen:  true, wantKind: []ProblemKind{LowCoverage, NothingFound},
		},
		"an empty first answer decides nothing, even with noData": {
			metric: poll.Metric{ID: "apps", Query: "q", NoData: number(0)}, fleet: abc, options: usual,
			fetched: answer(),
			want:    []row{{0, NoData, -1}, {0, NoData, -1}, {0, NoData, -1}},
			frozen:  true, wantKind: []ProblemKind{NothingFound},
		},
		"an answer about others decides nothing": {
			metric: apps(), fleet: abc, options: usual,
			fetched: answer(poll.Sample{Key: "https://x", Value: 1}),
			want:    []row{{0, Missing, -1}, {0, Missing, -1}, {0, Missing, -1}},
			frozen:  true, wantKind: []ProblemKind{Unmatched, NothingFound},
		},
		"a total that falls by more than half keeps every last good value": {
			metric: apps(), fleet: abc, options: usual, last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 7}, poll.Sample{Key: "https://b", Value: 7}, poll.Sample{Key: "https://c", Value: 9}),
			want:    []row{{10, Held, minute}, {20, Held, minute}, {30, Held, minute}},
			frozen:  true, wantKind: []ProblemKind{TotalDropped},
		},
		"by half it may fall, and whichever falls most by any number": {
			metric: apps(), fleet: abc, options: usual, last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 5}, poll.Sample{Key: "https://b", Value: 10}, poll.Sample{Key: "https://c", Value: 0}),
			want:    []row{{5, Fresh, -1}, {10, Fresh, -1}, {0, Fresh, -1}},
		},
		"clusters that left the fleet are no fall": {
			metric: apps(), fleet: fleetOf("https://a"), options: usual, last: lastly(),
			fetched: answer(poll.Sample{Key: "https://a", Value: 10}),
			want:    []row{{10, Fresh, -1}},
		},
		"a name that two clusters have says nothing of either": {
			metric: poll.Metric{ID: "apps", Query: "q", Match: poll.Match{Label: "name", To: poll.ToName}}, options: usual,
			fleet: func() discover.Fleet {
				f := fleetOf("https://a", "https://b", "https://c")
				f.Clusters[1].Shard.Name = "the-a"
				return f
			}(),
			fetched:  answer(poll.Sample{Key: "the-a", Value: 1}, poll.Sample{Key: "the-c", Value: 3}),
			want:     []row{{0, Missing, -1}, {0, Missing, -1}, {3, Fresh, -1}},
			wantKind: []ProblemKind{SharedName},
		},
		"a fleet that has nothing to measure is not frozen": {
			metric: apps(), fleet: fleetOf("-https://a"), options: usual, fetched: answer(),
			want: []row{{0, Skipped, -1}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			table, err := Join([]poll.Metric{test.metric}, test.fleet, test.fetched, test.last, test.options, noon)
			if err != nil {
				t.Fatal(err)
			}
			var got []row
			for i, v := range table.Columns[0].Values {
				age := time.Duration(-1)
				if at := table.Columns[0].SampledAt[i]; at != 0 {
					age = noon.Sub(time.UnixMilli(at))
				}
				got = append(got, row{v, table.Columns[0].Flags[i], age})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			var kinds []ProblemKind
			for _, p := range table.Problems {
				kinds = append(kinds, p.Kind)
			}
			if diff := cmp.Diff(test.wantKind, kinds); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if table.Frozen != test.frozen {
				t.Errorf("frozen is %v, want %v", table.Frozen, test.frozen)
			}
		})
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	tests := map[string]struct {
		fetched []poll.Fetched
		last    LastGood
		want    []MetricProblem
	}{
		"labels that name no cluster": {
			fetched: answer(poll.Sample{Key: "z4", Value: 1}, poll.Sample{Key: "z1", Value: 1}, poll.Sample{Key: "z2", Value: 1}, poll.Sample{Key: "z3", Value: 1}),
			want: []MetricProblem{
				{"apps", Unmatched, `metric "apps": "z1" "z2" "z3" and 1 more: no cluster is called so; none does: compare match.label and match.to with the answer, or set match.aliases`},
				{"apps", NothingFound, `metric "apps": no cluster has a value, and none is configured as noData`},
			},
		},
		"two series of one label": {
			fetched: answer(poll.Sample{Key: "https://a", Value: 3}, poll.Sample{Key: "https://a", Value: 4}),
			want:    []MetricProblem{{"apps", DuplicateSeries, `metric "apps": two series have dest_server="https://a": aggregate the query by that label`}},
		},
		"few clusters": {
			fetched: answer(poll.Sample{Key: "https://a", Value: 3}), last: lastly(),
			want: []MetricProblem{{"apps", LowCoverage, `metric "apps": only 1 of the 3 clusters measured last time have a value now ("b" "c": none), so all keep their last good one ` +
				"until they have: whole replicas or half of the fleet are missing, so look whether Prometheus scrapes every pod of the application-controller; " +
				"of clusters that are no more, delete the Secrets, and lower poll.minCoverage where so many are measured at times only"}},
		},
		"some clusters": {
			fetched: answer(poll.Sample{Key: "https://a", Value: 3}, poll.Sample{Key: "https://c", Value: 3}), last: lastly(),
			want: []MetricProblem{{"apps", LowCoverage, `metric "apps": only 2 of the 3 clusters measured last time have a value now ("b": none), so all keep their last good one ` +
				"until 2026-08-01T12:30:00Z"}},
		},
		"a fall": {
			fetched: answer(poll.Sample{Key: "https://a", Value: 1}, poll.Sample{Key: "https://b", Value: 1}, poll.Sample{Key: "https://c", Value: 1}), last: lastly(),
			want: []MetricProblem{{"apps", TotalDropped,
				`metric "apps": the total of the 3 clusters measured both times fell from 60 to 3, so all keep their last good value until 2026-08-01T12:30:00Z`}},
		},
		"warnings of Prometheus": {
			fetched: []poll.Fetched{{Metric: "apps", Warnings: []string{"not a counter"}, Samples: []poll.Sample{{Key: "https://a"}}}},
			want:    []MetricProblem{{"apps", QueryWarned, `metric "apps": not a counter`}},
		},
		"no series at all": {
			fetched: answer(), last: LastGood{},
			want: []MetricProblem{
				{"apps", NothingFound, `metric "apps": no cluster has a value, and none is configured as noData`},
				{"", NothingFound, "no metric has a single series: does Prometheus scrape the application-controller? With the Helm chart set " +
					"controller.metrics.enabled=true and controller.metrics.serviceMonitor.enabled=true, and see that its targets have the labels pod and namespace"},
			},
		},
		"no answer": {
			want: []MetricProblem{{"apps", QueryFailed, `metric "apps": it was not asked for`}, {"", NothingFound, nothingAtAll}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			table, err := Join([]poll.Metric{apps()}, abc, test.fetched, test.last, usual, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, table.Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJoinRefusesMetricsThatAreNone(t *testing.T) {
	for want, metrics := range map[string][]poll.Metric{
		"joining metrics to clusters: there is no metric":         nil,
		`joining metrics to clusters: the ID "apps" stands twice`: {apps(), apps()},
	} {
		if _, err := Join(metrics, abc, nil, LastGood{}, usual, noon); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestMetricValuesShowEveryValue(t *testing.T) {
	table, err := Join([]poll.Metric{apps()}, fleetOf("https://a", "https://b"), answer(poll.Sample{Key: "https://a", Value: 1.5, At: noon.Add(-time.Second)}, poll.Sample{Key: "https://b", Value: 1e21}), LastGood{}, usual, noon)
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.MetricValue{
		{ID: "apps", Shard: table.Shards[0], Query: "q", Value: 1.5, DisplayValue: "1.5", SampledAt: noon.Add(-time.Second)},
		{ID: "apps", Shard: table.Shards[1], Query: "q", Value: 1e21, DisplayValue: "1000000000000000000000"},
	}
	if diff := cmp.Diff(want, MetricValues(table)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var anyValue = rapid.OneOf(rapid.Float64Range(0, 1000), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, math.MaxFloat64}))

func TestJoinHoldsForEveryAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := fleetOf(rapid.SliceOfN(rapid.SampledFrom([]string{"https://a", "https://a/", "-https://b", "https://b", "https://c", "https://d"}), 1, 8).Draw(t, "servers")...)
		metrics := []poll.Metric{apps(), {ID: "other", QueryPerCluster: "q", NoData: number(1)}}
		samples := rapid.Custom(func(t *rapid.T) poll.Sample {
			s := poll.Sample{Key: rapid.SampledFrom([]string{"https://a", "https://a/", "https://b", "https://c", "https://d", "https://z", "a", "b", "c"}).Draw(t, "key"), Value: anyValue.Draw(t, "value")}
			if rapid.Bool().Draw(t, "aged") {
				s.At = noon.Add(-time.Duration(rapid.IntRange(-60, 3600).Draw(t, "age")) * time.Second)
			}
			return s
		})
		last := LastGood{}
		for range 3 {
			var fetched []poll.Fetched
			for _, m := range metrics {
				fetched = append(fetched, poll.Fetched{Metric: m.ID, Samples: rapid.SliceOfN(samples, 0, 6).Draw(t, "samples"), Err: rapid.SampledFrom([]string{"", "", "down"}).Draw(t, "err")})
			}
			fetched = overJSON(t, fetched)
			table, err := Join(metrics, fleet, fetched, last, usual, noon)
			if err != nil {
				t.Fatal(err)
			}
			checkTable(t, table)
			again, _ := Join(metrics, fleet, fetched, last, usual, noon)
			if !cmp.Equal(table, again, cmpopts.IgnoreUnexported(Column{})) {
				t.Fatal("the same input gives two tables")
			}
			last = NewLastGood(table, last)
			if !cmp.Equal(last, overCodec(t, last)) {
				t.Fatalf("the codec changes the last good values:\n%s", cmp.Diff(last, overCodec(t, last)))
			}
		}
	})
}

func checkTable(t *rapid.T, table Table) {
	for _, c := range table.Columns {
		carried := map[string]bool{}
		for i, v := range c.Values {
			server := table.Shards[i].Server
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Fatalf("%s of %q is %v", c.ID, table.Shards[i].ID, v)
			}
			if v > 0 && carried[server] {
				t.Fatalf("%s counts %s twice", c.ID, server)
			}
			carried[server] = carried[server] || v > 0
			if c.Refused && (!table.Frozen || c.Flags[i] == Fresh || c.Flags[i] == Stale) {
				t.Fatalf("%s is refused, but a value is %s and frozen is %v", c.ID, c.Flags[i], table.Frozen)
			}
		}
	}
}

func overJSON(t *rapid.T, fetched []poll.Fetched) []poll.Fetched {
	text, err := json.Marshal(fetched)
	if err != nil {
		t.Fatal(err)
	}
	var back []poll.Fetched
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fetched, back, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("JSON changes what was fetched:\n%s", diff)
	}
	return back
}

func TestFlagsAndTablesSurviveJSON(t *testing.T) {
	text, err := json.Marshal(Flags())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`["Missing","Fresh","Held","NoData","Stale","Shared","Skipped","Unshown"]`, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var back []Flag
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Flags(), back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`["Fresh","Rotten"]`), &back); err == nil || !strings.Contains(err.Error(), `"Rotten" is none of`) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			metrics, fleet, fetched := bigFleet(n, 6)
			table, err := Join(metrics, fleet, fetched, LastGood{}, usual, noon)
			if err != nil {
				b.Fatal(err)
			}
			last := NewLastGood(table, LastGood{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Join(metrics, fleet, fetched, last, usual, noon); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
