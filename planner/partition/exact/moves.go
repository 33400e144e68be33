package exact

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// Standing is a fleet as it stands: each load's replica, and which of them cannot move (nil: all can).
type Standing struct {
	Loads    []plan.Load
	Now      []int
	Fixed    []bool
	Replicas int
}

// Moves is the fewest moves after which no replica carries more than the limit; one that has a single load may. False:
// no moves lead there.
func Moves(s Standing, limit plan.Load, steps int) (Bound, bool) {
	m := newMoving(s, limit, steps)
	for k := m.needed(); ; k++ {
		m.cut = false
		switch found := m.search(k); {
		case found:
			return Bound{int64(k), int64(k)}, true
		case m.steps < 0:
			return Bound{int64(k), None}, true
		case !m.cut:
			return Bound{int64(k), None}, false
		}
	}
}

// moving is a fleet in the midst of moves. The loads of a replica leave it in the order of its list, the heaviest
// first, so that each set of moves is looked at in one order only; what came does not leave again.
type moving struct {
	limit plan.Load
	steps int
	cut   bool // more moves than were allowed might have done it
	load  []plan.Load
	units []int
	list  [][]plan.Load // what may leave
	from  []int         // the place in it from which on loads may still leave
}

func newMoving(s Standing, limit plan.Load, steps int) *moving {
	m := &moving{limit: limit, steps: steps, load: make([]plan.Load, s.Replicas), units: make([]int, s.Replicas),
		list: make([][]plan.Load, s.Replicas), from: make([]int, s.Replicas)}
	for i, r := range s.Now {
		m.load[r] += s.Loads[i]
		m.units[r]++
		if s.Fixed == nil || !s.Fixed[i] {
			m.list[r] = append(m.list[r], s.Loads[i])
		}
	}
	for r := range m.list {
		slices.SortFunc(m.list[r], func(a, b plan.Load) int { return cmp.Compare(b, a) })
	}
	return m
}

func (m *moving) over(r int) bool { return m.load[r] > m.limit && m.units[r] > 1 }

// needed is how many moves are left at least: of each replica the heaviest, until it is below the limit.
func (m *moving) needed() (moves int) {
	for r := range m.load {
		load, units := m.load[r], m.units[r]
		for k := m.from[r]; load > m.limit && units > 1 && k < len(m.list[r]); k++ {
			load -= m.list[r][k]
			units--
			moves++
		}
	}
	return moves
}

// helpless: some replica stays above the limit whatever leaves it.
func (m *moving) helpless() bool {
	for r := range m.load {
		if !m.over(r) {
			continue
		}
		load, units := m.load[r], m.units[r]-(len(m.list[r])-m.from[r])
		for _, l := range m.list[r][m.from[r]:] {
			load -= l
		}
		if load > m.limit && units > 1 {
			return true
		}
	}
	return false
}

// search relieves the fullest that is above the limit, by each of its loads to each other replica, and goes on.
func (m *moving) search(left int) bool {
	worst := -1
	for r := range m.load {
		if m.over(r) && (worst < 0 || m.load[r] > m.load[worst]) {
			worst = r
		}
	}
	if m.steps -= len(m.load); worst < 0 {
		return true
	}
	switch {
	case m.steps < 0 || m.helpless():
		return false
	case m.needed() > left:
		m.cut = true
		return false
	}
	list, from := m.list[worst], m.from[worst]
	for k := from; k < len(list); k++ {
		if k > from && list[k] == list[k-1] {
			continue // its like was tried
		}
		if m.place(worst, k, left) {
			return true
		}
	}
	return false
}

// place tries the load at k of a replica on each other one.
func (m *moving) place(r, k, left int) bool {
	l, before, empty := m.list[r][k], m.from[r], false
	m.from[r], m.load[r], m.units[r] = k+1, m.load[r]-l, m.units[r]-1
	defer func() { m.from[r], m.load[r], m.units[r] = before, m.load[r]+l, m.units[r]+1 }()
	for _, to := range m.emptiest() {
		if to == r || m.units[to] == 0 && empty {
			continue
		}
		empty = empty || m.units[to] == 0
		m.load[to], m.units[to] = m.load[to]+l, m.units[to]+1
		found := m.search(left - 1)
		m.load[to], m.units[to] = m.load[to]-l, m.units[to]-1
		if found || m.steps < 0 {
			return found
		}
	}
	return false
}

// emptiest are the replicas, the least loaded first: there a move most often ends.
func (m *moving) emptiest() []int {
	order := make([]int, len(m.load))
	for r := range order {
		order[r] = r
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(m.load[a], m.load[b]), cmp.Compare(a, b)) })
	return order
}
