// Package member finds the groups' clusters. Who writes a Secret sets its labels, and so what group takes it in. So a
// Secret joins a group only where that can be kept: those that data.pins names first, since whoever pins is trusted,
// then those known for an hour, then the oldest. What cannot join is left out of the group, with a problem, and stays
// where it is.
package member

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// candidate is a cluster that a group's selector takes, with the others of its server.
type candidate struct {
	cluster int    // of the fleet
	server  string // that it leads
	size    int    // clusters of the server
	at      int    // the replica that it cannot leave; plan.NoReplica: none
	pinned  bool   // data.pins says so
	own     bool   // its Secret alone says where it is
	fresh   bool   // it is not known for an hour
}

// outside is why clusters are left out of a group.
type outside int

const (
	isOwn   outside = iota // its own Secret decides where it is
	noRoom                 // no replica is left for it
	tooMany                // a replica may not have that many clusters
	clashes                // it would bind what has to be apart, or on two replicas
)

// leftOut are clusters that are not in a group which selects them, for one reason.
type leftOut struct {
	group    ground.Group
	why      outside
	clusters []int
}

// membership finds the groups' clusters, and who is left out.
type membership struct{ *ground.Ground }

// candidates are the clusters that some group selects, in the order in which they may join.
func (m membership) candidates(groups []ground.Group) []candidate {
	chosen := map[int]bool{}
	for _, g := range groups {
		for _, i := range g.Members {
			chosen[i] = true
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	var all []candidate
	for _, u := range m.Fleet.Groups() {
		lead := slices.IndexFunc(u.Clusters, func(i int) bool { return chosen[i] })
		if lead >= 0 {
			all = append(all, m.candidate(u, u.Clusters[lead]))
		}
	}
	slices.SortFunc(all, func(x, y candidate) int {
		one, other := m.Fleet.Clusters[x.cluster], m.Fleet.Clusters[y.cluster]
		return cmp.Or(discover.FalseFirst(!x.pinned, !y.pinned), discover.FalseFirst(x.fresh, y.fresh),
			one.Created.Compare(other.Created), cmp.Compare(one.Shard.ID, other.Shard.ID))
	})
	return all
}

func (m membership) candidate(u discover.Unit, lead int) candidate {
	c := candidate{cluster: lead, server: u.Server, size: len(u.Clusters)}
	_, c.at = m.Fixed().Unit(u.Clusters)
	for _, i := range u.Clusters {
		pin, said := m.In.Pins[m.Fleet.Clusters[i].Shard.ID]
		c.pinned = c.pinned || said && pin < m.Pinnable()
	}
	leads := m.Fleet.Clusters[lead]
	peoples := !standing.Managed(leads) || leads.Immutable
	c.own = !c.pinned && (c.at != plan.NoReplica || peoples)
	c.fresh = !m.In.Memory.Known.Has(leads.Shard.ID)
	return c
}

// Choose finds the groups of a ground, and tells whom they leave out.
func Choose(g *ground.Ground) []problem.Problem {
	m, found := membership{g}, ground.GroupsOf(g.In.Config.Partition, g.Fleet)
	var left []leftOut
	g.Groups, left = admit(found, m.candidates(found), g.MostReplicas(), g.MostClusters())
	return m.told(left)
}

// binding is what the groups bind already: by server, who leads it, and what is bound to that one.
type binding struct {
	ground.Links
	of       map[string]*bound
	in       map[string][]string // the servers that each group which is kept apart has
	beside   map[string][]string // neighbours that were found, by server and groups, until any join changes some
	replicas int
	most     int // clusters of a replica; 0: any number
}

// bound is servers on one replica.
type bound struct {
	clusters, at int
	apart        map[string]bool // their groups that are kept apart
}

// admit lets candidates join their groups, in order, as far as all rules can be kept on so many replicas: what is kept
// apart has fewer neighbours than there are replicas, so that each finds one. What data.pins says joins always.
func admit(groups []ground.Group, in []candidate, replicas, most int) (kept []ground.Group, left []leftOut) {
	b := binding{Links: ground.Links{}, of: map[string]*bound{}, in: map[string][]string{},
		beside: map[string][]string{}, replicas: replicas, most: most}
	kept = slices.Clone(groups)
	for k, g := range groups {
		kept[k].Members, kept[k].Selected = nil, g.Members
	}
	out, order := make(map[[2]int][]int), inOrder(groups)
	for _, c := range in {
		b.of[c.server] = &bound{clusters: c.size, at: c.at, apart: map[string]bool{}}
		for _, k := range order {
			if _, selects := slices.BinarySearch(groups[k].Members, c.cluster); !selects {
				continue
			}
			why, may := b.may(c, kept[k])
			switch {
			case may || c.pinned:
				b.join(c, kept[k])
				kept[k].Members, kept[k].Server = append(kept[k].Members, c.cluster), cmp.Or(kept[k].Server, c.server)
			case why == isOwn && !c.own: // it is too new to bind anything, and nobody needs to know
			default:
				out[[2]int{k, int(why)}] = append(out[[2]int{k, int(why)}], c.cluster)
			}
		}
	}
	for k := range kept {
		slices.Sort(kept[k].Members)
		for why := isOwn; why <= clashes; why++ {
			if clusters := out[[2]int{k, int(why)}]; len(clusters) > 0 {
				slices.Sort(clusters)
				left = append(left, leftOut{kept[k], why, clusters})
			}
		}
	}
	return kept, left
}

// inOrder are the groups' places, those first that stay together: what is bound to a cluster is known before it is kept
// apart.
func inOrder(groups []ground.Group) (order []int) {
	for _, apart := range []bool{false, true} {
		for k, g := range groups {
			if g.Apart == apart {
				order = append(order, k)
			}
		}
	}
	return order
}

// may reports whether a candidate can join a group, and why not.
func (b *binding) may(c candidate, g ground.Group) (outside, bool) {
	mine := b.Root(c.server)
	switch {
	case c.own || c.fresh && !c.pinned:
		return isOwn, false
	case g.Apart && b.of[mine].apart[g.Name]:
		return clashes, false
	case g.Apart && len(b.in[g.Name]) >= b.replicas:
		return noRoom, false
	case g.Apart:
		return b.seats(mine, b.of[mine], with(b.of[mine].apart, g.Name))
	case g.Server == "" || b.Root(g.Server) == mine:
		return 0, true
	}
	one, other := b.of[mine], b.of[b.Root(g.Server)]
	merged := &bound{clusters: one.clusters + other.clusters, at: max(one.at, other.at)}
	twoPins := one.at != other.at && min(one.at, other.at) != plan.NoReplica
	for name := range one.apart {
		twoPins = twoPins || other.apart[name]
	}
	switch {
	case twoPins:
		return clashes, false
	case b.most > 0 && merged.clusters > b.most:
		return tooMany, false
	}
	return b.seats(mine, merged, with(one.apart, keys(other.apart)...))
}

func with(apart map[string]bool, more ...string) []string { return append(keys(apart), more...) }

func keys(of map[string]bool) (names []string) {
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// seats reports whether each of those that are kept apart finds a replica, once so many groups keep what is bound to a
// server apart, and why not: in the order in which they joined, those first that cannot choose.
func (b *binding) seats(server string, mine *bound, apart []string) (outside, bool) {
	beside := b.neighbours(server, apart)
	if len(beside) >= b.replicas {
		return noRoom, false
	}
	if mine.at == plan.NoReplica {
		return 0, true
	}
	for _, other := range beside {
		switch {
		case b.of[other].at == mine.at:
			return clashes, false
		case len(b.neighbours(other, keys(b.of[other].apart))) >= b.replicas-1:
			return noRoom, false
		}
	}
	return 0, true
}

// neighbours are who leads the others of those groups, sorted. Each candidate asks for those of all its neighbours.
func (b *binding) neighbours(server string, groups []string) (others []string) {
	key := b.Root(server) + "\n" + strings.Join(groups, "\n")
	if known, found := b.beside[key]; found {
		return known
	}
	defer func() { b.beside[key] = others }()
	for _, name := range groups {
		for _, other := range b.in[name] {
			if root := b.Root(other); root != b.Root(server) {
				others = append(others, root)
			}
		}
	}
	slices.Sort(others)
	return slices.Compact(others)
}

// join has a candidate be of a group.
func (b *binding) join(c candidate, g ground.Group) {
	mine := b.of[b.Root(c.server)]
	if g.Apart || len(mine.apart) > 0 {
		clear(b.beside)
	}
	if g.Apart {
		mine.apart[g.Name] = true
		b.in[g.Name] = append(b.in[g.Name], c.server)
		return
	}
	if g.Server == "" || b.Root(g.Server) == b.Root(c.server) {
		return
	}
	other := b.of[b.Root(g.Server)]
	b.Join(c.server, g.Server)
	merged := &bound{clusters: mine.clusters + other.clusters, at: max(mine.at, other.at), apart: other.apart}
	for name := range mine.apart {
		merged.apart[name] = true
	}
	if len(merged.apart) > 0 && merged.at != other.at { // it came to a replica, which its neighbours see
		clear(b.beside)
	}
	b.of[b.Root(c.server)] = merged
}

// told names what groups leave out, one problem for each.
func (m membership) told(left []leftOut) (problems []problem.Problem) {
	said := map[string][]string{}
	for _, l := range left {
		said[l.group.Name] = append(said[l.group.Name],
			fmt.Sprintf("%s (%s): %s", plural.Of(len(l.clusters), "cluster"), ground.NamesOf(m.Fleet, l.clusters),
				m.whyLeft(l)))
	}
	for _, g := range m.Groups {
		if why := said[g.Name]; len(why) > 0 {
			problems = append(problems, problem.Problem{Phase: problem.PhasePartition, Subject: g.Name,
				Kind:    "GroupLeaves",
				Message: fmt.Sprintf("group %q leaves out %s", g.Name, strings.Join(why, "; and "))})
		}
	}
	return problems
}

func (m membership) whyLeft(l leftOut) string {
	switch l.why {
	case isOwn:
		return "a Secret with a pin of its own, opted out or immutable binds no others: to have a pin bind the group, write it into data.pins of the plan"
	case noRoom:
		return fmt.Sprintf("%s at most have no room for more: raise their number, or have the group select fewer",
			plural.Of(m.MostReplicas(), "replica"))
	case tooMany:
		return fmt.Sprintf("a replica has at most %s (partition.maxClustersPerReplica): raise that, or have the group select fewer",
			plural.Of(m.MostClusters(), "cluster"))
	}
	return "to take them in would bring together what pins or other groups keep apart: change their labels"
}
