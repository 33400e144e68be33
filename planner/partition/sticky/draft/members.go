package draft

import (
	"slices"
	"sort"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// members are the items of each replica that may move.
type members struct {
	view
	member [][]int32 // by replica; nil: none were asked for
	ranked []bool    // whether those are, by replica
}

// Members are the items of a replica that may move, the lightest first.
func (m *members) Members(r int) []int32 {
	if m.member == nil {
		m.list()
	}
	if !m.ranked[r] {
		slices.SortFunc(m.member[r], m.Setting.Lighter)
		m.ranked[r] = true
	}
	return m.member[r]
}

// list makes all members at once. Each replica's are ranked when they are asked for: in a fleet at rest the last one's
// alone are.
func (m *members) list() {
	m.member, m.ranked = make([][]int32, m.N), make([]bool, m.N)
	backing := make([]int32, len(m.Of))
	at := 0
	for r := range m.N {
		m.member[r] = backing[at : at : at+m.Units[r]]
		at += m.Units[r]
	}
	for i, r := range m.Of {
		if r != plan.NoReplica && m.Setting.Items[i].Replica == partition.Free {
			m.member[r] = append(m.member[r], int32(i))
		}
	}
	m.Steps -= len(m.Of)
}

func (m *members) enlist(i, r int, in bool) {
	if m.Setting.Items[i].Replica != partition.Free {
		return
	}
	at, _ := slices.BinarySearchFunc(m.Members(r), int32(i), m.Setting.Lighter)
	if in {
		m.member[r] = slices.Insert(m.member[r], at, int32(i))
	} else {
		m.member[r] = slices.Delete(m.member[r], at, at+1)
	}
}

// From is the place of the first item with that load or more.
func (m *members) From(all []int32, load plan.Load) int {
	return sort.Search(len(all), func(k int) bool { return m.Setting.Loads[all[k]] >= load })
}
