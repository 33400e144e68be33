package division

import (
	"testing"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/plan"
)

// A candidate of another cycle is taken by what holds now: a was pinned to replica 0 meanwhile, and d came.
func TestACandidateOfAnotherCycleKeepsToWhatHoldsNow(t *testing.T) {
	fleet := discover.Fleet{}
	for i, name := range []string{"a", "b", "c", "d"} {
		server := "https://" + name
		fleet.Clusters = append(fleet.Clusters, discover.Cluster{Shard: plan.Shard{ID: name, Server: server}})
		fleet.Units = append(fleet.Units, discover.Unit{Server: server, Clusters: []int{i}})
	}
	apart := []ground.Group{{Name: "pair", Apart: true, Members: []int{0, 1}}}
	together := []ground.Group{{Name: "trio", Members: []int{1, 2}}}
	scarce := &outcome.InUse{Of: make([]plan.Bytes, 4), Room: 10}
	for name, test := range map[string]struct {
		of     map[string]int
		most   int
		groups []ground.Group
		memory *outcome.InUse
		want   bool
	}{
		"without rules":                 {of: map[string]int{"a": 1, "b": 0, "c": 0}, want: true},
		"on a replica that is no more":  {of: map[string]int{"b": 2, "c": 0}},
		"with as many as there may be":  {of: map[string]int{"b": 0, "c": 1}, most: 2, want: true},
		"with one too many by the pin":  {of: map[string]int{"a": 1, "b": 0, "c": 0}, most: 2},
		"apart":                         {of: map[string]int{"b": 1, "c": 0}, groups: apart, want: true},
		"not apart of what is pinned":   {of: map[string]int{"b": 0, "c": 0}, groups: apart},
		"together":                      {of: map[string]int{"b": 1, "c": 1}, groups: together, want: true},
		"not together":                  {of: map[string]int{"b": 1, "c": 0}, groups: together},
		"with the memory":               {of: map[string]int{"b": 1, "c": 0}, memory: scarce, want: true},
		"with less memory than by now":  {of: map[string]int{"b": 0, "c": 0}, memory: scarce},
		"the pin leaves memory for all": {of: map[string]int{"a": 1, "b": 1, "c": 0}, memory: scarce, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := &ground.Ground{Fleet: fleet, Owners: []int{1, 1, 1, 1}, Groups: test.groups, InUse: test.memory}
			d := Division{groups: g.Units().All(), Bounds: partition.Bounds{MaxClusters: test.most}, Answer: partition.Partition{Replicas: 2}}
			for k, u := range d.groups {
				item := partition.Item{ID: fleet.Clusters[u.Clusters[0]].Shard.ID, Clusters: len(u.Clusters), Replica: partition.Free, Memory: 5}
				if k == 0 {
					item.Replica = 0
				}
				d.Items, d.Answer.Of = append(d.Items, item), append(d.Answer.Of, k%2)
			}
			if got := d.Allows(g, evaluate.Candidate{Replicas: 2, Of: test.of}); got != test.want {
				t.Errorf("it allows %v: %v, want %v", test.of, got, test.want)
			}
		})
	}
}
