package ground

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/config"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/partition/constraint"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// GroupsOf finds the groups' clusters. Who may create a Secret beside another's must not move that one by labels: those
// of what follows another one, or stands alone, count for nothing.
func GroupsOf(p config.Partition, fleet discover.Fleet) []Group {
	var groups []Group
	for _, g := range p.Groups {
		selector, err := metav1.LabelSelectorAsSelector(g.Selector())
		if err != nil || selector.Empty() {
			continue // the configuration was checked
		}
		groups = append(groups, Group{Name: g.Name, Apart: g.Apart != nil, Selector: selector})
	}
	if len(groups) == 0 {
		return nil
	}
	for i, c := range fleet.Clusters {
		if c.Labels == "" || c.Follows || c.Alone {
			continue
		}
		set := labels.Set(c.Labels.Set())
		for k := range groups {
			if groups[k].Selector.Matches(set) {
				groups[k].Members = append(groups[k].Members, i)
			}
		}
	}
	return groups
}

// markApart says at each cluster which groups keep it apart.
func markApart(fleet discover.Fleet, groups []Group) {
	for i := range fleet.Clusters {
		fleet.Clusters[i].Apart = nil
	}
	for _, g := range groups {
		for _, i := range g.Members {
			if g.Apart {
				fleet.Clusters[i].Apart = placement.Joined(fleet.Clusters[i].Apart, []string{g.Name})
			}
		}
	}
}

// Regroup finds the groups' clusters, and has those stay together that are: whatever moves one of them from now on
// moves the others of its replica. What stands elsewhere joins them by the partition, in waves and within the budget.
// What a trip for memory holds stays without the others.
func (g *Ground) Regroup() {
	if len(g.Groups) == 0 && !anyBound(g.Fleet) {
		return
	}
	markApart(g.Fleet, g.Groups)
	stay := g.In.Memory.Changes.Stay()
	joined := g.Units().Links(g.Groups, func(i int) int {
		at := g.Standing(i)
		if stay.Holds(g.Fleet.Clusters[i].Shard.ID, at) {
			return plan.NoReplica
		}
		return at
	})
	for i := range g.Fleet.Clusters {
		g.Fleet.Clusters[i].Bound = joined.Leads(g.Fleet.Clusters[i])
	}
	g.Beside = standing.Servers(g.Fleet)
}

// anyBound reports whether groups have any of the clusters.
func anyBound(fleet discover.Fleet) bool {
	for i := range fleet.Clusters {
		if c := &fleet.Clusters[i]; c.Bound != "" || c.Apart != nil {
			return true
		}
	}
	return false
}

// Links are the servers that groups bind together: those whose clusters by says the same of; below 0: of none.
func (t Units) Links(groups []Group, by func(i int) int) Links {
	l := Links{}
	for _, g := range groups {
		first := map[int]string{}
		for _, i := range g.Members {
			key, server := by(i), t.Fleet.Clusters[i].Shard.Server
			switch other, found := first[key]; {
			case g.Apart || key < 0:
			case found:
				l.Join(other, server)
			default:
				first[key] = server
			}
		}
	}
	return l
}

// Whole binds all clusters of a group, wherever they are.
func Whole(int) int { return 0 }

// Links says which server leads those that are bound together.
type Links map[string]string

// Root shortens the way that it goes, or who chooses the servers' names would have it as long as there are servers.
func (l Links) Root(server string) string {
	root := server
	for l[root] != "" && l[root] != root {
		root = l[root]
	}
	for server != root {
		l[server], server = root, l[server]
	}
	return root
}

// Join keeps the first by name as the one that leads, so that the order of joining makes no difference.
func (l Links) Join(a, b string) {
	a, b = l.Root(a), l.Root(b)
	if b < a {
		a, b = b, a
	}
	l[a], l[b] = a, a
}

// Leads is the server that a cluster's own is bound to; empty: it is bound to none.
func (l Links) Leads(c discover.Cluster) string {
	if len(l) == 0 || c.Alone || l[c.Shard.Server] == "" {
		return ""
	}
	return l.Root(c.Shard.Server)
}

// All are what the partition has on one replica: the clusters of one server, and those of a group that stay together.
func (t Units) All() []discover.Unit { return t.Of(t.Groups) }

// Of are those that some groups make.
func (t Units) Of(groups []Group) []discover.Unit {
	servers := t.Fleet.Groups()
	joined := t.Links(groups, Whole)
	if len(joined) == 0 {
		return servers
	}
	merged := placement.Group(len(servers), func(k int) string {
		return joined.Leads(t.Fleet.Clusters[servers[k].Clusters[0]])
	})
	units := make([]discover.Unit, len(merged))
	for k, of := range merged {
		units[k].Server = servers[of[0]].Server
		for _, i := range of {
			units[k].Clusters = append(units[k].Clusters, servers[i].Clusters...)
		}
		slices.Sort(units[k].Clusters)
	}
	return units
}

// Home is where a unit stands: where the most of its load is, if a group has it scattered.
func (t Units) Home(u discover.Unit, loads []plan.Load) int {
	first := t.Standing(u.Clusters[0])
	elsewhere := func(i int) bool { return t.Standing(i) != first && t.Fleet.Clusters[i].Shard.Server != u.Server }
	if !slices.ContainsFunc(u.Clusters, elsewhere) {
		return first
	}
	on := map[int]placement.Bin{}
	for _, i := range u.Clusters {
		if at := t.Standing(i); at >= 0 {
			on[at] = on[at].With(loads[i], 1)
		}
	}
	if len(on) == 0 {
		return first
	}
	return slices.MinFunc(slices.Collect(maps.Keys(on)), func(x, y int) int { return cmp.Or(on[y].Compare(on[x]), cmp.Compare(x, y)) })
}

// Scattered is how many servers of a unit have another replica than the one that it goes to, though it stands there.
func (t Units) Scattered(u discover.Unit, home, to int) (servers int) {
	if home != to || len(u.Clusters) == 1 {
		return 0
	}
	counted := map[string]bool{}
	for _, i := range u.Clusters {
		c := t.Fleet.Clusters[i]
		elsewhere := t.Standing(i) != to && t.Standing(i) >= 0 && c.Shard.Server != u.Server
		if elsewhere && !counted[c.Shard.Server] {
			counted[c.Shard.Server] = true
			servers++
		}
	}
	return servers
}

// Elsewhere is how many servers of a unit have another replica than that one: each is a move for the budget.
func (t Units) Elsewhere(u discover.Unit, replica int) int {
	servers := map[string]bool{}
	for _, i := range u.Clusters {
		if t.Standing(i) != replica {
			servers[t.Fleet.Clusters[i].Shard.Server] = true
		}
	}
	return len(servers)
}

// Apart are the groups that keep units apart, by their places.
func (t Units) Apart(units []discover.Unit, groups []Group) []constraint.Group {
	var out []constraint.Group
	var of map[int]int // a cluster's unit
	for _, g := range groups {
		if !g.Apart || len(g.Members) < 2 {
			continue
		}
		if of == nil {
			of = make(map[int]int, len(t.Fleet.Clusters))
			for k, u := range units {
				for _, i := range u.Clusters {
					of[i] = k
				}
			}
		}
		apart := constraint.Group{Name: g.Name}
		for _, i := range g.Members {
			apart.Items = append(apart.Items, of[i])
		}
		out = append(out, apart)
	}
	return out
}

// LargestApart is how many replicas the largest group that is kept apart needs.
func (t Units) LargestApart() (replicas int) {
	for _, g := range t.Groups {
		if g.Apart {
			replicas = max(replicas, len(g.Members))
		}
	}
	return replicas
}
