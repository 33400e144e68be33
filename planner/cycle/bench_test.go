package cycle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// BenchmarkCycle is a whole cycle without I/O in the steady state: a plan in force that every Secret carries, six metrics
// that are all fresh and differ by some 5 % from those the plan was made of, and the owners seen in metrics; as shipped
// (sticky, costBenefit), and with lpt and mostWanted, with a vote under way. The bars are 50 ms and 64 MB at 10,000
// clusters, a growth exponent of 1.2 from there to 100,000, and that what is shipped takes no longer than lpt.
func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		for _, plans := range []string{"shipped", "lpt"} {
			b.Run(fmt.Sprintf("clusters=%d/%s", n, plans), func(b *testing.B) {
				w := steadyWorld(b, n)
				if plans == "shipped" {
					w.takeShipped(b, nil)
				}
				b.ReportAllocs()
				for b.Loop() {
					w.last = Run(w.in)
				}
				if w.last.Changed || len(w.last.Problems) > 0 || w.last.Candidate == nil {
					b.Fatalf("it is no steady state: changed %v (%s), problems %v", w.last.Changed, w.last.Reason, problems(w.last))
				}
			})
		}
	}
}

// BenchmarkShippedBesideLPT is the bar in one run and in turns, by the quickest of each: at 10,000 clusters a cycle of what is shipped
// takes no longer than one of lpt and mostWanted, and so where there is a capacity, by which it is asked whether a replica could go.
func BenchmarkShippedBesideLPT(b *testing.B) {
	worlds := map[string]*world{}
	for _, plans := range []string{"lpt", "shipped", "capacity"} {
		w := steadyWorld(b, 10_000)
		switch plans {
		case "shipped":
			w.takeShipped(b, nil)
		case "capacity":
			capacity := config.Decimal(fmt.Sprintf("%.6f", 1/(0.9*float64(w.in.InForce.Replicas))))
			w.takeShipped(b, &capacity)
		}
		worlds[plans] = w
	}
	quickest := map[string]time.Duration{}
	for b.Loop() {
		for range 10 {
			for plans, w := range worlds {
				begun := time.Now()
				w.last = Run(w.in)
				took := time.Since(begun)
				if w.last.Changed || w.last.Candidate == nil {
					b.Fatalf("%s is in no steady state: changed %v (%s)", plans, w.last.Changed, w.last.Reason)
				}
				if was, timed := quickest[plans]; !timed || took < was {
					quickest[plans] = took
				}
			}
		}
	}
	for plans, took := range quickest {
		b.ReportMetric(float64(took.Microseconds())/1000, plans+"-ms")
	}
	for _, plans := range []string{"shipped", "capacity"} {
		if quickest[plans].Seconds() > 1.05*quickest["lpt"].Seconds() { // nothing measures a cycle more exactly than that here
			b.Errorf("%s takes %s, and lpt %s", plans, quickest[plans], quickest["lpt"])
		}
	}
}

// BenchmarkRenew is a cycle in which a plan is made anew, since one replica is far above what it may carry and pins leave next to nothing to
// move: the dearest a cycle of what is shipped gets, for as long as that lasts. The loads and their noise have fixed seeds.
func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			w := steadyWorld(b, n)
			w.takeShipped(b, nil)
			w.tie(0)
			w.last = Run(w.in)
			next := w.last.Next.Clone() // it has the pins
			w.in.InForce, w.in.Memory = &next, w.last.Memory
			b.ReportAllocs()
			for b.Loop() {
				w.last = Run(w.in)
			}
			if verdict := w.last.Candidate.Verdict; !strings.HasPrefix(verdict, "stays as it is, though replica 0 carries more than it may") {
				b.Fatalf("no plan is made anew: %s", verdict)
			}
		})
	}
}

// tie has a replica make three times as much, with all its clusters pinned but one, which makes nothing.
func (w *world) tie(replica int) {
	var names []string
	for name, row := range w.in.InForce.Clusters {
		if row.Replica == replica {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	w.in.Pins = plan.Pins{}
	for _, name := range names[1:] {
		w.in.Pins[name] = replica
	}
	for _, f := range w.in.Fetched {
		for k, sample := range f.Samples {
			if at := slices.IndexFunc(names, func(name string) bool { return server(name) == sample.Key }); at == 0 {
				f.Samples[k].Value = 0
			} else if at > 0 {
				f.Samples[k].Value *= 3
			}
		}
	}
}

// takeShipped goes on with the plan in force and the shipped way to keep it.
func (w *world) takeShipped(tb testing.TB, capacity *config.Decimal) {
	tb.Helper()
	most := w.in.Config.Partition.MaxReplicas
	w.in.Config.Partition, w.in.Config.Evaluate = config.Default().Partition, config.Default().Evaluate
	w.in.Config.Partition.MaxReplicas, w.in.Config.Partition.Capacity = most, capacity
	for seed := range uint64(4) {
		w.jitter(4 + seed)
		w.step(tb)
	}
}

// steadyMetrics is how many metrics the fleet of the benchmark has.
const steadyMetrics = 6

// steadyWorld has come to its plan and goes on voting on the noise.
func steadyWorld(tb testing.TB, n int) *world {
	tb.Helper()
	w := newWorld()
	most := max(16, n/100)
	w.in.Config.Partition.MaxReplicas = &most
	w.populate(n)
	w.step(tb)
	w.takeCandidate(tb)
	for seed := range uint64(4) {
		w.jitter(seed)
		w.step(tb)
	}
	return w
}

// populate adds clusters with six metrics, each with a load of its own.
func (w *world) populate(n int) {
	loads := lognormal(uint64(n), n)
	r := rand.New(rand.NewPCG(6, uint64(n)))
	w.in.Config.Poll.Prometheus.Metrics, w.in.Fetched = nil, nil
	w.in.Config.Index.PNorm.Weights = map[string]config.Decimal{}
	for i := range n {
		name := fmt.Sprintf("cluster-%06d", i)
		w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, discover.Secret{UID: "uid-" + name, Name: name, Namespace: "argocd",
			Cluster: name, Server: server(name), HasData: true})
	}
	for m := range steadyMetrics {
		id := fmt.Sprintf("metric%d", m)
		f := poll.Fetched{Metric: id, Samples: make([]poll.Sample, n)}
		for i, s := range w.in.Discovered.Secrets {
			f.Samples[i] = poll.Sample{Key: s.Server, Value: loads[i] * math.Exp(r.NormFloat64()/2), At: w.in.Now}
		}
		w.in.Fetched = append(w.in.Fetched, f)
		w.in.Config.Poll.Prometheus.Metrics = append(w.in.Config.Poll.Prometheus.Metrics,
			config.Metric{ID: id, Query: id, Match: &config.Match{Label: "dest_server", To: config.MatchServer}})
		w.in.Config.Index.PNorm.Weights[id] = "0.166"
	}
}

// step is a cycle a minute later whose plan is taken over; nothing is applied, for nothing is to change.
func (w *world) step(tb testing.TB) {
	tb.Helper()
	w.in.Now = w.in.Now.Add(time.Minute)
	w.last = Run(w.in)
	w.in.Memory = w.last.Memory
	if w.in.InForce != nil && w.last.Changed {
		tb.Fatalf("the plan changed: %s", w.last.Reason)
	}
	next := w.last.Next.Clone()
	w.in.InForce = &next
}

// takeCandidate makes the fleet one that stands as the partition wants it.
func (w *world) takeCandidate(tb testing.TB) {
	tb.Helper()
	p := w.in.InForce
	for _, r := range w.last.Candidate.Replicas {
		for _, l := range r.LoadIndexes {
			row := p.Clusters[l.Shard.ID]
			row.Replica, row.Load, row.Server = r.ID, l.DisplayValue, plan.ServerHash(l.Shard.Server) // also of those that no plan has room for
			p.Clusters[l.Shard.ID] = row
		}
	}
	n := len(w.last.Candidate.Replicas)
	env := strconv.Itoa(n)
	p.Revision, p.Replicas, p.ControllerReplicas = 2, n, n
	w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas, w.in.Workload.EnvReplicas = n, n, n, n, &env
	for i := range w.in.Discovered.Secrets {
		s := &w.in.Discovered.Secrets[i]
		s.Shard = discover.ShardValue{State: discover.ShardValid, N: p.Clusters[s.Name].Replica}
		w.in.Owners.Samples = append(w.in.Owners.Samples, poll.Sample{Key: fmt.Sprintf("%s-%d|%s", w.in.Workload.Name, s.Shard.N, s.Server), Value: 1})
	}
}

// jitter changes every value by some 5 %, and says that all were scraped just now.
func (w *world) jitter(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	for _, f := range w.in.Fetched {
		for i := range f.Samples {
			f.Samples[i].Value *= math.Exp(r.NormFloat64() / 20)
			f.Samples[i].At = w.in.Now
		}
	}
}
