package failover

import (
	"cmp"
	"fmt"
	"slices"

	"ballast/planner/plan"
)

// none is no replica.
const none = -1

// group is the clusters with one server. They stay together, where one of them cannot move with that one.
type group struct {
	anchor  int    // the open replica of one that cannot move, or none
	trapped string // one that cannot move off a replica that is to be empty
	open    int    // an open replica that others stand on, or none
}

// stays reports whether clusters of the group cannot leave a replica that is to be empty: one that has to stay keeps them.
func (g *group) stays() bool { return g.trapped != "" }

// home is the open replica that clusters of the group must go to; none leaves it open.
func (g *group) home() int {
	if g.anchor != none {
		return g.anchor
	}
	return g.open
}

// gather adds up what replicas carry, and finds the groups.
func (e *evacuation) gather() {
	e.groups = make(map[string]*group, len(e.names))
	for _, name := range e.names {
		g := e.groups[e.server(name)]
		if g == nil {
			g = &group{anchor: none, open: none}
			e.groups[e.server(name)] = g
		}
		at := e.at(name)
		if e.absent(at) {
			continue
		}
		e.carries[at] = e.carries[at].with(e.load(name), 1)
		switch stuck := e.pinned(name) || e.Fixed[name]; {
		case stuck && e.open[at]:
			g.anchor = lower(g.anchor, at)
		case stuck:
			g.trapped = cmp.Or(g.trapped, name)
		case e.open[at]:
			g.open = lower(g.open, at)
		}
	}
	for _, name := range e.names {
		if at := e.at(name); !e.absent(at) && e.leaves(name) {
			e.movable[at] = e.movable[at].with(e.load(name), 1)
		}
	}
}

func lower(a, b int) int {
	if a == none || b < a {
		return b
	}
	return a
}

// server is what clusters that belong together share; a row without a hash of its server is alone.
func (e *evacuation) server(name string) string {
	if hash := e.View.Plan.Clusters[name].Server; hash != "" {
		return hash
	}
	return "/" + name
}

func (e *evacuation) group(name string) *group { return e.groups[e.server(name)] }

func (e *evacuation) at(name string) int {
	replica, _, _ := e.View.Effective(name)
	return replica
}

func (e *evacuation) pinned(name string) bool {
	_, pinned := e.View.Pin(name)
	return pinned || e.View.Plan.Clusters[name].Pinned
}

// leaves reports whether the cluster can move off a replica that is to be empty.
func (e *evacuation) leaves(name string) bool {
	return !e.pinned(name) && !e.Fixed[name] && !e.group(name).stays()
}

// unit is clusters that move together, and where to.
type unit struct {
	names []string
	load  plan.Load
	group *group
	to    int
	fits  bool
}

// empty moves what the budget allows off those replicas, and answers how many clusters.
func (e *evacuation) empty(replicas []int) int {
	units := e.units(replicas)
	e.place(units)
	slices.SortFunc(units, sooner)
	moved, waiting, first := 0, 0, ""
	for _, u := range units {
		if len(u.names) > e.left {
			waiting, first = waiting+len(u.names), cmp.Or(first, u.names[0])
			continue
		}
		e.send(u)
		moved += len(u.names)
	}
	if waiting > 0 {
		e.note(BudgetWaits, first, e.at(first), "%s of %s %s for the move budget, the first is %q", plural(waiting, "cluster"), e.these(replicas), verb(waiting, "wait"), first)
	}
	return moved
}

func (e *evacuation) these(replicas []int) string {
	if len(replicas) == 1 {
		return fmt.Sprintf("replica %d, which is %s,", replicas[0], e.state(replicas[0]))
	}
	return fmt.Sprintf("%s that are cordoned", plural(len(replicas), "replica"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func verb(n int, word string) string {
	if n == 1 {
		return word + "s"
	}
	return word
}

// heavier orders the heaviest first.
func heavier(a, b *unit) int {
	return cmp.Or(cmp.Compare(b.load, a.load), cmp.Compare(a.names[0], b.names[0]))
}

// sooner orders by what the budget is for first.
func sooner(a, b *unit) int {
	switch {
	case a.fits != b.fits && a.fits:
		return -1
	case a.fits != b.fits:
		return 1
	case a.fits:
		return heavier(a, b)
	}
	return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.names[0], b.names[0]))
}

// units is what leaves those replicas, the heaviest first.
func (e *evacuation) units(replicas []int) []*unit {
	if len(replicas) == 0 {
		return nil
	}
	leaving := make([]bool, e.running)
	for _, r := range replicas {
		leaving[r] = true
	}
	var units []*unit
	of := map[string]*unit{}
	for _, name := range e.names {
		if at := e.at(name); e.absent(at) || !leaving[at] || !e.leaves(name) {
			continue
		}
		u := of[e.server(name)]
		if u == nil {
			u = &unit{group: e.group(name)}
			of[e.server(name)], units = u, append(units, u)
		}
		u.names, u.load = append(u.names, name), add(u.load, e.load(name))
	}
	slices.SortFunc(units, heavier)
	return units
}

// place chooses each unit's replica as if all of them moved: those that can go to one replica alone, then what fits, then the
// rest.
func (e *evacuation) place(units []*unit) {
	carries := slices.Clone(e.carries)
	put := func(u *unit, to int) {
		u.to = to
		b := carries[to].with(u.load, len(u.names))
		u.fits, carries[to] = e.fits(b), b
	}
	var rest []*unit
	for _, u := range units {
		if home := u.group.home(); home != none {
			put(u, home)
		}
	}
	for _, u := range units {
		if u.group.home() != none {
			continue
		}
		if to := e.fullest(u, carries); to != none {
			put(u, to)
			continue
		}
		rest = append(rest, u)
	}
	for _, u := range rest {
		put(u, e.lightest(carries))
	}
}

// fullest is the open replica that the unit fits on with the least room left.
func (e *evacuation) fullest(u *unit, carries []burden) int {
	best := none
	for replica, b := range carries {
		if e.open[replica] && e.fits(b.with(u.load, len(u.names))) && (best == none || b.load > carries[best].load) {
			best = replica
		}
	}
	return best
}

// fits reports whether a replica may carry that. Where the capacity is not known nothing fits, so that everything is spread.
func (e *evacuation) fits(b burden) bool {
	return b.load <= e.Capacity && e.Capacity > 0 && (e.MaxClusters <= 0 || b.clusters <= e.MaxClusters)
}

// lightest is the open replica with the least load, of those with the fewest clusters.
func (e *evacuation) lightest(carries []burden) int {
	best := none
	for replica, b := range carries {
		if e.open[replica] && (best == none || carries[best].above(b)) {
			best = replica
		}
	}
	return best
}

// send moves a unit. What of its group stands elsewhere follows it from now on.
func (e *evacuation) send(u *unit) {
	if e.out.Moves == nil {
		e.out.Moves = map[string]int{}
	}
	for _, name := range u.names {
		e.out.Moves[name] = u.to
	}
	e.left -= len(u.names)
	e.carries[u.to] = e.carries[u.to].with(u.load, len(u.names))
	e.received[u.to] = true
	if u.group.home() == none {
		u.group.open = u.to
	}
}
