package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestArrivalsKeepOffWhoIsFull(t *testing.T) {
	groups := map[string]plan.ClusterGroup{"hubs": {Apart: "tier=hub", At: []int{1, 2}}, "pay": {Together: "team=pay", At: []int{0}}}
	for name, test := range map[string]struct {
		full, cordoned []int
		groups         []string
		want           []int // where 200 servers go
		all            bool
	}{
		"none is full":                               {want: []int{0, 1, 2, 3}},
		"two are":                                    {full: []int{0, 3}, want: []int{1, 2}},
		"before groups that stay together":           {full: []int{0}, groups: []string{"pay"}, want: []int{1, 2, 3}},
		"before groups that are apart":               {full: []int{0, 3}, groups: []string{"hubs"}, want: []int{1, 2}},
		"not before a cordon":                        {full: []int{0, 1, 2}, cordoned: []int{3}, want: []int{0, 1, 2}, all: true},
		"all are: as if none were":                   {full: []int{0, 1, 2, 3}, want: []int{0, 1, 2, 3}, all: true},
		"all are, and the group is together":         {full: []int{0, 1, 2, 3}, groups: []string{"pay"}, want: []int{0}, all: true},
		"all are, and the group is apart":            {full: []int{0, 1, 2, 3}, groups: []string{"hubs"}, want: []int{0, 3}, all: true},
		"all are cordoned, which is no lack of room": {cordoned: []int{0, 1, 2, 3}, want: []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Plan{Replicas: 4, Full: test.full, Cordoned: test.cordoned, Groups: groups,
				Clusters: map[string]plan.Row{"a": {Replica: 0, Server: plan.ServerHash("https://a")}}}
			a := NewArrivals(plan.NewView(p, nil))
			var got []int
			for i := range 200 {
				got = append(got, a.Place(fmt.Sprint("https://new-", i), plan.NoReplica, test.groups))
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, slices.Compact(got)); diff != "" || a.AllFull() != test.all {
				t.Errorf("all are full: %v; they go (-want +got):\n%s", a.AllFull(), diff)
			}
			if at := a.Place("https://a", plan.NoReplica, nil); at != 0 {
				t.Errorf("a second Secret of a known server went to %d, and the first is on 0", at)
			}
			if at := a.Place("https://b", 3, nil); at != 3 {
				t.Errorf("one that has shard 3 went to %d", at)
			}
		})
	}
}

// TestABurstFindsTheRoomThatThereIs: of a replica with one place left and one with many, hardly any of a burst find the one.
func TestABurstFindsTheRoomThatThereIs(t *testing.T) {
	p := plan.Plan{Replicas: 2, MaxClusters: 60, Clusters: map[string]plan.Row{}}
	for i := range 69 {
		p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: i / 59, Load: "1"} // 59 on one, and 10 on the other
	}
	p.Clusters["heavy"] = plan.Row{Replica: 1, Load: "48"} // so that both carry as much
	count := [2]int{}
	a := NewArrivals(plan.NewView(p, nil))
	for i := range 40 {
		count[a.Place(fmt.Sprint("https://new-", i), plan.NoReplica, nil)]++
	}
	p.MaxClusters = 0
	level := [2]int{}
	a = NewArrivals(plan.NewView(p, nil))
	for i := range 40 {
		level[a.Place(fmt.Sprint("https://new-", i), plan.NoReplica, nil)]++
	}
	if count[0] > 3 || level[0] < 10 {
		t.Errorf("%v of 40 come where one has one place, and %v without a bound", count, level)
	}
}

// TestSeveralThatAreCountedKeepTheBound: whatever the rows, clusters that are placed one after the other go beyond the bound only
// where no replica that may have them has room.
func TestSeveralThatAreCountedKeepTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, most := rapid.IntRange(1, 5).Draw(t, "replicas"), rapid.IntRange(1, 6).Draw(t, "most")
		p := plan.Plan{Replicas: n, MaxClusters: most, Clusters: map[string]plan.Row{}}
		has := make([]int, n)
		for i := range rapid.IntRange(0, 20).Draw(t, "clusters") {
			at := rapid.IntRange(0, n-1).Draw(t, "at")
			has[at]++
			p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: at, Load: rapid.SampledFrom([]string{"", "1", "7"}).Draw(t, "load")}
		}
		p.Cordoned = rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "cordoned")
		for replica, clusters := range has {
			if clusters >= most {
				p.Full = append(p.Full, replica)
			}
		}
		a := NewArrivals(plan.NewView(p, nil))
		for i := range rapid.IntRange(0, 20).Draw(t, "new") {
			roomy := func(r int) bool { return has[r] < most && !slices.Contains(p.Cordoned, r) }
			some := slices.ContainsFunc(indexes(n), roomy)
			server := fmt.Sprint("https://new-", i)
			to := a.Place(server, plan.NoReplica, nil)
			if some && !roomy(to) {
				t.Fatalf("the %dth goes to replica %d, of %v clusters, %d at most, %v cordoned", i+1, to, has, most, p.Cordoned)
			}
			has[to]++
			a.Add(server, to)
		}
	})
}

// TestTheSecretsOfOneNewServerMeet: whatever the plan, those that come before the next one have one replica: asked each for itself, as
// a webhook is, and one after the other, as the planner does.
func TestTheSecretsOfOneNewServerMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "replicas")
		replicas := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID)
		p := plan.Plan{Replicas: n, MaxClusters: rapid.IntRange(0, 4).Draw(t, "most"), Clusters: map[string]plan.Row{},
			Cordoned: replicas.Draw(t, "cordoned"), Full: replicas.Draw(t, "full"),
			Groups: map[string]plan.ClusterGroup{"hubs": {Apart: "tier=hub", At: replicas.Draw(t, "hubs")},
				"pay": {Together: "team=pay", At: replicas.Draw(t, "pay")}}}
		for i := range rapid.IntRange(0, 12).Draw(t, "clusters") {
			load := rapid.SampledFrom([]string{"", "1", "7"}).Draw(t, "load")
			p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: rapid.IntRange(0, n-1).Draw(t, "at"), Load: load,
				Server: plan.ServerHash(fmt.Sprint("https://c", i))}
		}
		webhook, planner := NewArrivals(plan.NewView(p.Clone(), nil)), NewArrivals(plan.NewView(p, nil))
		first := map[string]int{} // what the planner answered, by server
		for range rapid.IntRange(1, 20).Draw(t, "new") {
			server := fmt.Sprint("https://new-", rapid.IntRange(0, 3).Draw(t, "server"))
			groups := rapid.SampledFrom([][]string{nil, {"hubs"}, {"pay"}, {"hubs", "pay"}}).Draw(t, "groups")
			spelled := server + rapid.SampledFrom([]string{"", "/"}).Draw(t, "spelled")
			if a, b := webhook.Place(server, plan.NoReplica, groups), webhook.Place(spelled, plan.NoReplica, groups); a != b {
				t.Fatalf("the webhook has one Secret of %s on replica %d, and one of %s on %d", server, a, spelled, b)
			}
			to := planner.Place(spelled, plan.NoReplica, groups)
			planner.Add(spelled, to)
			if before, known := first[server]; known && before != to {
				t.Fatalf("the planner has one Secret of %s on replica %d, and the next on %d", server, before, to)
			}
			first[server] = to
		}
	})
}

// TestWhatNothingIsKnownOfCarriesTheMean: rows without a load weigh as those that have one, and one of 0 weighs nothing.
func TestWhatNothingIsKnownOfCarriesTheMean(t *testing.T) {
	came := func(load string) (on [2]int) {
		p := plan.Plan{Replicas: 2, Clusters: map[string]plan.Row{}}
		for i := range 20 {
			p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: i % 2, Load: "3"}
		}
		for i := range 15 {
			p.Clusters[fmt.Sprint("new", i)] = plan.Row{Replica: 1, Load: load}
		}
		a := NewArrivals(plan.NewView(p, nil))
		for i := range 200 {
			on[a.Place(fmt.Sprint("https://new-", i), plan.NoReplica, nil)]++
		}
		return on
	}
	for load, want := range map[string][2]int{"": {146, 54}, "3": {146, 54}, "0": {98, 102}} {
		if diff := cmp.Diff(want, came(load)); diff != "" {
			t.Errorf("beside fifteen with load %q on replica 1 (-want +got):\n%s", load, diff)
		}
	}
}

// TestSeveralThatAreCountedFillNobody: whatever the rows, clusters that are placed one after the other, each of what nothing is known,
// bring no replica above the bound while another one has room; the first is answered as a webhook does.
func TestSeveralThatAreCountedFillNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, most := rapid.IntRange(1, 5).Draw(t, "replicas"), plan.Load(rapid.IntRange(1, 40).Draw(t, "most"))*plan.LoadUnit
		p := plan.Plan{Replicas: n, Clusters: map[string]plan.Row{}}
		carries, sum, known := make([]plan.Load, n), plan.Load(0), plan.Load(0)
		for i := range rapid.IntRange(1, 20).Draw(t, "clusters") {
			at, load := rapid.IntRange(0, n-1).Draw(t, "at"), plan.Load(rapid.IntRange(1, 9).Draw(t, "load"))*plan.LoadUnit
			carries[at], sum, known = carries[at]+load, sum+load, known+1
			p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: at, Load: load.String()}
		}
		each := sum / known
		for replica, load := range carries {
			if load+each > most {
				p.Full = append(p.Full, replica)
			}
		}
		webhook, a := NewArrivals(plan.NewView(p.Clone(), nil)), NewArrivals(plan.NewView(p, nil))
		a.FillTo(most)
		for i := range rapid.IntRange(1, 40).Draw(t, "new") {
			server := fmt.Sprint("https://new-", i)
			to := a.Place(server, plan.NoReplica, nil)
			if first := webhook.Place(server, plan.NoReplica, nil); i == 0 && first != to {
				t.Fatalf("the webhook answers %d, and the planner %d", first, to)
			}
			some := slices.ContainsFunc(carries, func(load plan.Load) bool { return load+each <= most })
			if some && carries[to]+each > most {
				t.Fatalf("the %dth, of %s, goes to replica %d of %v, which may have %s", i+1, each, to, carries, most)
			}
			carries[to] += each
			a.Add(server, to)
		}
	})
}
