package draft

import (
	"slices"

	"ballast/planner/plan"
)

// receivers are the replicas that receive now, of which the searches choose.
type receivers struct {
	members
	tree ranking // least loaded first
	shut []bool  // replicas that do not receive now
}

// ShutOut keeps a replica from receiving.
func (rs *receivers) ShutOut(r int) {
	rs.shut[r] = true
	rs.tree.remove(&rs.view, r)
}

// Reopen lets all replicas receive again that are not closed.
func (rs *receivers) Reopen() {
	for r := range rs.N {
		if rs.shut[r] && !rs.Setting.IsClosed(r) {
			rs.shut[r] = false
			rs.tree.add(&rs.view, r)
		}
	}
}

// Least is the least loaded replica that takes an item, plan.NoReplica if none does.
func (rs *receivers) Least(i, not int, limit Line) int {
	if len(rs.tree.order) == 0 {
		return plan.NoReplica
	}
	top := rs.tree.order[0]
	if rs.Units[top] > 0 && rs.Load[top]+rs.Setting.Loads[i] > limit.Load {
		return plan.NoReplica // it is the least loaded; an empty one would be first
	}
	if int(top) != not && rs.May(i, int(top)) && rs.Fits(i, int(top), limit) {
		return int(top)
	}
	best := plan.NoReplica
	rs.Steps -= len(rs.tree.order)
	for _, r := range rs.tree.order {
		if r := int(r); r != not && rs.Fits(i, r, limit) && rs.May(i, r) && (best == plan.NoReplica || rs.Compare(r, best) < 0) {
			best = r
		}
	}
	return best
}

// Fullest is the most loaded replica that takes an item.
func (rs *receivers) Fullest(i, not int, limit Line) int {
	best := plan.NoReplica
	rs.Steps -= len(rs.tree.order)
	for _, r := range rs.tree.order {
		if r := int(r); r != not && rs.Fits(i, r, limit) && rs.May(i, r) && (best == plan.NoReplica || rs.Compare(r, best) > 0) {
			best = r
		}
	}
	return best
}

// Receiving are the replicas that receive, the least loaded at 0, the others in no order.
func (rs *receivers) Receiving() []int32 { return rs.tree.order }

// Receivers are the other replicas that receive, the least loaded first.
func (rs *receivers) Receivers(not int) []int32 {
	all := slices.DeleteFunc(slices.Clone(rs.tree.order), func(r int32) bool { return int(r) == not })
	slices.SortFunc(all, func(a, b int32) int { return rs.Compare(int(a), int(b)) })
	return all
}
