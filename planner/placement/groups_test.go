package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestPlaceKeepsGroupsApart(t *testing.T) {
	of := func(group string, b Bin) Bin { b.Apart = []string{group}; return b }
	hub := func(name string, load plan.Load) Unit { u := unit(name, load); u.Apart = []string{"hubs"}; return u }
	for name, test := range map[string]struct {
		units  []Unit
		bins   []Bin
		policy Policy
		want   []Placed
	}{
		"not beside one of its group, though that is the lightest": {
			units: []Unit{hub("a", 1)}, bins: []Bin{of("hubs", open(1, 1)), open(9, 9)}, want: []Placed{{1, false, false, false}}},
		"not beside one of its group, though it fits there alone": {
			units: []Unit{hub("a", 3)}, bins: []Bin{of("hubs", open(5, 1)), open(9, 1)}, policy: Policy{Capacity: 10}, want: []Placed{{1, false, false, false}}},
		"another group is no reason": {
			units: []Unit{hub("a", 1)}, bins: []Bin{of("others", open(1, 1)), open(9, 9)}, want: []Placed{{0, false, false, false}}},
		"two that go at once part": {
			units: []Unit{hub("a", 1), hub("b", 1)}, bins: []Bin{open(0, 0), open(9, 9)}, want: []Placed{{0, false, false, false}, {1, false, false, false}}},
		"the cap gives way to a group": {
			units: []Unit{hub("a", 1)}, bins: []Bin{of("hubs", open(0, 0)), open(2, 2)}, policy: Policy{MaxClusters: 2}, want: []Placed{{1, false, false, false}}},
		"never to a closed replica for a group's sake": {
			units: []Unit{hub("a", 1)}, bins: []Bin{of("hubs", open(5, 1)), closed(0, 0)}, want: []Placed{{0, false, true, false}}},
		"where each has one it says so, on the lightest with room": {
			units: []Unit{hub("a", 1)}, bins: []Bin{of("hubs", open(5, 1)), of("hubs", open(1, 2))}, policy: Policy{MaxClusters: 2}, want: []Placed{{0, false, true, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Place(test.units, test.bins, test.policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAGroupIsCrowdedOnlyWhereNothingElseIsLeft: whatever is settled, a cluster without a replica shares one with its group
// only if every open replica has one of it.
func TestAGroupIsCrowdedOnlyWhereNothingElseIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bins := drawBins(t)
		clusters := drawClusters(t, len(bins))
		for i := range clusters {
			clusters[i].Server = "" // each alone
			clusters[i].Apart = rapid.SampledFrom([][]string{nil, {"x"}, {"y"}, {"x", "y"}}).Draw(t, "groups")
		}
		of := Settle(clusters, bins, drawPolicy(t))
		on := func(replica int, group string) (n int) {
			for i, c := range clusters {
				if of[i] == replica && slices.Contains(c.Apart, group) {
					n++
				}
			}
			return n
		}
		anyOpen := slices.ContainsFunc(bins, func(b Bin) bool { return b.Open })
		nowhereElse := func(c Cluster) bool { // or it stays where it belongs
			homed := c.At >= 0 && c.At < len(bins)
			return homed || !slices.ContainsFunc(indexes(len(bins)), func(r int) bool {
				taken := slices.ContainsFunc(c.Apart, func(g string) bool { return on(r, g) > 0 })
				return bins[r].Open == anyOpen && !taken
			})
		}
		for r := range bins {
			for _, g := range []string{"x", "y"} {
				forced := on(r, g) < 2
				for i, c := range clusters {
					forced = forced || of[i] == r && slices.Contains(c.Apart, g) && nowhereElse(c)
				}
				if !forced {
					t.Fatalf("replica %d has several of %s, and each could be elsewhere: %v", r, g, of)
				}
			}
		}
	})
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestServersThatAreBoundStayTogetherAndCountEach(t *testing.T) {
	s := NewServers(4)
	for name, server := range map[string]string{"a": "https://a", "twin": "https://a", "b": "https://b/", "c": "https://c"} {
		s.Add(name, server)
	}
	s.Bind("https://b", "https://a")
	s.Bind("https://a", "https://a")
	got := map[string]string{}
	for _, name := range []string{"a", "twin", "b", "c"} {
		got[name] = s.Of(name, "")
	}
	got["a row of b"], got["a row of nobody"] = s.Of("gone", plan.ServerHash("https://b")), s.Of("gone", "zzzzzzz")
	want := map[string]string{"a": "https://a", "twin": "https://a", "b": "https://a", "c": "https://c", "a row of b": "https://a", "a row of nobody": "hash zzzzzzz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := s.Count(slices.Values([]string{"a", "twin", "b", "c"}), func(string) string { return "" }); n != 3 {
		t.Errorf("four Secrets of three servers count as %d moves", n)
	}
}

func TestArrivalsKeepOffCordonsAndTheirGroup(t *testing.T) {
	p := plan.Plan{Replicas: 4, Cordoned: []int{0}, Clusters: map[string]plan.Row{"a": {Replica: 1, Server: plan.ServerHash("https://a")}},
		Groups: map[string]plan.ClusterGroup{"hubs": {Apart: "tier=hub", At: []int{1, 2}}, "payments": {Together: "team=payments", At: []int{2}},
			"drained": {Together: "team=old", At: []int{0}}, "unread": {Apart: "=="}}}
	a := NewArrivals(plan.NewView(p, nil))
	places := func(groups ...string) map[int]bool {
		at := map[int]bool{}
		for i := range 200 {
			at[a.Place(fmt.Sprint("https://new-", i), plan.NoReplica, groups)] = true
		}
		return at
	}
	got := map[string]map[int]bool{"none": places(), "hubs": places("hubs"), "payments": places("payments"), "drained": places("drained"), "both": places("hubs", "payments"),
		"unknown": places("nobody's")}
	want := map[string]map[int]bool{"none": {1: true, 2: true, 3: true}, "hubs": {3: true}, "payments": {2: true}, "drained": {1: true, 2: true, 3: true},
		"both": {2: true}, "unknown": {1: true, 2: true, 3: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at := a.Place("https://a", plan.NoReplica, []string{"hubs"}); at != 1 {
		t.Errorf("a second Secret of a known server went to %d, and the first is on 1", at)
	}
	p.Cordoned, p.Groups["hubs"] = []int{0, 1, 2, 3}, plan.ClusterGroup{Apart: "tier=hub", At: []int{0, 1, 2, 3}}
	if at := NewArrivals(plan.NewView(p, nil)).Place("https://x", plan.NoReplica, []string{"hubs"}); at < 0 || at > 3 {
		t.Errorf("a new cluster has no replica where all are cordoned: %d", at)
	}
}
