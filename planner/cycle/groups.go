package cycle

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/partition/constraint"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// group is one of partition.groups, with the clusters of the fleet that it has: of each server the one that leads.
type group struct {
	name     string
	apart    bool
	selector labels.Selector
	members  []int // of the fleet's clusters, in order
}

// groupsOf finds the groups' clusters. Who may create a Secret beside another's must not move that one by labels: those of
// what follows another one, or stands alone, count for nothing.
func groupsOf(p config.Partition, fleet discover.Fleet) []group {
	var groups []group
	for _, g := range p.Groups {
		selector, err := metav1.LabelSelectorAsSelector(g.Selector())
		if err != nil || selector.Empty() {
			continue // the configuration was checked
		}
		groups = append(groups, group{name: g.Name, apart: g.Apart != nil, selector: selector})
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
			if groups[k].selector.Matches(set) {
				groups[k].members = append(groups[k].members, i)
			}
		}
	}
	return groups
}

// markApart says at each cluster which groups keep it apart.
func markApart(fleet discover.Fleet, groups []group) {
	for i := range fleet.Clusters {
		fleet.Clusters[i].Apart = nil
	}
	for _, g := range groups {
		for _, i := range g.members {
			if g.apart {
				fleet.Clusters[i].Apart = placement.Joined(fleet.Clusters[i].Apart, []string{g.name})
			}
		}
	}
}

// regroup finds the groups' clusters, and has those stay together that are: whatever moves one of them from now on moves
// the others of its replica. What stands elsewhere joins them by the partition, in waves and within the budget.
func (a *adoption) regroup() {
	a.groups = groupsOf(a.in.Config.Partition, a.fleet)
	markApart(a.fleet, a.groups)
	joined := a.links(a.groups, func(i int) int { return a.standing(i) })
	for i := range a.fleet.Clusters {
		a.fleet.Clusters[i].Bound = joined.leads(a.fleet.Clusters[i])
	}
	a.beside = standing.Servers(a.fleet)
}

// links are the servers that groups bind together: those whose clusters by says the same of; below 0: of none.
func (a *adoption) links(groups []group, by func(i int) int) links {
	l := links{}
	for _, g := range groups {
		first := map[int]string{}
		for _, i := range g.members {
			key, server := by(i), a.fleet.Clusters[i].Shard.Server
			switch other, found := first[key]; {
			case g.apart || key < 0:
			case found:
				l.join(other, server)
			default:
				first[key] = server
			}
		}
	}
	return l
}

// whole binds all clusters of a group, wherever they are.
func whole(int) int { return 0 }

// links says which server leads those that are bound together.
type links map[string]string

func (l links) root(server string) string {
	for l[server] != "" && l[server] != server {
		server = l[server]
	}
	return server
}

// join keeps the first by name as the one that leads, so that the order of joining makes no difference.
func (l links) join(a, b string) {
	a, b = l.root(a), l.root(b)
	if b < a {
		a, b = b, a
	}
	l[a], l[b] = a, a
}

// leads is the server that a cluster's own is bound to; empty: it is bound to none.
func (l links) leads(c discover.Cluster) string {
	if len(l) == 0 || c.Alone || l[c.Shard.Server] == "" {
		return ""
	}
	return l.root(c.Shard.Server)
}

// units are what the partition has on one replica: the clusters of one server, and those of a group that stay together.
func (a *adoption) units() []discover.Unit { return a.unitsOf(a.groups) }

func (a *adoption) unitsOf(groups []group) []discover.Unit {
	servers := a.fleet.Groups()
	joined := a.links(groups, whole)
	if len(joined) == 0 {
		return servers
	}
	merged := placement.Group(len(servers), func(k int) string {
		return joined.leads(a.fleet.Clusters[servers[k].Clusters[0]])
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

// home is where a unit stands: where the most of its load is, if a group has it scattered.
func (a *adoption) home(u discover.Unit, loads []plan.Load) int {
	first := a.standing(u.Clusters[0])
	elsewhere := func(i int) bool { return a.standing(i) != first && a.fleet.Clusters[i].Shard.Server != u.Server }
	if !slices.ContainsFunc(u.Clusters, elsewhere) {
		return first
	}
	on := map[int]placement.Bin{}
	for _, i := range u.Clusters {
		if at := a.standing(i); at >= 0 {
			on[at] = on[at].With(loads[i], 1)
		}
	}
	if len(on) == 0 {
		return first
	}
	return slices.MinFunc(slices.Collect(maps.Keys(on)), func(x, y int) int { return cmp.Or(on[y].Compare(on[x]), cmp.Compare(x, y)) })
}

// scattered is how many servers of a unit have another replica than the one that it goes to, though it stands there.
func (a *adoption) scattered(u discover.Unit, home, to int) (servers int) {
	if home != to {
		return 0
	}
	counted := map[string]bool{}
	for _, i := range u.Clusters {
		c := a.fleet.Clusters[i]
		elsewhere := a.standing(i) != to && a.standing(i) >= 0 && c.Shard.Server != u.Server
		if elsewhere && !counted[c.Shard.Server] {
			counted[c.Shard.Server] = true
			servers++
		}
	}
	return servers
}

// serversElsewhere is how many servers of a unit have another replica than that one: each is a move for the budget.
func (a *adoption) serversElsewhere(u discover.Unit, replica int) int {
	servers := map[string]bool{}
	for _, i := range u.Clusters {
		if a.standing(i) != replica {
			servers[a.fleet.Clusters[i].Shard.Server] = true
		}
	}
	return len(servers)
}

// apartOf are the groups that keep units apart, by their places.
func (a *adoption) apartOf(units []discover.Unit, groups []group) []constraint.Group {
	var out []constraint.Group
	var of map[int]int // a cluster's unit
	for _, g := range groups {
		if !g.apart || len(g.members) < 2 {
			continue
		}
		if of == nil {
			of = make(map[int]int, len(a.fleet.Clusters))
			for k, u := range units {
				for _, i := range u.Clusters {
					of[i] = k
				}
			}
		}
		apart := constraint.Group{Name: g.name}
		for _, i := range g.members {
			apart.Items = append(apart.Items, of[i])
		}
		out = append(out, apart)
	}
	return out
}

// largestApart is how many replicas the largest group that is kept apart needs.
func (a *adoption) largestApart() (replicas int) {
	for _, g := range a.groups {
		if g.apart {
			replicas = max(replicas, len(g.members))
		}
	}
	return replicas
}

// mostListed is how many replicas one list of the plan has.
const mostListed = 1000

// cordonedNow are the replicas that people want empty, as far as there may be such.
func cordonedNow(in input.Inputs, most int) []int {
	cordons, _ := plan.ParseCordons(in.Cordon)
	cordoned := slices.DeleteFunc(plan.Cordoned(cordons, in.Now), func(replica int) bool { return replica >= most })
	return cordoned[:min(len(cordoned), mostListed)]
}

// sayArrivals writes into the plan what decides where a new cluster goes. While a discovery is refused the groups stay as
// they are: what is not seen may be there all the same.
func (a *adoption) sayArrivals() {
	a.next.Cordoned = cordonedNow(a.in, max(a.next.MaxReplicas, a.next.Replicas))
	if a.partial {
		return
	}
	a.next.Groups = nil
	for _, g := range a.groups {
		if a.next.Groups == nil {
			a.next.Groups = make(map[string]plan.ClusterGroup, len(a.groups))
		}
		said := plan.ClusterGroup{Together: g.selector.String()}
		if g.apart {
			said = plan.ClusterGroup{Apart: g.selector.String()}
		}
		for _, i := range g.members {
			c := a.fleet.Clusters[i]
			_, row := a.next.Clusters[c.Shard.ID]
			placed := row || !standing.Managed(c) // else the question is where it goes
			if at := a.standing(i); at >= 0 && placed {
				said.At = append(said.At, at)
			}
		}
		slices.Sort(said.At)
		said.At = slices.Compact(said.At)
		said.At = said.At[:min(len(said.At), mostListed)]
		a.next.Groups[g.name] = said
	}
}
