// Package draft is a partition in the making, as the searches of package sticky work on it: which replica each item is
// on, what replicas carry and what they may, which replica takes an item, and the journal of what was moved and why.
package draft

import (
	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// Draft is a partition in the making. Everything that changes it goes through Shift, which the journal can undo. It is
// made of layers, each of which knows those beneath it alone: a view, the members of replicas, who receives, the
// journal; and this one, which opens replicas.
type Draft struct{ journal }

// New is a draft of as many empty replicas as are in force, or as the bounds let there be.
func New(c *constraint.Setting, o Options) *Draft {
	n := min(max(c.Replicas, c.Least), c.Most)
	d := &Draft{}
	d.Setting, d.unit = refined(c)
	d.Options, d.Steps, d.Sake = o, o.Budget, plan.NoReplica
	d.Of, d.Why = make([]int, len(c.Items)), map[int32]Because{}
	if c.Groups.Any() {
		d.occupied = constraint.Occupancy{}
	}
	if c.Bytes != nil {
		d.Memory = make([]plan.Bytes, 0, n)
	}
	for range n {
		d.Open()
	}
	d.Limit()
	return d
}

// Open adds a replica.
func (d *Draft) Open() int {
	r := d.N
	d.N++
	d.Load, d.Clusters = append(d.Load, 0), append(d.Clusters, 0)
	d.Units, d.pinned, d.Bears = append(d.Units, 0), append(d.pinned, 0), append(d.Bears, 0)
	d.shut = append(d.shut, d.Setting.IsClosed(r))
	if d.member != nil {
		d.member, d.ranked = append(d.member, nil), append(d.ranked, false)
	}
	if d.Memory != nil {
		d.Memory = append(d.Memory, 0)
	}
	d.tree.grow()
	if !d.shut[r] {
		d.tree.add(&d.view, r)
	}
	return r
}

// Another opens a replica that receives, plan.NoReplica if there may be no more.
func (d *Draft) Another() int {
	for d.N < d.Setting.Most {
		if r := d.Open(); !d.shut[r] {
			return r
		}
	}
	return plan.NoReplica
}

// Unopen takes back the last replica, which is empty.
func (d *Draft) Unopen() {
	r := d.N - 1
	d.tree.remove(&d.view, r)
	d.tree.shrink()
	d.N = r
	d.Load, d.Clusters, d.Units, d.pinned, d.Bears = d.Load[:r], d.Clusters[:r], d.Units[:r], d.pinned[:r], d.Bears[:r]
	d.shut = d.shut[:r]
	if d.member != nil {
		d.member, d.ranked = d.member[:r], d.ranked[:r]
	}
	if d.Memory != nil {
		d.Memory = d.Memory[:r]
	}
}

// CloseEmpty takes back a replica that was opened for what was then not moved.
func (d *Draft) CloseEmpty() {
	for d.N > max(d.Setting.Replicas, d.Setting.Least) && d.Units[d.N-1] == 0 {
		d.Unopen()
	}
	d.Limit()
}

// Stand puts pins and what stands; it answers the others.
func (d *Draft) Stand() (homeless []int32) {
	for i := range d.Of {
		at, stands := d.Setting.Items[i].Replica, d.Setting.Stands(i)
		switch {
		case at != partition.Free:
			if stands != at {
				d.Why[int32(i)] = Because{Pinned, plan.NoReplica}
			}
		case stands == plan.NoReplica:
			d.Why[int32(i)] = Because{Arrived, plan.NoReplica}
		case stands >= d.N:
			d.Why[int32(i)] = Because{Gone, plan.NoReplica}
		default:
			at = stands
		}
		if d.Of[i] = at; at == plan.NoReplica {
			homeless = append(homeless, int32(i))
			continue
		}
		d.put(i, at, 1)
	}
	d.tree.heapify(&d.view)
	return homeless
}
