package failover

import (
	"cmp"
	"math"
	"slices"

	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

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

// emptying is the moves off some replicas.
type emptying struct {
	*evacuation
	replicas []int
	left     room                   // of the budget
	limits   func() func(unit) bool // whether a unit waits for the budget, asked of one after the other
}

// empty moves what the budget allows off those replicas, and answers how many clusters, and what waits.
func (e emptying) empty() (moved int, later []unit) {
	units := e.uncrowded(e.units())
	slices.SortFunc(units, sooner)
	now, later := e.choose(units, false)
	if len(later) > 0 {
		if more, fewer := e.choose(units, true); len(fewer) < len(later) {
			now, later = more, fewer
		}
	}
	if anew := slices.Clone(now); len(later) > 0 { // what waits takes no room
		e.place(anew)
		if needs := e.needs(anew); needs.all <= e.left.all && needs.whole <= e.left.whole {
			now = anew
		}
	}
	for _, u := range now {
		e.send(u)
		moved += len(u.Names)
	}
	return moved, later
}

// choose answers which units move now and which wait; elsewhere: what is limited goes to another replica that takes it
// on freely, if there is one.
func (e emptying) choose(units []unit, elsewhere bool) (now, later []unit) {
	left, limited, loads, bins := e.left, e.limits(), e.carried(), slices.Clone(e.bins) // with what moves now
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
func (e emptying) elsewhere(u *unit, loads []plan.Load, bins []placement.Bin, limited func(unit) bool) bool {
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

// atOnce is the share of those that stay that is taken out in one look, one in so many and at least one: to look anew
// after each of thousands would take minutes. What would have room once others stay goes with the next cycle.
const atOnce = 8

// uncrowded leaves what a replica has that works where it is, if every other one has a cluster of its group, or not the
// memory.
func (e emptying) uncrowded(units []unit) []unit {
	for {
		var stay []int
		for i, u := range units {
			if (u.Crowds || u.Starves) && !e.ownerless(e.at(u.Names[0])) {
				stay = append(stay, i)
			}
		}
		if len(stay) == 0 {
			return units
		}
		stay = stay[:max(len(stay)/atOnce, 1)]
		for _, i := range stay {
			e.tellStays(units[i])
			units[i].Names = nil
		}
		units = slices.DeleteFunc(units, func(u unit) bool { return u.Names == nil })
		e.place(units) // anew: what stays takes no room
	}
}

// needs is how many moves of those the budget has to have room for.
func (e emptying) needs(units []unit) (n room) {
	limited := e.limits()
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

// sooner orders by what the budget is for first; what carries nothing comes last, so that nobody's empty clusters take
// it up.
func sooner(a, b unit) int {
	first := cmp.Or(discover.FalseFirst(a.Load == 0, b.Load == 0), discover.FalseFirst(!a.Fits, !b.Fits))
	if first == 0 && a.Fits {
		return a.Heavier(b.Unit)
	}
	return cmp.Or(first, cmp.Compare(a.Load, b.Load), cmp.Compare(a.Names[0], b.Names[0]))
}

// units is what leaves those replicas and was not sent yet, and where each goes if all of them move.
func (e emptying) units() []unit {
	var units []unit
	for _, g := range e.groups {
		u := placement.Unit{Home: g.home}
		for _, name := range g.names {
			_, sent := e.out.Moves[name]
			if slices.Contains(e.replicas, e.at(name)) && e.leaves(name) && !sent {
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
func (e emptying) place(units []unit) {
	moves := make([]placement.Unit, len(units))
	for i, u := range units {
		moves[i] = u.Unit
	}
	for i, placed := range placement.Place(moves, e.bins, e.policy()) {
		units[i].Placed = placed
	}
}

// send moves a unit. What of its group stands elsewhere follows it from now on.
func (e emptying) send(u unit) {
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
