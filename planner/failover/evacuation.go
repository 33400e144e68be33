package failover

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"ballast/planner/placement"
	"ballast/planner/plan"
)

// evacuation is the state of one: what replicas carry, and which clusters belong together.
type evacuation struct {
	Request
	running  int
	unwell   []int           // that run; of the cordoned ones those that do not work
	cordoned []int           // that run
	emptied  []bool          // unwell or cordoned
	bins     []placement.Bin // what replicas carry; open are those that are neither, and not shut
	movable  []placement.Bin // of that, what may leave
	names    []string
	groups   []*group
	groupOf  map[string]*group // by cluster
	received []bool            // replicas that clusters move to
	out      Evacuation
}

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

// unit is what leaves of a group, and where to.
type unit struct {
	placement.Unit
	placement.Placed
	group *group
}

func newEvacuation(r Request) *evacuation {
	n := r.View.Plan.Running()
	if r.Servers == nil {
		r.Servers = placement.NewServers(0)
	}
	e := &evacuation{Request: r, running: n, names: slices.Sorted(maps.Keys(r.View.Plan.Clusters)),
		emptied: make([]bool, n), received: make([]bool, n),
		bins: make([]placement.Bin, n), movable: make([]placement.Bin, n)}
	e.cordoned = slices.DeleteFunc(union(r.Cordoned), e.absent)
	e.unwell = slices.DeleteFunc(union(r.Unwell), func(replica int) bool {
		return e.absent(replica) || slices.Contains(e.cordoned, replica) && r.Recovered[replica]
	})
	for replica := range e.bins {
		e.emptied[replica] = slices.Contains(e.cordoned, replica) || slices.Contains(e.unwell, replica)
		e.bins[replica].Open = !e.emptied[replica] && !slices.Contains(r.CannotReceive, replica) && !slices.Contains(r.Killed, replica)
		if replica < len(r.Beside) {
			e.bins[replica].Load = max(r.Beside[replica], 0)
		}
		if replica < len(r.BytesBeside) {
			e.bins[replica].Memory = max(r.BytesBeside[replica], 0)
		}
		if replica < len(r.ApartBesidePlan) {
			e.bins[replica].Apart = r.ApartBesidePlan[replica]
		}
	}
	e.gather()
	return e
}

func (e *evacuation) absent(replica int) bool { return replica < 0 || replica >= e.running }

// union are the replicas of all lists, in order.
func union(lists ...[]int) []int {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...))))
}

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

// load is a cluster's present load, else the one of its row's decision.
func (e *evacuation) load(name string) plan.Load {
	if load, ok := e.Loads[name]; ok {
		return max(load, 0)
	}
	return plan.LoadOf(e.View.Plan.Clusters[name].Load)
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

// ownerless reports whether nobody works for a replica.
func (e *evacuation) ownerless(replica int) bool {
	return slices.Contains(e.unwell, replica) && !e.Recovered[replica]
}

// carried is what each replica carries.
func (e *evacuation) carried() []plan.Load {
	carried := make([]plan.Load, len(e.bins))
	for i, b := range e.bins {
		carried[i] = min(b.Load, math.MaxInt64/4)
	}
	return carried
}

// servers is how many moves a unit's are.
func (e *evacuation) servers(u unit) int {
	return e.Servers.Count(slices.Values(u.Names), func(name string) string { return e.View.Plan.Clusters[name].Server })
}

// asksWhole reports whether a unit waits for the whole budget: replicas may die of it, one after the other.
func (e *evacuation) asksWhole(u unit) bool {
	return u.Starves || slices.ContainsFunc(u.Names, func(name string) bool { return e.Suspects[name] })
}

func (e *evacuation) policy() placement.Policy {
	return placement.Policy{Capacity: e.Capacity, MaxClusters: e.MaxClusters, Memory: e.Memory}
}
