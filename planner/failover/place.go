package failover

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// group is the clusters that stay together: those with one server, or of a group, where one of them cannot move with that one.
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
			e.bins[at] = e.bins[at].Take(placement.Unit{Names: []string{name}, Load: stand[k].Load, Memory: e.Bytes[name], Apart: e.Apart[name]})
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
	case e.pinned(name) || e.Fixed[name]:
		c.Claim = placement.Fixed
	}
	return c
}

func (e *evacuation) at(name string) int {
	replica, _, _ := e.View.Effective(name)
	return replica
}

// pinned reports whether a pin keeps the cluster where it is. One that is refused, or waits for replicas, keeps it nowhere. What a row says
// of a pin is of an earlier plan: the pins of all Secrets that are there are known.
func (e *evacuation) pinned(name string) bool {
	pin, pinned := e.View.Pin(name)
	return pinned && pin == e.at(name)
}

// leaves reports whether the cluster can move off a replica that is to be empty.
func (e *evacuation) leaves(name string) bool {
	keeps := e.Gone[name] || e.pinned(name) || e.Fixed[name]
	return !keeps && !e.groupOf[name].stays()
}

// unit is what leaves of a group, and where to.
type unit struct {
	placement.Unit
	placement.Placed
	group *group
}

// room is how many servers may go of those that are limited, and how many of them ask for the whole budget.
type room struct{ all, whole int }

// take reports whether there is room for a unit of so many servers, and takes it: the last one that goes may be larger.
func (r *room) take(servers int, whole bool) bool {
	if r.all <= 0 || whole && r.whole <= 0 {
		return false
	}
	if r.all -= servers; whole {
		r.whole -= servers
	}
	return true
}

// empty moves what the budget allows off those replicas, and answers how many clusters, and what waits.
func (e *evacuation) empty(replicas []int, left room, limits func() func(unit) bool) (moved int, later []unit) {
	units := e.uncrowded(e.units(replicas))
	slices.SortFunc(units, sooner)
	now, later := e.choose(units, left, limits(), false)
	if len(later) > 0 {
		if more, fewer := e.choose(units, left, limits(), true); len(fewer) < len(later) {
			now, later = more, fewer
		}
	}
	if anew := slices.Clone(now); len(later) > 0 { // what waits takes no room
		e.place(anew)
		if asked := e.asks(anew, limits()); asked.all <= left.all && asked.whole <= left.whole {
			now = anew
		}
	}
	for _, u := range now {
		e.send(u)
		moved += len(u.Names)
	}
	return moved, later
}

// choose answers which units move now and which wait; elsewhere: what is limited goes to another replica that takes it on
// freely, if there is one.
func (e *evacuation) choose(units []unit, left room, limited func(unit) bool, elsewhere bool) (now, later []unit) {
	loads, bins := e.carried(), slices.Clone(e.bins) // with what moves now
	for _, u := range units {
		switch {
		case !limited(u), elsewhere && e.elsewhere(&u, loads, bins, limited):
		case left.take(e.servers(u), e.asksWhole(u)):
		default:
			later = append(later, u)
			continue
		}
		now = append(now, u)
		loads[u.To] += min(u.Load, math.MaxInt64/4)
		bins[u.To] = bins[u.To].Take(u.Unit)
	}
	return now, later
}

// elsewhere gives a unit to the lightest of those replicas that takes it on freely, if there is one. One that joins
// others of its server has no choice, and a cap of clusters was kept to where it was placed.
func (e *evacuation) elsewhere(u *unit, loads []plan.Load, bins []placement.Bin, limited func(unit) bool) bool {
	if fixed := u.Home != plan.NoReplica || len(u.Apart) > 0; fixed || e.MaxClusters > 0 {
		return false
	}
	var replicas []int
	for replica, b := range bins {
		if b.Open && replica != u.To && e.policy().Holds(b, u.Unit) {
			replicas = append(replicas, replica)
		}
	}
	slices.SortStableFunc(replicas, func(a, b int) int { return cmp.Compare(loads[a], loads[b]) })
	for _, replica := range replicas {
		other := *u
		if other.To, other.Fits, other.Starves = replica, false, false; !limited(other) {
			*u = other
			return true
		}
	}
	return false
}

// servers is how many moves a unit's are.
func (e *evacuation) servers(u unit) int {
	return e.Servers.Count(slices.Values(u.Names), func(name string) string { return e.View.Plan.Clusters[name].Server })
}

// atOnce is the share of those that stay that is taken out in one look, one in so many and at least one: to look anew after
// each of thousands would take minutes. What would have room once others stay goes with the next cycle.
const atOnce = 8

// uncrowded leaves what a replica has that works where it is, if every other one has a cluster of its group, or not the memory.
func (e *evacuation) uncrowded(units []unit) []unit {
	for {
		var stay []int
		for i, u := range units {
			if (u.Crowds || u.Starves) && !e.bereft(e.at(u.Names[0])) {
				stay = append(stay, i)
			}
		}
		if len(stay) == 0 {
			return units
		}
		stay = stay[:max(len(stay)/atOnce, 1)]
		goes, next := make([]unit, 0, len(units)-len(stay)), 0
		for i, u := range units {
			if next < len(stay) && stay[next] == i {
				e.tellStays(u)
				next++
				continue
			}
			goes = append(goes, u)
		}
		units = goes
		e.place(units) // anew: what stays takes no room
	}
}

func (e *evacuation) tellStays(u unit) {
	at := e.at(u.Names[0])
	if u.Starves {
		e.note(MemoryStays, u.Names[0], at, "cluster %q stays on replica %d, which is %s, for no replica that may take it has the %s of memory that it takes: "+
			"add a replica, or raise the memory", u.Names[0], at, e.state(at), u.Memory)
		return
	}
	e.note(GroupStays, u.Names[0], at, "cluster %q stays on replica %d, which is %s, for every replica that may take it has another one of %s, "+
		"which is kept apart: add a replica, or change the group", u.Names[0], at, e.state(at), quoted(u.Apart))
}

// bereft reports whether nobody works for a replica.
func (e *evacuation) bereft(replica int) bool {
	return slices.Contains(e.unwell, replica) && !e.Works[replica]
}

func quoted(groups []string) string {
	if len(groups) == 1 {
		return fmt.Sprintf("group %q", groups[0])
	}
	return fmt.Sprintf("groups %q", groups)
}

// asks is how many moves of those the budget has to have room for.
func (e *evacuation) asks(units []unit, limited func(unit) bool) (n room) {
	for _, u := range slices.SortedFunc(slices.Values(units), sooner) {
		if !limited(u) {
			continue
		}
		if n.all += e.servers(u); e.asksWhole(u) {
			n.whole += e.servers(u)
		}
	}
	return n
}

// waits names what waits for the budget.
func (e *evacuation) waits(replicas []int, later []unit) {
	waiting, first := 0, ""
	for _, u := range later {
		waiting, first = waiting+len(u.Names), cmp.Or(first, u.Names[0])
	}
	if waiting > 0 {
		e.note(BudgetWaits, first, e.at(first), "%s of %s %s for the move budget, the first is %q",
			plural.Of(waiting, "cluster"), e.these(replicas), verb(waiting, "wait"), first)
	}
}

func (e *evacuation) these(replicas []int) string {
	if len(replicas) == 1 {
		return fmt.Sprintf("replica %d, which is %s,", replicas[0], e.state(replicas[0]))
	}
	return fmt.Sprintf("%s that are %s", plural.Of(len(replicas), "replica"), e.state(replicas[0]))
}

func verb(n int, word string) string {
	if n == 1 {
		return word + "s"
	}
	return word
}

// sooner orders by what the budget is for first; what carries nothing comes last, so that nobody's empty clusters take
// it up.
func sooner(a, b unit) int {
	switch {
	case (a.Load == 0) != (b.Load == 0) && b.Load == 0:
		return -1
	case (a.Load == 0) != (b.Load == 0):
		return 1
	case a.Fits != b.Fits && a.Fits:
		return -1
	case a.Fits != b.Fits:
		return 1
	case a.Fits:
		return a.Heavier(b.Unit)
	}
	return cmp.Or(cmp.Compare(a.Load, b.Load), cmp.Compare(a.Names[0], b.Names[0]))
}

// units is what leaves those replicas and was not sent yet, and where each goes if all of them move.
func (e *evacuation) units(replicas []int) []unit {
	var units []unit
	for _, g := range e.groups {
		u := placement.Unit{Home: g.home}
		for _, name := range g.names {
			_, sent := e.out.Moves[name]
			if slices.Contains(replicas, e.at(name)) && e.leaves(name) && !sent {
				u = u.With(name, e.load(name)).Taking(e.Bytes[name])
				u.Apart = placement.Joined(u.Apart, e.Apart[name])
			}
		}
		if len(u.Names) > 0 {
			units = append(units, unit{Unit: u, group: g})
		}
	}
	e.place(units)
	return units
}

// place answers where each goes if those, and no others, move.
func (e *evacuation) place(units []unit) {
	moves := make([]placement.Unit, len(units))
	for i, u := range units {
		moves[i] = u.Unit
	}
	for i, placed := range placement.Place(moves, e.bins, e.policy()) {
		units[i].Placed = placed
	}
}

func (e *evacuation) policy() placement.Policy {
	return placement.Policy{Capacity: e.Capacity, MaxClusters: e.MaxClusters, Memory: e.Memory}
}

// send moves a unit. What of its group stands elsewhere follows it from now on.
func (e *evacuation) send(u unit) {
	if e.out.Moves == nil {
		e.out.Moves = map[string]int{}
	}
	for _, name := range u.Names {
		e.out.Moves[name] = u.To
	}
	if u.Crowds {
		e.note(GroupCrowded, u.Names[0], u.To, "cluster %q goes to replica %d, which has another one of %s: "+
			"nobody has it where it is, and no other replica may take it", u.Names[0], u.To, quoted(u.Apart))
	}
	if u.Starves {
		e.note(MemoryCrowded, u.Names[0], u.To, "cluster %q goes to replica %d, which has not the %s of memory that it takes: "+
			"nobody has it where it is, and no other replica has more", u.Names[0], u.To, u.Memory)
	}
	e.bins[u.To] = e.bins[u.To].Take(u.Unit)
	e.received[u.To] = true
	u.group.home = u.To
}
