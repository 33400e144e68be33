package draft

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// Heavy reports whether a replica is to give items up.
func (d *Draft) Heavy(r int) bool {
	movable := d.Bears[r] > 1 && d.pinned[r] < d.Units[r]
	above := d.Load[r] > d.High.Load || d.Memory != nil && d.Memory[r] > d.High.Memory
	return movable && above && !d.Patient(r)
}

// Patient reports whether nothing is to be done for a replica's sake.
func (d *Draft) Patient(r int) bool { return d.Options.Patient != nil && d.Options.Patient(r) }

// Overloaded reports whether any replica is to give items up.
func (d *Draft) Overloaded() bool {
	for r := range d.N {
		if d.Heavy(r) {
			return true
		}
	}
	return false
}

// May reports whether the rules let an item go to a replica, whatever it carries.
func (d *Draft) May(i, r int) bool {
	if most := d.Setting.Bounds.MaxClusters; most > 0 && d.Units[r] > 0 && d.Clusters[r]+d.Setting.Items[i].Clusters > most {
		return false
	}
	return d.Apart(i, r)
}

// Fits reports whether a replica stays within a line with an item: a replica without items takes any.
func (d *Draft) Fits(i, r int, limit Line) bool {
	return d.Units[r] == 0 || d.Load[r]+d.Setting.Loads[i] <= limit.Load && d.Holds(i, r, limit.Memory)
}

// Least is the least loaded replica that takes an item, Nowhere if none does.
func (d *Draft) Least(i, not int, limit Line) int {
	if len(d.tree.order) == 0 {
		return Nowhere
	}
	top := d.tree.order[0]
	if d.Units[top] > 0 && d.Load[top]+d.Setting.Loads[i] > limit.Load {
		return Nowhere // it is the least loaded; an empty one would be first
	}
	if int(top) != not && d.May(i, int(top)) && d.Fits(i, int(top), limit) {
		return int(top)
	}
	best := Nowhere
	d.Steps -= len(d.tree.order)
	for _, r := range d.tree.order {
		if r := int(r); r != not && d.Fits(i, r, limit) && d.May(i, r) && (best == Nowhere || d.Less(r, best)) {
			best = r
		}
	}
	return best
}

// Fullest is the most loaded replica that takes an item.
func (d *Draft) Fullest(i, not int, limit Line) int {
	best := Nowhere
	d.Steps -= len(d.tree.order)
	for _, r := range d.tree.order {
		if r := int(r); r != not && d.Fits(i, r, limit) && d.May(i, r) && (best == Nowhere || d.Less(best, r)) {
			best = r
		}
	}
	return best
}

// Less is a total order of replicas: by load, then fewer clusters, then number.
func (d *Draft) Less(a, b int) bool {
	if d.Load[a] != d.Load[b] {
		return d.Load[a] < d.Load[b]
	}
	return cmp.Or(cmp.Compare(d.Clusters[a], d.Clusters[b]), cmp.Compare(a, b)) < 0
}

// Bytes is an item's memory.
func (d *Draft) Bytes(i int) plan.Bytes {
	if d.Setting.Bytes == nil {
		return 0
	}
	return d.Setting.Bytes[i]
}

// Holds reports whether a replica has that much memory at most in use with an item.
func (d *Draft) Holds(i, r int, memory plan.Bytes) bool {
	return d.Memory == nil || d.Memory[r]+d.Setting.Bytes[i] <= memory
}

// From is the place of the first item with that load or more.
func (d *Draft) From(all []int32, load plan.Load) int {
	at, _ := slices.BinarySearchFunc(all, load, func(i int32, l plan.Load) int {
		if d.Setting.Loads[i] < l {
			return -1
		}
		return 1
	})
	return at
}

// Apart reports whether no item of its groups is on a replica.
func (d *Draft) Apart(i, r int) bool {
	return d.taken == nil || !d.taken.Has(d.Setting.Groups.Of(i), r)
}

// Drainable reports whether the rules let the highest replica go.
func (d *Draft) Drainable() bool {
	h := d.N - 1
	return h >= d.Setting.Least && h > 0 && d.pinned[h] == 0
}

// Receiving are the replicas that receive, the least loaded at 0, the others in no order.
func (d *Draft) Receiving() []int32 { return d.tree.order }

// Receivers are the other replicas that receive, the least loaded first.
func (d *Draft) Receivers(not int) []int32 {
	all := slices.DeleteFunc(slices.Clone(d.tree.order), func(r int32) bool { return int(r) == not })
	slices.SortFunc(all, func(a, b int32) int {
		if d.Less(int(a), int(b)) {
			return -1
		}
		return 1
	})
	return all
}
