package member

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/cycle/ground"
	"ballast/planner/plan"
)

// TestOlderMembersAreNotPushedOut: who joins later, or is newer, takes nobody's place.
func TestOlderMembersAreNotPushedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := []ground.Group{{Name: "pay"}, {Name: "hubs", Apart: true}, {Name: "big", Apart: true}}
		var all []candidate
		for i := range rapid.IntRange(1, 20).Draw(t, "clusters") {
			c := candidate{cluster: i, server: fmt.Sprintf("https://%02d", rapid.IntRange(0, 9).Draw(t, "a")*20+i), size: 1, at: plan.NoReplica}
			c.own = rapid.IntRange(0, 3).Draw(t, "own") == 0
			all = append(all, c)
			for k := range groups {
				if rapid.Bool().Draw(t, "selects") {
					groups[k].Members = append(groups[k].Members, i)
				}
			}
		}
		replicas := rapid.IntRange(1, 4).Draw(t, "replicas")
		most := rapid.IntRange(0, 4).Draw(t, "most")
		some := rapid.IntRange(0, len(all)).Draw(t, "the older ones")
		before, _ := admit(groups, all[:some], replicas, most)
		after, left := admit(groups, all, replicas, most)
		for k := range groups {
			older := slices.DeleteFunc(slices.Clone(after[k].Members), func(i int) bool { return i >= some })
			if diff := cmp.Diff(before[k].Members, older); diff != "" && len(before[k].Members)+len(older) > 0 {
				t.Fatalf("group %s (-without the newer ones +with them):\n%s", groups[k].Name, diff)
			}
			seen := slices.Clone(after[k].Members)
			for _, l := range left {
				if l.group.Name == groups[k].Name {
					seen = append(seen, l.clusters...)
				}
			}
			slices.Sort(seen)
			if diff := cmp.Diff(groups[k].Members, seen); diff != "" && len(seen)+len(groups[k].Members) > 0 {
				t.Fatalf("group %s: who is in it or left out (-selected +found):\n%s", groups[k].Name, diff)
			}
			if groups[k].Apart && len(after[k].Members) > replicas {
				t.Fatalf("group %s has %d on %d replicas", groups[k].Name, len(after[k].Members), replicas)
			}
		}
	})
}

// BenchmarkAdmit: who makes Secrets chooses the servers' names; that of the next one comes first each time.
func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			groups := []ground.Group{{Name: "pay"}, {Name: "hubs", Apart: true}}
			var all []candidate
			for i := range n {
				all = append(all, candidate{cluster: i, server: fmt.Sprintf("https://%06d", n-i), size: 1, at: plan.NoReplica})
				groups[i%2].Members = append(groups[i%2].Members, i)
			}
			for b.Loop() {
				admit(groups, all, 1000, 0)
			}
		})
		b.Run(fmt.Sprintf("%d beside a pin", n), func(b *testing.B) {
			groups := []ground.Group{{Name: "pay"}, {Name: "hubs", Apart: true}}
			var all []candidate
			for i := range n {
				c := candidate{cluster: i, server: fmt.Sprintf("https://%06d", n-i), size: 1, at: plan.NoReplica}
				if i == 0 {
					c.at, c.pinned = 3, true
				}
				all = append(all, c)
				if i < 99 {
					groups[1].Members = append(groups[1].Members, i)
				}
				if i == 0 || i >= 99 {
					groups[0].Members = append(groups[0].Members, i)
				}
			}
			for b.Loop() {
				admit(groups, all, 100, 0)
			}
		})
	}
}
