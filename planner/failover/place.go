package failover

import (
	"cmp"
	"slices"

	"ballast/planner/placement"
)

// group is the clusters that stay together: those with one server, or of a group, where one of them cannot move with
// that one.
type group struct {
	names   []string
	home    int    // the open replica that clusters of the group must go to; plan.NoReplica leaves it open
	trapped string // one that cannot move off a replica that is to be empty
}

// stays reports whether clusters of the group cannot leave a replica that is to be empty: one that has to stay keeps
// them.
func (g *group) stays() bool { return g.trapped != "" }

// gather adds up what replicas carry, and finds the groups.
func (e *evacuation) gather() {
	server := func(i int) string { return e.Servers.Of(e.names[i], e.View.Plan.Clusters[e.names[i]].Server) }
	e.groupOf = make(map[string]*group, len(e.names))
	for _, members := range placement.Group(len(e.names), server) {
		g := &group{}
		stand := make([]placement.Cluster, len(members))
		for k, i := range members {
			name := e.names[i]
			g.names, e.groupOf[name] = append(g.names, name), g
			stand[k] = e.stands(name)
			at := stand[k].At
			if e.absent(at) {
				continue
			}
			e.bins[at] = e.bins[at].Take(placement.Unit{Names: []string{name}, Load: stand[k].Load,
				Memory: e.Bytes[name], Apart: e.Apart[name]})
			if traps := stand[k].Claim == placement.Fixed; traps && !e.bins[at].Open {
				g.trapped = cmp.Or(g.trapped, name)
			}
		}
		g.home = placement.Home(stand, func(replica int) bool { return !e.absent(replica) && e.bins[replica].Open })
		e.groups = append(e.groups, g)
	}
	for _, name := range e.names {
		if at := e.at(name); !e.absent(at) && e.leaves(name) {
			e.movable[at] = e.movable[at].With(e.load(name), 1)
		}
	}
}

// stands is a cluster where it is, fixed if it cannot move.
func (e *evacuation) stands(name string) placement.Cluster {
	c := placement.Cluster{Name: name, Load: e.load(name), At: e.at(name), Claim: placement.Stands}
	switch {
	case e.Gone[name]:
		c.Claim = placement.Follows
	case e.pinned(name) || e.Fixed[name] || e.Held[name]:
		c.Claim = placement.Fixed
	}
	return c
}

func (e *evacuation) at(name string) int {
	replica, _, _ := e.View.Effective(name)
	return replica
}

// pinned reports whether a pin keeps the cluster where it is. One that is refused, or waits for replicas, keeps it
// nowhere. What a row says of a pin is of an earlier plan: the pins of all Secrets that are there are known.
func (e *evacuation) pinned(name string) bool {
	pin, pinned := e.View.Pin(name)
	return pinned && pin == e.at(name)
}

// leaves reports whether the cluster can move off a replica that is to be empty.
func (e *evacuation) leaves(name string) bool {
	keeps := e.Gone[name] || e.pinned(name) || e.Fixed[name]
	return !keeps && !e.Held[name] && !e.groupOf[name].stays()
}

// servers is how many moves a unit's are.
func (e *evacuation) servers(u unit) int {
	return e.Servers.Count(slices.Values(u.Names), func(name string) string { return e.View.Plan.Clusters[name].Server })
}

// ownerless reports whether nobody works for a replica.
func (e *evacuation) ownerless(replica int) bool {
	return slices.Contains(e.unwell, replica) && !e.Works[replica]
}

func (e *evacuation) policy() placement.Policy {
	return placement.Policy{Capacity: e.Capacity, MaxClusters: e.MaxClusters, Memory: e.Memory}
}
