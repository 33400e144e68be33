package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
)

// drawFleet is up to four clusters on up to three servers, one of them with a slash and one left alone, now and then.
func drawFleet(t *rapid.T) discover.Fleet {
	in := discover.Input{InClusterEnabled: rapid.Bool().Draw(t, "in-cluster")}
	for i := range rapid.IntRange(0, 4).Draw(t, "clusters") {
		s := secret(fmt.Sprintf("c%d", i), "https://"+rapid.SampledFrom([]string{"a", "a/", "b", "c"}).Draw(t, "server"))
		s.SkipReconcile = rapid.IntRange(0, 9).Draw(t, "skip") == 0
		in.Secrets = append(in.Secrets, s)
	}
	fleet, _, _ := discover.Discover(in, discover.Known{}, discover.Options{MaxShrink: 1}, noon())
	return fleet
}

func drawApps(t *rapid.T) Applications {
	if rapid.Bool().Draw(t, "unread") {
		return nil
	}
	return Applications{"https://a": rapid.IntRange(0, 2).Draw(t, "apps"), "https://b": 1}
}

// drawReports is up to four pods as they may be: any replica, ready, running, answering, sampled up to a minute ago.
func drawReports(t *rapid.T, now time.Time) []scrape.PodReport {
	reports := make([]scrape.PodReport, rapid.IntRange(0, 4).Draw(t, "pods"))
	for i := range reports {
		r := scrape.PodReport{Controller: running(fmt.Sprintf("ac-%d", i))}
		r.Replica = rapid.SampledFrom([]int{plan.NoReplica, 0, 1, 2, i}).Draw(t, "replica")
		r.Ready = rapid.IntRange(0, 3).Draw(t, "ready") > 0
		r.Running = rapid.IntRange(0, 5).Draw(t, "running") > 0
		if rapid.IntRange(0, 5).Draw(t, "silent") == 0 || !r.Running {
			r.Err = "no answer"
			reports[i] = r
			continue
		}
		r.SampledAt = now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "age")) * time.Second)
		r.Servers = map[string]scrape.ServerReport{}
		for _, server := range []string{"https://a", "https://b", "https://c", "https://kubernetes.default.svc", "https://stranger"} {
			if rapid.Bool().Draw(t, "shown") {
				r.Servers[server] = scrape.ServerReport{Apps: rapid.IntRange(0, 2).Draw(t, "apps"), Cached: rapid.Bool().Draw(t, "cached"),
					CacheAge: float64(rapid.IntRange(-1, 2).Draw(t, "cacheAge")), Connected: rapid.Bool().Draw(t, "connected")}
			}
		}
		reports[i] = r
	}
	return reports
}

// drawPlan is a plan for all clusters but those that it leaves out.
func drawPlan(t *rapid.T, fleet discover.Fleet) func(string) (int, bool) {
	rows := map[string]int{}
	for _, c := range fleet.Clusters {
		if rapid.IntRange(0, 5).Draw(t, "planned") > 0 {
			rows[c.Shard.ID] = rapid.IntRange(0, 3).Draw(t, "row")
		}
	}
	return func(name string) (int, bool) { replica, found := rows[name]; return replica, found }
}

func TestNothingIsOrphanedIdleOrDoubledWithoutProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet, now := drawFleet(t), noon()
		intended := drawPlan(t, fleet)
		orphaned, doubled := map[string]time.Time{}, map[string]time.Time{}
		var memory Memory
		for range rapid.IntRange(1, 12).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "later")) * time.Second)
			reports := drawReports(t, now)
			observation := Join(reports, fleet, drawApps(t))
			before := overJSON(t, memory)
			next, verdict := Judge(memory, observation, intended, now, Grace{})
			if diff := cmp.Diff(before, overJSON(t, memory)); diff != "" {
				t.Fatalf("the memory that was handed in changed:\n%s", diff)
			}
			memory = overJSON(t, next)
			if len(verdict.Owned) != len(fleet.Clusters) {
				t.Fatalf("%d clusters are judged, want %d", len(verdict.Owned), len(fleet.Clusters))
			}
			for _, o := range verdict.Orphans {
				mustBeOrphan(t, o, reports, observation.Clusters[o.Cluster], intended)
				mustBeSince(t, o.Cluster, o.Since, orphaned, now, 2*time.Minute)
				if verdict.Owned[o.Cluster].Idle {
					t.Fatalf("%q is both idle and an orphan", o.Cluster)
				}
			}
			for _, d := range verdict.Doubled {
				if len(d.Pods) < 2 || len(d.Pods) != len(observation.Clusters[d.Cluster].Holders) {
					t.Fatalf("%q is called doubled on %v", d.Cluster, d.Pods)
				}
				mustBeSince(t, d.Cluster, d.Since, doubled, now, 30*time.Second)
			}
			for name, owned := range verdict.Owned {
				c := observation.Clusters[name]
				if owned.Idle && (len(c.Holders) > 0 || c.Apps > 0 && !c.Skip || !observation.Asked && !c.Skip) {
					t.Fatalf("%q is called idle: %+v, asked: %v", name, c, observation.Asked)
				}
				if !slices.IsSorted(owned.Owners) || len(slices.DeleteFunc(slices.Clone(owned.Live), func(r int) bool { return slices.Contains(owned.Owners, r) })) > 0 {
					t.Fatalf("%q has the owners %v, of them live %v", name, owned.Owners, owned.Live)
				}
			}
		}
	})
}

func mustBeOrphan(t *rapid.T, o Orphan, reports []scrape.PodReport, c ClusterObservation, intended func(string) (int, bool)) {
	replica, planned := intended(o.Cluster)
	ready, there := 0, false
	for _, r := range reports {
		if r.Ready {
			ready++
		}
		there = there || r.Replica == replica
		if !r.Answered() && (r.Ready || planned && r.Replica == replica || r.Running && r.Replica == plan.NoReplica) {
			t.Fatalf("%q is called orphaned although pod %q did not answer", o.Cluster, r.Name)
		}
		if r.Answered() && r.Servers[c.Server].Apps > 0 {
			t.Fatalf("%q is called orphaned although pod %q has it", o.Cluster, r.Name)
		}
	}
	if ready == 0 || c.Skip || c.Apps == 0 {
		t.Fatalf("%q is called orphaned: %d ready pods, %+v", o.Cluster, ready, c)
	}
	if planned != (o.Why != NotPlanned) || planned && there != (o.Why == NotTaken) {
		t.Fatalf("%q is orphaned for the reason %s: planned %v, a pod of its replica %v", o.Cluster, o.Why, planned, there)
	}
}

// mustBeSince holds: a fault's beginning never moves back, and its grace has passed.
func mustBeSince(t *rapid.T, name string, since time.Time, last map[string]time.Time, now time.Time, grace time.Duration) {
	if since.Before(last[name]) {
		t.Fatalf("%q is at fault since %s, and was said to be since %s", name, since, last[name])
	}
	if now.Sub(since) < grace {
		t.Fatalf("%q is at fault since %s, which is no %s ago at %s", name, since, grace, now)
	}
	last[name] = since
}

func TestTheOrderOfPodsAndClustersMeansNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet, now := drawFleet(t), noon()
		intended := drawPlan(t, fleet)
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var straight, shuffled Memory
		for range rapid.IntRange(1, 6).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "later")) * time.Second)
			reports, apps := drawReports(t, now), drawApps(t)
			var want, got Verdict
			straight, want = Judge(straight, Join(reports, fleet, apps), intended, now, Grace{})
			other := slices.Clone(reports)
			shuffle.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
			units := slices.Clone(fleet.Units)
			shuffle.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
			shuffled, got = Judge(shuffled, Join(other, discover.Fleet{Clusters: fleet.Clusters, Units: units}, apps), intended, now, Grace{})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("another order gives another verdict:\n%s", diff)
			}
			if diff := cmp.Diff(straight, shuffled); diff != "" {
				t.Fatalf("another order gives another memory:\n%s", diff)
			}
		}
	})
}

// A fleet in which everybody answers and nobody takes a cluster's Applications is always found out.
func TestAnOrphanIsFoundHoweverManyLooksAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet, _, _ := discover.Discover(discover.Input{Secrets: []discover.Secret{secret("prod", serverA)}}, discover.Known{}, discover.Options{}, noon())
		intended := func(string) (int, bool) { return 1, true }
		var memory Memory
		now := noon()
		for {
			observation := Join(at([]scrape.PodReport{without(0), without(1)}, now), fleet, Applications{serverA: 1})
			var verdict Verdict
			memory, verdict = Judge(memory, observation, intended, now, Grace{})
			if found := len(verdict.Orphans) == 1; found != (now.Sub(noon()) >= 2*time.Minute) {
				t.Fatalf("%s after it was lost it is called an orphan: %v", now.Sub(noon()), found)
			} else if found {
				return
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 60_000).Draw(t, "later")) * time.Millisecond)
		}
	})
}
