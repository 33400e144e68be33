package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func drawBins(t *rapid.T) []Bin {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Bin {
		return Bin{Load: plan.Load(rapid.IntRange(0, 20).Draw(t, "load")), Clusters: rapid.IntRange(0, 5).Draw(t, "clusters"), Open: rapid.IntRange(0, 3).Draw(t, "open") > 0}
	}), 1, 6).Draw(t, "bins")
}

func drawPolicy(t *rapid.T) Policy {
	return Policy{Capacity: plan.Load(rapid.IntRange(0, 30).Draw(t, "capacity")), MaxClusters: rapid.IntRange(0, 8).Draw(t, "cap")}
}

func drawClusters(t *rapid.T, replicas int) []Cluster {
	clusters := make([]Cluster, rapid.IntRange(0, 20).Draw(t, "clusters"))
	for i := range clusters {
		clusters[i] = Cluster{Name: fmt.Sprintf("c%02d", i), Server: rapid.SampledFrom([]string{"", "", "s", "t", "u"}).Draw(t, "server"),
			Load: plan.Load(rapid.IntRange(0, 9).Draw(t, "load")), At: rapid.IntRange(-1, replicas+2).Draw(t, "at"),
			Claim: rapid.SampledFrom([]Claim{Follows, Stands, Stands, Stands, Decided, Fixed, Pinned}).Draw(t, "claim")}
	}
	return clusters
}

// TestWhatIsSettledKeepsToTheRules: what is pinned or fixed stays, the others of a server are together, and what has no
// replica goes to one that is open and has room under the cap, where there is one.
func TestWhatIsSettledKeepsToTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bins, policy := drawBins(t), drawPolicy(t)
		clusters := drawClusters(t, len(bins))
		of := Settle(clusters, bins, policy)
		inRange := func(replica int) bool { return replica >= 0 && replica < len(bins) }
		after := slices.Clone(bins)
		for i, c := range clusters {
			if !inRange(of[i]) {
				t.Fatalf("%s goes to replica %d of %d", c.Name, of[i], len(bins))
			}
			after[of[i]] = after[of[i]].With(c.Load, 1)
			if c.Claim >= Fixed && inRange(c.At) && of[i] != c.At {
				t.Fatalf("%s stays on %d, and goes to %d", c.Name, c.At, of[i])
			}
		}
		largest := map[int]int{} // of the units that a replica received
		for _, group := range Group(len(clusters), func(i int) string { return clusters[i].Server }) {
			together, homed := map[int]bool{}, false
			for _, i := range group {
				homed = homed || inRange(clusters[i].At)
				if clusters[i].Claim < Fixed || !inRange(clusters[i].At) {
					together[of[i]] = true
				}
			}
			if len(together) > 1 {
				t.Fatalf("the clusters %v of one server are on %v", group, of)
			}
			if to := of[group[0]]; !homed {
				largest[to] = max(largest[to], len(group))
			}
		}
		anyOpen := slices.ContainsFunc(bins, func(b Bin) bool { return b.Open })
		for to, clusters := range largest {
			if anyOpen && !bins[to].Open {
				t.Fatalf("replica %d is closed and received a unit", to)
			}
			for replica, b := range after { // what has room at last had room all the time
				if !policy.room(after[to]) && b.Open == bins[to].Open && policy.room(b.With(0, clusters)) {
					t.Fatalf("replica %d has %d clusters, and replica %d has room for %d more under the cap of %d", to, after[to].Clusters, replica, clusters, policy.MaxClusters)
				}
			}
		}
	})
}

// TestTheSameQuestionHasTheSameAnswer: the order of the units makes no difference.
func TestTheSameQuestionHasTheSameAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bins, policy := drawBins(t), drawPolicy(t)
		var units []Unit
		for i := range rapid.IntRange(0, 12).Draw(t, "units") {
			u := unit(fmt.Sprintf("c%02d", i), plan.Load(rapid.IntRange(0, 5).Draw(t, "load")))
			if rapid.IntRange(0, 4).Draw(t, "homed") == 0 {
				u.Home = rapid.IntRange(0, len(bins)-1).Draw(t, "home")
			}
			units = append(units, u)
		}
		by := func(units []Unit) map[string]Placed {
			placed := map[string]Placed{}
			for i, p := range Place(units, bins, policy) {
				placed[units[i].Names[0]] = p
			}
			return placed
		}
		if diff := cmp.Diff(by(units), by(rapid.Permutation(units).Draw(t, "again"))); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}

// TestNoMemoryIsShortWhereSomeIsFree: whatever is placed, a replica lacks memory only if no open one had it.
func TestNoMemoryIsShortWhereSomeIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bins, policy := drawBins(t), drawPolicy(t)
		for i := range bins {
			if bins[i].Clusters > 0 {
				bins[i].Memory = plan.Bytes(rapid.IntRange(0, 12).Draw(t, "in use"))
			}
		}
		u := unit("a", plan.Load(rapid.IntRange(0, 9).Draw(t, "load"))).Taking(plan.Bytes(rapid.IntRange(0, 12).Draw(t, "takes")))
		before := Place([]Unit{u}, bins, policy)[0]
		policy.Memory = 10
		got := Place([]Unit{u}, bins, policy)[0]
		anyOpen := slices.ContainsFunc(bins, func(b Bin) bool { return b.Open })
		has := slices.ContainsFunc(bins, func(b Bin) bool { return b.Open == anyOpen && policy.Holds(b, u) })
		if got.Starves == has {
			t.Fatalf("%+v, and that one has the memory is %v", got, has)
		}
		if policy.Holds(bins[before.To], u) && got != before {
			t.Fatalf("%+v, and %+v without a bound that changes nothing", got, before)
		}
	})
}
