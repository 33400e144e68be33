package partition

import "ballast/planner/plan"

// span is how many replicas are open from the start, how many there may be at most, and which rule says so.
type span struct {
	open, most int
	because    Rule
}

// packing is a partition in the making. Replicas with room for one more cluster are in the heap open, the others in
// full, so that the top of open is the least loaded replica that a single cluster can go to.
type packing struct {
	items []Item
	b     Bounds
	span  span
	open  heap
	full  heap
	of    []int
	exact bool // a load filled the capacity to the last digit
	lost  []Lost
}

// pack places the fixed items, then the others in order.
func pack(items []Item, order []Ranked, b Bounds, s span) *packing {
	p := &packing{items: items, b: b, span: s, of: make([]int, len(items))}
	p.open = make(heap, 0, max(s.open, min(s.most, 16)))
	for _, bn := range p.fixed(order) {
		p.add(bn)
	}
	for _, o := range order {
		if items[o.Item].Replica == Free {
			p.place(int(o.Item))
		}
	}
	return p
}

// fixed returns the replicas that are open from the start, with the fixed items on them.
func (p *packing) fixed(order []Ranked) []bin {
	bins := make([]bin, p.span.open)
	for i := range bins {
		bins[i].replica = int32(i)
	}
	for _, o := range order {
		if it := &p.items[o.Item]; it.Replica != Free {
			p.put(&bins[it.Replica], int(o.Item), Pin)
		}
	}
	return bins
}

// place puts a free item on the least loaded replica that fits, a new one, the least loaded with room, or the least
// loaded of all, in this order of preference.
func (p *packing) place(i int) {
	it := &p.items[i]
	at := p.withRoom(it)
	switch {
	case at >= 0 && p.fits(p.open[at], it):
		p.grow(at, i)
	case p.count() < p.span.most:
		fresh := bin{replica: int32(p.count())}
		p.put(&fresh, i, SameServer)
		p.add(fresh)
	case at >= 0:
		p.grow(at, i)
	default:
		p.overfill(i)
	}
}

// fits: an empty replica takes anything, for no other would do better.
func (p *packing) fits(bn bin, it *Item) bool {
	room := p.b.Capacity - it.Load
	if bn.clusters > 0 && bn.load == room {
		p.exact = true
	}
	return bn.clusters == 0 || bn.load <= room
}

// room: an empty replica has room for any unit, since no replica has more.
func (p *packing) room(bn bin, it *Item) bool {
	return p.b.MaxClusters == 0 || bn.clusters == 0 || int(bn.clusters)+it.Clusters <= p.b.MaxClusters
}

// withRoom finds the least loaded replica with room, or -1. All in open have room for one cluster; only larger units
// have to look further than the top.
func (p *packing) withRoom(it *Item) int {
	best := -1
	for at := range p.open {
		if !p.room(p.open[at], it) {
			continue
		}
		if at == 0 {
			return 0
		}
		if best < 0 || p.open[at].less(p.open[best]) {
			best = at
		}
	}
	return best
}

// grow puts an item on a replica in open, which leaves it once it is full.
func (p *packing) grow(at, i int) {
	p.put(&p.open[at], i, SameServer)
	if p.b.MaxClusters > 0 && int(p.open[at].clusters) >= p.b.MaxClusters {
		p.full.push(p.open.remove(at))
		return
	}
	p.open.down(at)
}

// overfill puts an item where there is no room for it, on the least loaded replica of all.
func (p *packing) overfill(i int) {
	from := &p.full
	if len(p.full) == 0 || len(p.open) > 0 && p.open[0].less(p.full[0]) {
		from = &p.open
	}
	to := p.against(&p.items[i])
	bn := from.remove(0)
	p.put(&bn, i, to)
	p.full.push(bn)
}

// against says what keeps an item from having room: a unit that would have it, could it be split, loses to its own
// rule.
func (p *packing) against(it *Item) Rule {
	if it.Clusters == 1 {
		return p.span.because
	}
	room := 0
	for _, bn := range p.open {
		room += p.b.MaxClusters - int(bn.clusters)
	}
	if room >= it.Clusters {
		return SameServer
	}
	return p.span.because
}

// put adds an item to a replica and notes the one that takes it above the cap.
func (p *packing) put(bn *bin, i int, to Rule) {
	it := &p.items[i]
	before := int(bn.clusters)
	bn.load += it.Load
	bn.clusters += int32(it.Clusters)
	p.of[i] = int(bn.replica)
	if c := p.b.MaxClusters; c > 0 && before <= c && int(bn.clusters) > c {
		if it.Clusters > c && to != Pin {
			to = SameServer
		}
		p.lost = append(p.lost, Lost{What: MaxClusters, To: to, Item: it.ID, Replica: int(bn.replica)})
	}
}

func (p *packing) add(bn bin) {
	if c := p.b.MaxClusters; c > 0 && int(bn.clusters) >= c {
		p.full.push(bn)
		return
	}
	p.open.push(bn)
}

func (p *packing) count() int { return len(p.open) + len(p.full) }

func (p *packing) makespan() (most plan.Load) {
	for _, h := range []heap{p.open, p.full} {
		for _, bn := range h {
			most = max(most, bn.load)
		}
	}
	return most
}

// excess is the load above the capacity, of all replicas.
func (p *packing) excess() (over plan.Load) {
	for _, h := range []heap{p.open, p.full} {
		for _, bn := range h {
			over += max(bn.load-p.b.Capacity, 0)
		}
	}
	return over
}

// bound is the number of replicas below which the total load cannot fit.
func (p *packing) bound() int {
	var total plan.Load
	for _, h := range []heap{p.open, p.full} {
		for _, bn := range h {
			total += bn.load
		}
	}
	if total == 0 {
		return 1
	}
	return int((total-1)/p.b.Capacity) + 1
}

func (p *packing) partition() Partition {
	n := p.count()
	out := Partition{Replicas: n, Of: p.of, Loads: make([]plan.Load, n), Clusters: make([]int, n), Lost: p.lost}
	for _, h := range []heap{p.open, p.full} {
		for _, bn := range h {
			out.Loads[bn.replica] = bn.load
			out.Clusters[bn.replica] = int(bn.clusters)
		}
	}
	return out
}
