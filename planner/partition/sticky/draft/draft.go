// Package draft is a partition in the making, as the searches of package sticky work on it: which replica each item is on,
// what replicas carry and what they may, which replica takes an item, and the journal of what was moved and why.
package draft

import (
	"cmp"
	"slices"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/plan"
)

// Nowhere is no replica.
const Nowhere = partition.Free

// Draft is a partition in the making. Everything that changes it goes through Shift, which the journal can undo.
type Draft struct {
	Setting *constraint.Setting // its loads are in parts: see InUnit
	Options Options
	N       int // replicas
	Of      []int
	Why     map[int32]Because

	// By replica. Bears are items that carry a load or take memory: one alone gains nothing elsewhere.
	Load     []plan.Load
	Memory   []plan.Bytes // nil: it bounds nothing
	Clusters []int
	Units    []int // items
	Bears    []int

	High, Down, Low, DrainTo, Full Line
	Useful                         plan.Load

	Sake  int // the replica for which something is done now; Nowhere: a rule wants it
	Moves int // that count against MaxMoves
	Cut   bool
	Steps int // that are left of the budget

	unit    unit
	pinned  []int // fixed items, by replica
	taken   constraint.Taken
	tree    ranking   // replicas that receive, least loaded first
	shut    []bool    // replicas that do not receive now
	member  [][]int32 // items that may move, by replica; nil: none were asked for
	ranked  []bool    // whether those are, by replica
	journal []step
}

// New is a draft of as many empty replicas as are in force, or as the bounds let there be.
func New(c *constraint.Setting, o Options) *Draft {
	n := min(max(c.Replicas, c.Least), c.Most)
	c, unit := refined(c)
	d := &Draft{Setting: c, Options: o, unit: unit, Of: make([]int, len(c.Items)), Why: map[int32]Because{}, Steps: o.Budget, Sake: Nowhere}
	if c.Groups.Any() {
		d.taken = constraint.Taken{}
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
		d.tree.add(d, r)
	}
	return r
}

// Another opens a replica that receives, Nowhere if there may be no more.
func (d *Draft) Another() int {
	for d.N < d.Setting.Most {
		if r := d.Open(); !d.shut[r] {
			return r
		}
	}
	return Nowhere
}

// Unopen takes back the last replica, which is empty.
func (d *Draft) Unopen() {
	r := d.N - 1
	d.tree.remove(d, r)
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

// ShutOut keeps a replica from receiving.
func (d *Draft) ShutOut(r int) {
	d.shut[r] = true
	d.tree.remove(d, r)
}

// Reopen lets all replicas receive again that are not closed.
func (d *Draft) Reopen() {
	for r := range d.N {
		if d.shut[r] && !d.Setting.IsClosed(r) {
			d.shut[r] = false
			d.tree.add(d, r)
		}
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
				d.Why[int32(i)] = Because{Pinned, Nowhere}
			}
		case stands == partition.Free:
			d.Why[int32(i)] = Because{Arrived, Nowhere}
		case stands >= d.N:
			d.Why[int32(i)] = Because{Gone, Nowhere}
		default:
			at = stands
		}
		if d.Of[i] = at; at == partition.Free {
			homeless = append(homeless, int32(i))
			continue
		}
		d.put(i, at, 1)
	}
	d.tree.heapify(d)
	return homeless
}

// put adds an item to a replica, or takes it away with the sign -1: nothing else changes a replica.
func (d *Draft) put(i, r, sign int) {
	d.Load[r] += plan.Load(sign) * d.Setting.Loads[i]
	if d.Memory != nil {
		d.Memory[r] += plan.Bytes(sign) * d.Setting.Bytes[i]
	}
	d.Clusters[r] += sign * d.Setting.Items[i].Clusters
	d.Units[r] += sign
	if d.Setting.Loads[i] > 0 || d.Bytes(i) > 0 {
		d.Bears[r] += sign
	}
	if d.Setting.Items[i].Replica != partition.Free {
		d.pinned[r] += sign
	}
	if d.taken != nil {
		d.taken.Add(d.Setting.Groups.Of(i), r, int32(sign))
	}
}

// Members are the items of a replica that may move, the lightest first.
func (d *Draft) Members(r int) []int32 {
	if d.member == nil {
		d.list()
	}
	if !d.ranked[r] {
		slices.SortFunc(d.member[r], d.lighter)
		d.ranked[r] = true
	}
	return d.member[r]
}

// list makes all members at once. Each replica's are ranked when they are asked for: in a fleet at rest the last one's alone are.
func (d *Draft) list() {
	d.member, d.ranked = make([][]int32, d.N), make([]bool, d.N)
	backing := make([]int32, len(d.Of))
	at := 0
	for r := range d.N {
		d.member[r] = backing[at : at : at+d.Units[r]]
		at += d.Units[r]
	}
	for i, r := range d.Of {
		if r != Nowhere && d.Setting.Items[i].Replica == partition.Free {
			d.member[r] = append(d.member[r], int32(i))
		}
	}
	d.Steps -= len(d.Of)
}

func (d *Draft) enlist(i, r int, in bool) {
	if d.Setting.Items[i].Replica != partition.Free {
		return
	}
	at, _ := slices.BinarySearchFunc(d.Members(r), int32(i), d.lighter)
	if in {
		d.member[r] = slices.Insert(d.member[r], at, int32(i))
	} else {
		d.member[r] = slices.Delete(d.member[r], at, at+1)
	}
}

// lighter orders items by load, then by ID.
func (d *Draft) lighter(a, b int32) int {
	if la, lb := d.Setting.Loads[a], d.Setting.Loads[b]; la != lb {
		return cmp.Compare(la, lb)
	}
	return cmp.Or(cmp.Compare(d.Setting.Items[a].ID, d.Setting.Items[b].ID), cmp.Compare(a, b))
}

// Twice reports whether another item of its groups is on a replica beside it.
func (d *Draft) Twice(i, r int) bool {
	return d.taken.Twice(d.Setting.Groups.Of(i), r)
}
