package replay

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/replay/trace"
	"ballast/planner/sharding"
)

func source(t testing.TB, spec string) *trace.Generator {
	t.Helper()
	s, err := trace.ParseSynthetic(spec)
	if err != nil {
		t.Fatal(err)
	}
	g, err := trace.Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newRun(t testing.TB, s Setup, h trace.Header) *Run {
	t.Helper()
	r, err := NewRun(s, h, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func known(t testing.TB, name string) Setup {
	t.Helper()
	s, ok := Known(name)
	if !ok {
		t.Fatalf("nobody knows %s", name)
	}
	return s
}

// setups are those whose decisions are looked at one by one: the shipped one, each with another way to decide or to bring
// about, and one of Argo CD's own.
func setups(t *testing.T) map[string]Setup {
	hasty := known(t, Shipped)
	hasty.Config.Evaluate = config.Evaluate{None: &config.None{}}
	hasty.Config.Change.Moves.Rate = nil
	votes := known(t, LPT)
	votes.Config.Evaluate.MostWanted.Window = config.Duration(20 * time.Minute)
	stops := hasty
	stops.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: stops.Config.Rollout.StageTimeout}
	grows := known(t, Shipped)
	capacity := config.Decimal("0.3")
	grows.Config.Partition.Capacity = &capacity
	return map[string]Setup{"shipped": known(t, Shipped), "everything at once": hasty, "lpt, in votes of 20m": votes, "x0y": stops, "a capacity": grows,
		"round-robin": known(t, string(sharding.RoundRobin))}
}

const lively = "clusters=14,days=0.25,joins=60,leaves=60,spikes=60,seed=5"

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEachDecisionIsTheCyclesOwn: what a cycle of the replay was given, saved and run again by itself at the end, comes to
// the same plan, reason, memory and candidate. Whatever the replay keeps between cycles must not leak into them.
func TestEachDecisionIsTheCyclesOwn(t *testing.T) {
	type saved struct{ in, out string }
	decided := func(o cycle.Outcome) string {
		return mustJSON(t, []any{o.Next, o.Changed, o.Decided, o.Reason, o.Memory, o.Candidate, o.Loads, o.Problems})
	}
	for name, setup := range setups(t) {
		t.Run(name, func(t *testing.T) {
			g := source(t, lively)
			r := newRun(t, setup, g.Header())
			var all []saved
			cycles, plans := 0, 0
			r.watch = func(in input.Inputs, out cycle.Outcome) {
				if cycles++; out.Changed || cycles%9 == 0 {
					all = append(all, saved{mustJSON(t, in), decided(out)})
				}
				if out.Changed {
					plans++
				}
			}
			feed(t, r, g)
			for i, s := range all {
				var in input.Inputs
				if err := json.Unmarshal([]byte(s.in), &in); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.out, decided(cycle.Run(in))); diff != "" {
					t.Fatalf("cycle %d, at %s (-replay +by itself):\n%s", i, in.Now, diff)
				}
			}
			if cycles != 360 || plans < 3 {
				t.Errorf("%d cycles with %d plans were compared, want 360 and some", cycles, plans)
			}
		})
	}
}

func feed(t testing.TB, r *Run, s trace.Source) Report {
	t.Helper()
	steps, err := trace.All(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		r.Step(step)
	}
	return r.Report()
}

// TestNothingIsLeftOutThatWouldMatter: a replay that looks for steps and owners in every cycle comes to the same end, plan by
// plan.
func TestNothingIsLeftOutThatWouldMatter(t *testing.T) {
	for name, setup := range setups(t) {
		t.Run(name, func(t *testing.T) {
			runs := func(each func(*Run)) (plans []string, r Report) {
				g := source(t, lively)
				run := newRun(t, setup, g.Header())
				run.watch = func(in input.Inputs, out cycle.Outcome) {
					plans = append(plans, mustJSON(t, []any{in.Discovered.Secrets, in.Workload, in.Observed.Pods, out.Next, out.Reason}))
					each(run)
				}
				return plans, feed(t, run, g)
			}
			quick, report := runs(func(*Run) {})
			thorough, whole := runs(func(r *Run) { r.dirty, r.unsure = true, true })
			if diff := cmp.Diff(whole, report); diff != "" {
				t.Errorf("the report (-thorough +quick):\n%s", diff)
			}
			for i := range thorough {
				if diff := cmp.Diff(thorough[i], quick[i]); diff != "" {
					t.Fatalf("cycle %d (-thorough +quick):\n%s", i, diff)
				}
			}
		})
	}
}

// still is a trace of clusters whose loads never change.
func still(replicas []int, loads []float64, steps int) (trace.Header, []trace.Step) {
	var clusters []trace.Cluster
	for i, r := range replicas {
		name := fmt.Sprintf("c%d", i)
		clusters = append(clusters, trace.Cluster{Name: name, Server: "https://" + name, UID: name, Replica: r})
	}
	var all []trace.Step
	for i := range steps {
		all = append(all, trace.Step{At: nine.Add(time.Duration(i) * time.Minute), Roster: 1, Clusters: clusters, Values: [][]float64{loads}})
	}
	return trace.Header{Step: time.Minute, Metrics: []string{trace.LoadMetric}, Replicas: 2}, all
}

var nine = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func steps(t *testing.T, s Setup, h trace.Header, all []trace.Step) Report {
	t.Helper()
	r := newRun(t, s, h)
	for _, step := range all {
		r.Step(step)
	}
	return r.Report()
}

// paused never begins anything: the fleet stands as it is found.
func paused(t *testing.T) Setup {
	s := known(t, LPT)
	s.Config.Evaluate.MostWanted.MinSamples = math.MaxInt32
	return s
}

func TestFiguresAreWhatTheFleetWas(t *testing.T) {
	h, all := still([]int{0, 0, 0, 1}, []float64{1, 1, 1, 1}, 10)
	s := paused(t)
	capacity := config.Decimal("0.7") // of the whole fleet, whose load is 1
	s.Config.Partition.Capacity = &capacity
	s.Config.Partition.Replicas = &config.Replicas{Fixed: 2}
	got := steps(t, s, h, all)
	all1 := 1.0
	want := Report{Name: LPT, From: nine, To: nine.Add(9 * time.Minute), Cycles: 10, Clusters: 4, Replicas: Replicas{2, 2, 2, 2, 2},
		MaxOverIdeal: Levels{1.5, 1.5, 1.5}, AboveTooFull: 1, Capacity: 0.7, AboveCapacity: &all1}
	got.Plans, got.Rollouts, got.Series, got.SeriesInterval = 0, 0, nil, ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	h, all = still([]int{0, 1, 1}, []float64{4, 1, 1}, 5) // the heaviest has more than an even share, and nothing is more level
	if got := steps(t, paused(t), h, all); got.MaxOverIdeal != (Levels{1, 1, 1}) || got.AboveTooFull != 0 {
		t.Errorf("a fleet as level as can be is %+v, above 1.2 for %v of the time", got.MaxOverIdeal, got.AboveTooFull)
	}
}

func TestRebalancesAndMovesAreCounted(t *testing.T) {
	h, all := still([]int{0, 0, 0, 0, 0, 0, 0, 1}, []float64{100, 99, 101, 100, 99, 101, 100, 100}, 60)
	s := known(t, Shipped)
	s.Config.Evaluate, s.Config.Change.Moves.Rate = config.Evaluate{None: &config.None{}}, nil
	got := steps(t, s, h, all)
	if got.Moves != 3 || got.Rebalances != 1 || got.Rollouts != 2 { // the first has the env at its constant
		t.Errorf("%d moves in %d rebalances and %d rollouts, want 3 in 1 and 2", got.Moves, got.Rebalances, got.Rollouts)
	}
	last := got.Series[len(got.Series)-1]
	if want := (Point{At: nine.Add(59 * time.Minute), Replicas: 2, MaxOverIdeal: got.MaxOverIdeal.Last, Moves: 3}); last != want {
		t.Errorf("it ends with %+v, want %+v", last, want)
	}
	if got.MaxOverIdeal.Most != 1.75 || got.MaxOverIdeal.Last > 1.01 {
		t.Errorf("it went from 7 of 4 to 4 of 4, and it says %+v", got.MaxOverIdeal)
	}
}

// TestArgoCDsOwnAlgorithmsAreWatched: clusters are where Argo CD has them, whatever is wanted, and move as it moves them.
func TestArgoCDsOwnAlgorithmsAreWatched(t *testing.T) {
	h, all := still([]int{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 2)
	fewer := all[1]
	fewer.Roster, fewer.Clusters, fewer.Values = 2, fewer.Clusters[1:], [][]float64{{1, 1, 1}}
	got := steps(t, known(t, string(sharding.RoundRobin)), h, []trace.Step{all[0], fewer})
	if got.Moves != 3 || got.MaxOverIdeal.Mean != (1+4.0/3)/2 && math.Abs(got.MaxOverIdeal.Mean-(1+4.0/3)/2) > 1e-4 || got.Plans > 2 {
		t.Errorf("round-robin has every other cluster of 4, then of 3, each on the other replica: %+v", got)
	}
	if got := steps(t, known(t, string(sharding.ConsistentHashing)), h, all); got.MaxOverIdeal.Most > 1.5 || got.Moves != 0 {
		t.Errorf("consistent hashing bounds a replica at 1.25 of the mean, rounded up: %+v", got)
	}
}

// TestAStepStandsAsLongAsStepsAreApart: then nothing is known, and nothing is made up.
func TestAStepStandsAsLongAsStepsAreApart(t *testing.T) {
	h, all := still([]int{0, 1}, []float64{1, 1}, 2)
	h.Step = 5 * time.Minute
	all[1].At = nine.Add(20 * time.Minute)
	s, asked := known(t, Shipped), map[bool]int{}
	r := newRun(t, s, h)
	r.watch = func(in input.Inputs, _ cycle.Outcome) { asked[in.Fetched[0].Err == ""]++ }
	for _, step := range all {
		r.Step(step)
	}
	got := r.Report()
	if want := map[bool]int{true: 10, false: 15}; !cmp.Equal(want, asked) {
		t.Errorf("cycles with an answer and without: %v, want %v", asked, want)
	}
	if want := []Count{{"poll/QueryFailed", 15}}; got.Cycles != 25 || !cmp.Equal(want, got.Kept) {
		t.Errorf("%d cycles, kept still by %v; want 25 and %v", got.Cycles, got.Kept, want)
	}
}

// TestMetricsAreJoinedAsTheConfigurationSays: by server, name or ID; two clusters of one server are one.
func TestMetricsAreJoinedAsTheConfigurationSays(t *testing.T) {
	s := known(t, Shipped)
	p := *s.Config.Poll.Prometheus
	s.Config.Poll.Prometheus = &p
	p2 := s.Config.Poll.Prometheus
	p2.Metrics = []config.Metric{{ID: "a", Query: "a", Match: &config.Match{Label: "x", To: config.MatchServer}}, {ID: "b", Query: "b", Match: &config.Match{Label: "x", To: config.MatchName}},
		{ID: "c", QueryPerCluster: "c"}}
	s.Config.Index.PNorm.Weights = map[string]config.Decimal{"a": "1", "b": "0", "c": "0"}
	h := trace.Header{Step: time.Minute, Metrics: []string{"c", "b", "a"}}
	clusters := []trace.Cluster{{Name: "m", Server: "https://one", UID: "1", Replica: -1}, {Name: "n", Server: "https://one", UID: "2", Replica: -1}, {Name: "o", Server: "https://two", UID: "3", Replica: -1}}
	r := newRun(t, s, h)
	var got [][]string
	r.watch = func(in input.Inputs, out cycle.Outcome) {
		for _, f := range in.Fetched {
			var keys []string
			for _, sample := range f.Samples {
				keys = append(keys, fmt.Sprint(sample.Key, "=", sample.Value))
			}
			got = append(got, append([]string{f.Metric}, keys...))
		}
		if len(out.Fleet.Units) != 2 || out.Table.Frozen {
			t.Errorf("%d units, problems %v", len(out.Fleet.Units), out.Problems)
		}
	}
	r.Step(trace.Step{At: nine, Roster: 1, Clusters: clusters, Values: [][]float64{{1, 2, math.NaN()}, {4, 5, 6}, {7, 8, 9}}})
	want := [][]string{{"a", "https://one=15", "https://two=9"}, {"b", "m=4", "n=5", "o=6"}, {"c", "m=1", "n=2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := NewRun(s, trace.Header{Step: time.Minute, Metrics: []string{"b", "z"}}, 0)
	if want := "shipped: poll.prometheus.metrics: the configuration asks for a, c, and the trace has b, z: record it with this configuration, or name in it what the trace has"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("it is refused with %v, want %s", err, want)
	}
}

// TestSeriesKeepWhatMatters: however long a run is, no peak is lost, and the last point has all moves.
func TestSeriesKeepWhatMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := series{width: time.Minute}
		most, moves, n := 0.0, 0, rapid.IntRange(1, 5000).Draw(t, "cycles")
		peak := rapid.IntRange(0, n-1).Draw(t, "peak")
		for i := range n {
			over := 1 + float64(i%7)/100
			if i == peak {
				over = 3
			}
			most, moves = max(most, over), moves+i%2
			s.add(nine.Add(time.Duration(i)*time.Minute), Point{Replicas: i, MaxOverIdeal: over, Moves: moves})
		}
		got, last := 0.0, time.Time{}
		for _, p := range s.points {
			if !p.At.After(last) || p.At.Sub(nine)%s.width != 0 {
				t.Fatalf("a point at %s after one at %s, in stretches of %s", p.At, last, s.width)
			}
			got, last = max(got, p.MaxOverIdeal), p.At
		}
		end := s.points[len(s.points)-1]
		if got != most || end.Moves != moves || end.Replicas != n-1 || len(s.points) > mostPoints {
			t.Errorf("the peak is %v, want %v; it ends with %+v, want %d moves and %d replicas; %d points", got, most, end, moves, n-1, len(s.points))
		}
	})
}

// TestAClusterThatComesMovesNothing: it has its shard as it is made, as by the webhook, and the planner takes that over.
func TestAClusterThatComesMovesNothing(t *testing.T) {
	h, all := still([]int{0, 1, 0, 1}, []float64{100, 100, 100, 100}, 20)
	for k := 10; k < 20; k++ {
		for _, name := range []string{"x", "y", "z"} {
			all[k].Roster, all[k].Clusters = 2, append(all[k].Clusters[:len(all[k].Clusters):len(all[k].Clusters)], trace.Cluster{Name: name, Server: "https://" + name, UID: name, Replica: plan.NoReplica})
		}
		all[k].Values = [][]float64{{100, 100, 100, 100, 1, 1, 1}}
	}
	r := newRun(t, known(t, Shipped), h)
	r.watch = func(in input.Inputs, _ cycle.Outcome) {
		for _, s := range in.Discovered.Secrets[min(4, len(in.Discovered.Secrets)):] {
			if row, planned := in.InForce.Clusters[s.Name]; s.Shard.State != discover.ShardValid || planned && row.Replica != s.Shard.N {
				t.Errorf("%s: cluster %s has shard %+v, its row says %+v", in.Now, s.Name, s.Shard, row)
			}
		}
	}
	for _, step := range all {
		r.Step(step)
	}
	if got := r.Report(); got.Moves != 0 || got.Clusters != 7 {
		t.Errorf("%d moves of %d clusters, want none of 7", got.Moves, got.Clusters)
	}
}

func TestASpareReplicaIsDrained(t *testing.T) {
	h, all := still([]int{0, 1, 2, 0, 1, 2}, []float64{100, 99, 101, 100, 99, 101}, 7*60)
	h.Replicas = 3
	s := known(t, Shipped)
	s.Config.Change.Moves.Rate = nil
	capacity := config.Decimal("0.9")
	s.Config.Partition.Capacity = &capacity
	got := steps(t, s, h, all)
	if want := (Replicas{First: 3, Last: 2, Least: 2, Most: 3, Mean: got.Replicas.Mean}); got.Replicas != want || got.Moves != 2 {
		t.Errorf("%+v and %d moves, want %+v and 2: two replicas carry it, and that for longer than downWindow", got.Replicas, got.Moves, want)
	}
}
