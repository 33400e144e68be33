package division

import (
	"cmp"
	"slices"

	"ballast/planner/cycle/ground"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/plan"
)

// assignment makes the partition of a division anew.
type assignment struct {
	*Division
	g *ground.Ground
}

// assign makes the partition anew, and leaves everything where it stands if that does not pay.
func (d assignment) assign(b partition.Bounds) (err error) {
	if d.Answer, err = Count(d.Items, b, d.g.Next.Replicas); err != nil {
		return err
	}
	now := make(map[string]int, len(d.Items))
	for k, u := range d.groups {
		if row, ok := d.g.Next.Clusters[d.g.Fleet.Clusters[u.Clusters[0]].Shard.ID]; ok {
			now[d.Items[k].ID] = row.Replica
		}
	}
	d.Answer = partition.Relabel(d.Answer, d.Items, now)
	d.leaveIdle()
	d.settle()
	d.offer()
	return nil
}

// slack is the room that fewer replicas must have under the capacity. Without it a load near the capacity would open
// and close a replica at every election; where replicas restart for another number, that is a restart of the fleet
// each.
const slack = 0.1

// Count is the partition over as many replicas as the capacity asks for, with no replica less than one by a smaller
// capacity needs, so long as they are there: what is added once stays until there is room. The capacity says how many
// there are, and no more: what fills each to it before the next one opens is as unlevel as the capacity is loose.
func Count(items []partition.Item, b partition.Bounds, now int) (partition.Partition, error) {
	packed, err := partition.LPT(items, b)
	if err != nil || b.Fixed > 0 {
		return packed, err
	}
	replicas := packed.Replicas
	if replicas < now {
		spare := b
		spare.Capacity = plan.Load((1 - slack) * float64(b.Capacity))
		roomy, err := partition.LPT(items, spare)
		if err != nil {
			return roomy, err
		}
		replicas = max(replicas, min(roomy.Replicas, now))
	}
	b.Fixed = replicas
	level, err := partition.LPT(items, b)
	if err == nil && replicas == packed.Replicas && !leveller(level, packed) {
		return packed, nil
	}
	return level, err
}

// leveller reports whether the fullest replica carries less in a than in b, of which no bound had to give way to it.
func leveller(a, b partition.Partition) bool {
	return len(a.Lost) <= len(b.Lost) && slices.Max(a.Loads) < slices.Max(b.Loads)
}

// Loads are measured and never stand still, and a partition made anew moves most of what there is. So it must lower the
// makespan by usefulGain at least, and by 1 % more for each tenth of the clusters that it moves: each starts
// somewhere with an empty cache.
const (
	usefulGain = 0.01
	moveCosts  = 0.1
)

// pays is the share by which a partition that moves so many of all clusters that carry something must lower the
// makespan.
func pays(moves, clusters int) float64 {
	return max(usefulGain, moveCosts*float64(moves)/float64(max(clusters, 1)))
}

// leaveIdle leaves clusters without load where they stand, as far as the answer has that replica and the cap allows it:
// to move them levels nothing, and whoever makes thousands of them would have the moves that do wait behind theirs.
// Where nothing has a load they are spread by their number.
func (d assignment) leaveIdle() {
	if !d.loaded() {
		return
	}
	for k, u := range d.groups {
		item, to, stands := d.Items[k], d.Answer.Of[k], d.g.Standing(u.Clusters[0])
		free := item.Load == 0 && item.Replica < 0 && to != stands
		if !free || stands < 0 || stands >= d.Answer.Replicas {
			continue
		}
		if most := d.Bounds.MaxClusters; most > 0 && d.Answer.Clusters[stands]+item.Clusters > most {
			continue
		}
		d.Answer.Of[k] = stands
		d.Answer.Clusters[to] -= item.Clusters
		d.Answer.Clusters[stands] += item.Clusters
	}
}

// loaded reports whether any item has a load.
func (d assignment) loaded() bool {
	return slices.ContainsFunc(d.Items, func(i partition.Item) bool { return i.Load > 0 })
}

// carrying is how many items have a load; where none has, all of them.
func (d assignment) carrying() (count int) {
	for _, item := range d.Items {
		if item.Load > 0 {
			count++
		}
	}
	return cmp.Or(count, len(d.Items))
}

// settle leaves everything where it stands, as the answer, if the partition needs the same number of replicas, nothing
// stands where it must not, and the gain does not pay for the moves.
func (d assignment) settle() {
	if d.Answer.Replicas != d.g.Next.Replicas {
		return
	}
	stands := partition.Partition{Replicas: d.Answer.Replicas, Of: make([]int, len(d.Items)), Lost: d.Answer.Lost,
		Loads: make([]plan.Load, d.Answer.Replicas), Clusters: make([]int, d.Answer.Replicas)}
	moves, loaded := 0, d.loaded()
	for k, u := range d.groups {
		r, item := d.g.Standing(u.Clusters[0]), d.Items[k]
		if !d.g.Movable(u) { // wherever it stands says nothing of the others
			r = d.Answer.Of[k]
		}
		if pinnedElsewhere := item.Replica >= 0 && item.Replica != r; pinnedElsewhere || r < 0 || r >= stands.Replicas {
			return
		}
		if r != d.Answer.Of[k] && (item.Load > 0 || !loaded) {
			moves++
		}
		stands.Of[k] = r
		stands.Loads[r] += item.Load
		stands.Clusters[r] += item.Clusters
		if most := d.Bounds.MaxClusters; most > 0 && stands.Clusters[r] > most {
			return
		}
	}
	over := d.Bounds.Capacity > 0 && d.peak(stands) > d.Bounds.Capacity && d.peak(d.Answer) <= d.Bounds.Capacity
	if pay := (1 - pays(moves, d.carrying())) * float64(d.peak(stands)); over || float64(d.peak(d.Answer)) < pay {
		return
	}
	d.Answer = stands
}

// peak is the makespan, but for units beyond what a replica may carry that have one to themselves: nothing mends those,
// and the others must not be left as they are for them.
func (d assignment) peak(p partition.Partition) (most plan.Load) {
	units := make([]int, p.Replicas)
	for _, r := range p.Of {
		units[r]++
	}
	for r, load := range p.Loads {
		if alone := units[r] == 1 && d.full > 0 && load > d.full; !alone {
			most = max(most, load)
		}
	}
	return most
}

// offer is what a partition that was made anew saves and costs: overload is what is above its fullest replica. What
// leaves others costs, too.
func (d assignment) offer() {
	d.line, d.Offers = d.peak(d.Answer), map[int]evaluate.Offer{}
	before := map[int]plan.Load{}
	for k, u := range d.groups {
		from, load := d.g.Standing(u.Clusters[0]), d.Items[k].Load
		if !d.g.Movable(u) {
			before[from] += load
			continue
		}
		switch {
		case from < 0:
			continue
		case from >= d.Answer.Replicas:
			d.Musts++
			continue
		}
		before[from] += load
		if from != d.Answer.Of[k] {
			o := d.Offers[from]
			o.Costs += load
			d.Offers[from] = o
		}
	}
	for replica, o := range d.Offers {
		o.Saves = above(before[replica], d.line)
		d.Offers[replica] = o
	}
}
