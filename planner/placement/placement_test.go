package placement

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/plan"
)

// unit is one cluster that goes anywhere.
func unit(name string, load plan.Load) Unit {
	return Unit{Names: []string{name}, Load: load, Home: plan.NoReplica}
}

func twins(load plan.Load, home int, names ...string) Unit {
	return Unit{Names: names, Load: load, Home: home}
}

func open(load plan.Load, clusters int) Bin { return Bin{Load: load, Clusters: clusters, Open: true} }

func closed(load plan.Load, clusters int) Bin { return Bin{Load: load, Clusters: clusters} }

// taking is a cluster that takes that much memory, used a replica that has so much in use.
func taking(name string, memory plan.Bytes) Unit { return unit(name, 1).Taking(memory) }

func used(memory plan.Bytes, load plan.Load, clusters int) Bin {
	return Bin{Load: load, Memory: memory, Clusters: clusters, Open: true}
}

func TestPlaceWithinMemory(t *testing.T) {
	for name, test := range map[string]struct {
		units []Unit
		bins  []Bin
		want  []Placed
	}{
		"the fullest that has the memory":    {[]Unit{taking("a", 4)}, []Bin{used(7, 9, 1), used(6, 5, 1), used(0, 1, 1)}, []Placed{{1, true, false, false}}},
		"the lightest that has the memory":   {[]Unit{unit("a", 19).Taking(4)}, []Bin{used(7, 2, 1), used(6, 5, 1)}, []Placed{{1, false, false, false}}},
		"one after the other":                {[]Unit{taking("a", 4), taking("b", 4)}, []Bin{used(3, 9, 1), used(0, 1, 1)}, []Placed{{0, true, false, false}, {1, true, false, false}}},
		"none has it: the one with the most": {[]Unit{taking("a", 4)}, []Bin{used(9, 1, 1), used(8, 9, 1)}, []Placed{{1, false, false, true}}},
		"what takes none goes anywhere":      {[]Unit{taking("a", 0)}, []Bin{used(90, 9, 1)}, []Placed{{0, true, false, false}}},
		"an empty replica takes any":         {[]Unit{taking("a", 99)}, []Bin{used(1, 1, 1), used(0, 0, 0)}, []Placed{{1, true, false, false}}},
		"home, whatever that has": {[]Unit{{Names: []string{"a"}, Load: 1, Memory: 4, Home: 0}}, []Bin{used(9, 1, 1), used(0, 1, 1)},
			[]Placed{{0, false, false, true}}},
	} {
		if diff := cmp.Diff(test.want, Place(test.units, test.bins, Policy{Capacity: 20, Memory: 10})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPlace(t *testing.T) {
	for name, test := range map[string]struct {
		units  []Unit
		bins   []Bin
		policy Policy
		want   []Placed
	}{
		"nothing": {want: []Placed{}},
		"no replica at all": {
			units: []Unit{unit("a", 1)},
			want:  []Placed{{plan.NoReplica, false, false, false}},
		},
		"what fits goes to the fullest that may carry it": {
			units:  []Unit{unit("a", 3)},
			bins:   []Bin{open(6, 1), open(8, 1), open(2, 1)},
			policy: Policy{Capacity: 10},
			want:   []Placed{{0, true, false, false}},
		},
		"of two alike the lower number": {
			units:  []Unit{unit("a", 3)},
			bins:   []Bin{open(1, 1), open(6, 2), open(6, 1)},
			policy: Policy{Capacity: 10},
			want:   []Placed{{1, true, false, false}},
		},
		"the heaviest chooses first, and the answer is in the order of the question": {
			units:  []Unit{unit("a", 2), unit("b", 5)},
			bins:   []Bin{open(5, 1), open(4, 1)},
			policy: Policy{Capacity: 10},
			want:   []Placed{{1, true, false, false}, {0, true, false, false}},
		},
		"of two as heavy the larger, then by name": {
			units:  []Unit{unit("c", 2), unit("a", 2), twins(2, plan.NoReplica, "x", "y")},
			bins:   []Bin{open(3, 1), open(2, 1), open(1, 1)},
			policy: Policy{Capacity: 5},
			want:   []Placed{{2, true, false, false}, {1, true, false, false}, {0, true, false, false}},
		},
		"what fits nowhere goes to the lightest": {
			units:  []Unit{unit("a", 9)},
			bins:   []Bin{open(3, 1), open(2, 1)},
			policy: Policy{Capacity: 10},
			want:   []Placed{{1, false, false, false}},
		},
		"without a capacity all is spread, by load and then by clusters": {
			units: []Unit{unit("a", 0), unit("b", 0), unit("c", 1)},
			bins:  []Bin{open(0, 1), open(0, 0), open(0, 2)},
			want:  []Placed{{0, false, false, false}, {0, false, false, false}, {1, false, false, false}},
		},
		"a unit goes home, whatever that carries": {
			units:  []Unit{unit("z", 1), twins(5, 0, "a", "b")},
			bins:   []Bin{open(9, 1), open(0, 0)},
			policy: Policy{Capacity: 10, MaxClusters: 2},
			want:   []Placed{{1, true, false, false}, {0, false, false, false}},
		},
		"homes are filled before anything is chosen": {
			units:  []Unit{unit("a", 5), twins(1, 0, "z")},
			bins:   []Bin{open(5, 1), open(0, 0)},
			policy: Policy{Capacity: 10},
			want:   []Placed{{1, true, false, false}, {0, true, false, false}},
		},
		"the cap keeps a replica from what it may carry": {
			units:  []Unit{unit("a", 1), unit("b", 1)},
			bins:   []Bin{open(5, 1), open(0, 0)},
			policy: Policy{Capacity: 10, MaxClusters: 2},
			want:   []Placed{{0, true, false, false}, {1, true, false, false}},
		},
		"the cap holds for what fits nowhere, too": {
			units:  []Unit{unit("a", 9)},
			bins:   []Bin{open(2, 2), open(5, 1)},
			policy: Policy{Capacity: 10, MaxClusters: 2},
			want:   []Placed{{1, false, false, false}},
		},
		"the cap counts every Secret of a server": {
			units:  []Unit{twins(1, plan.NoReplica, "a", "b")},
			bins:   []Bin{open(0, 1), open(5, 0)},
			policy: Policy{MaxClusters: 2},
			want:   []Placed{{1, false, false, false}},
		},
		"where the cap leaves no room it is passed on the lightest": {
			units:  []Unit{unit("a", 1)},
			bins:   []Bin{open(2, 2), open(1, 2)},
			policy: Policy{MaxClusters: 2},
			want:   []Placed{{1, false, false, false}},
		},
		"a closed replica receives nothing, though an open one passes the cap": {
			units:  []Unit{unit("a", 1)},
			bins:   []Bin{closed(0, 0), open(9, 2)},
			policy: Policy{Capacity: 5, MaxClusters: 2},
			want:   []Placed{{1, false, false, false}},
		},
		"where all are closed the lightest receives": {
			units:  []Unit{unit("a", 1)},
			bins:   []Bin{closed(2, 1), closed(1, 1)},
			policy: Policy{Capacity: 5},
			want:   []Placed{{1, true, false, false}},
		},
		"loads stop at the largest": {
			units: []Unit{unit("a", math.MaxInt64), unit("b", math.MaxInt64)},
			bins:  []Bin{open(5, 1), open(6, 1)},
			want:  []Placed{{0, false, false, false}, {1, false, false, false}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Place(test.units, test.bins, test.policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroup(t *testing.T) {
	servers := []string{"x", "", "y", "x", "", "y", "x"}
	want := [][]int{{0, 3, 6}, {1}, {2, 5}, {4}}
	if diff := cmp.Diff(want, Group(len(servers), func(i int) string { return servers[i] })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettle(t *testing.T) {
	stands := func(name, server string, at int) Cluster {
		return Cluster{Name: name, Server: server, Load: 1, At: at, Claim: Stands}
	}
	as := func(claim Claim, c Cluster) Cluster { c.Claim = claim; return c }
	two := []Bin{open(0, 0), open(0, 0)}
	for name, test := range map[string]struct {
		clusters []Cluster
		bins     []Bin
		policy   Policy
		want     []int
	}{
		"what stands stays": {clusters: []Cluster{stands("a", "", 1), stands("b", "", 1), stands("c", "", 0)},
			bins: two,
			want: []int{1, 1, 0},
		},
		"what stands stays on a closed replica": {clusters: []Cluster{stands("a", "", 1)},
			bins: []Bin{open(0, 0), closed(0, 0)},
			want: []int{1},
		},
		"what stands beyond goes to the lightest": {clusters: []Cluster{stands("a", "", 0), stands("b", "", 2), stands("c", "", 3)},
			bins: two,
			want: []int{0, 1, 0},
		},
		"what replicas carry beside counts": {clusters: []Cluster{stands("a", "", 2)},
			bins: []Bin{open(5, 0), open(6, 0)},
			want: []int{0},
		},
		"one server beyond goes together": {clusters: []Cluster{stands("a", "s", 2), stands("b", "t", 2), stands("c", "s", 2)},
			bins: two,
			want: []int{0, 1, 0},
		},
		"one server joins the one that stays": {clusters: []Cluster{stands("a", "s", 2), stands("b", "s", 1)},
			bins: two,
			want: []int{1, 1},
		},
		"one server in two places joins the first": {clusters: []Cluster{stands("a", "s", 1), stands("b", "s", 0)},
			bins: two,
			want: []int{1, 1},
		},
		"one server follows the decision": {clusters: []Cluster{stands("a", "s", 1), as(Decided, stands("b", "s", 0))},
			bins: two,
			want: []int{0, 0},
		},
		"a decision beyond counts for nothing": {clusters: []Cluster{stands("a", "s", 1), as(Decided, stands("b", "s", 2))},
			bins: two,
			want: []int{1, 1},
		},
		"one server stays with what nobody may write": {clusters: []Cluster{as(Decided, stands("a", "s", 0)), as(Fixed, stands("b", "s", 1))},
			bins: two,
			want: []int{1, 1},
		},
		"one server follows its pin": {clusters: []Cluster{as(Decided, stands("a", "s", 0)), as(Pinned, stands("b", "s", 1))},
			bins: two,
			want: []int{1, 1},
		},
		"a pin wins over what nobody may write, which stays": {clusters: []Cluster{as(Fixed, stands("a", "s", 0)), as(Pinned, stands("b", "s", 1)), stands("c", "s", 0)},
			bins: two,
			want: []int{0, 1, 1},
		},
		"pins that part a server part it, and the others follow the first": {
			clusters: []Cluster{as(Pinned, stands("a", "s", 1)), as(Pinned, stands("b", "s", 0)), stands("c", "s", 0)},
			bins:     two,
			want:     []int{1, 0, 1},
		},
		"a Secret that is gone follows the one that is there": {clusters: []Cluster{as(Follows, stands("a", "s", 0)), stands("b", "s", 1)},
			bins: two,
			want: []int{1, 1},
		},
		"a Secret that is gone keeps its replica for its return": {clusters: []Cluster{as(Follows, stands("a", "s", 1))},
			bins: two,
			want: []int{1},
		},
		"the cap holds, and counts what stays": {
			clusters: []Cluster{stands("a", "", 0), as(Fixed, stands("b", "", 0)), stands("c", "", 2), stands("d", "", 1)},
			bins:     []Bin{open(0, 0), open(9, 0)},
			policy:   Policy{MaxClusters: 2},
			want:     []int{0, 0, 1, 1},
		},
		"no replica at all": {
			clusters: []Cluster{stands("a", "", 0)},
			want:     []int{plan.NoReplica},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Settle(test.clusters, test.bins, test.policy)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
