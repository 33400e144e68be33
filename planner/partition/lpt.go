package partition

import (
	"cmp"
	"fmt"
)

// LPT is the seed's rule (longest processing time first): heaviest items first, each on the least loaded replica that
// it fits on within the capacity, else on a new one. Ties are broken by ID among items, by fewer clusters and then by
// number among replicas. Without ties the plan is the seed's; it differs where the seed's is harmful:
//
//   - a load that fills the capacity exactly fits; the seed's strict comparison gives one load of 10 and 49 of 5 fifty
//     replicas where 26 serve;
//   - fixed items are placed first, and the count grows to hold them;
//   - the count stays within the bounds. At the maximum the least loaded replica with room under MaxClusters takes what
//     fits nowhere; if none has room MaxClusters is Lost. Where bounds, not capacity, set the count, the load is spread
//     over all of those replicas;
//   - an item heavier than the capacity has a replica of its own as long as the count allows.
//
// It takes O(N log N), and O(R) more for each unit of several clusters that the cap keeps off the least loaded replica.
func LPT(items []Item, b Bounds) (Partition, error) {
	if _, err := check(items, b); err != nil {
		return Partition{}, err
	}
	order, err := HeaviestFirst(items)
	if err != nil {
		return Partition{}, err
	}
	return LPTOf(items, order, b), nil
}

// LPTOf is LPT of items that NewFrame takes, ranked by HeaviestFirst.
func LPTOf(items []Item, order []Ranked, b Bounds) Partition {
	if b.Capacity == 0 && len(order) > 0 {
		b.Capacity = items[order[0].Item].Load
	}
	pinned, top := highestPin(items)
	if held := min(b.Held, b.MaxReplicas); held > pinned {
		pinned, top = held, ""
	}
	if b.Fixed > 0 {
		count := max(min(b.Fixed, b.MaxReplicas), pinned)
		p := pack(items, order, b, span{open: count, most: count, because: FixedReplicas})
		p.lost = append(fixedLost(b, pinned, top), p.lost...)
		return p.partition()
	}
	p := fewest(items, order, b, pinned)
	least := max(b.MinReplicas, 1)
	if p.count() < least || p.count() == b.MaxReplicas && p.makespan() > b.Capacity {
		p = spread(p, items, order, b, max(p.count(), least))
	}
	return p.partition()
}

// fewest opens replicas as the load asks for them. More capacity can take more replicas (an anomaly of packing in
// descending order), so where an exact fit was used and the count is above the bound, the seed's strict comparison is
// tried too: ours never takes more replicas than the seed's.
func fewest(items []Item, order []Ranked, b Bounds, pinned int) *packing {
	s := span{open: pinned, most: b.MaxReplicas, because: MaxReplicas}
	p := pack(items, order, b, s)
	if !p.exact || p.count() <= max(pinned, p.bound()) {
		return p
	}
	strict := b
	strict.Capacity--
	if q := pack(items, order, strict, s); q.count() < p.count() && len(q.lost) <= len(p.lost) {
		return q
	}
	return p
}

// spread is LPT over so many open replicas, unless that is worse than p: then p with its number filled up.
func spread(p *packing, items []Item, order []Ranked, b Bounds, count int) *packing {
	q := pack(items, order, b, span{open: count, most: count, because: MaxReplicas})
	if len(q.lost) <= len(p.lost) && q.makespan() <= p.makespan() && q.excess() <= p.excess() {
		return q
	}
	for p.count() < count {
		p.add(bin{replica: int32(p.count())})
	}
	return p
}

// HeaviestFirst ranks items by load, those of one load by ID. It refuses two items that nothing tells apart: the plan
// would depend on their order in the input.
func HeaviestFirst(items []Item) ([]Ranked, error) {
	order := make([]Ranked, len(items))
	for i := range items {
		order[i] = Ranked{^uint64(items[i].Load), int32(i)}
	}
	Rank(order, func(a, b int32) int { return cmp.Compare(items[a].ID, items[b].ID) })
	for i := 1; i < len(order); i++ {
		if order[i].Key != order[i-1].Key {
			continue
		}
		if id := items[order[i].Item].ID; id == items[order[i-1].Item].ID {
			return nil, fmt.Errorf("partitioning %q: it is there twice", id)
		}
	}
	return order, nil
}

// highestPin is the number of replicas that the fixed items need, and the one that needs them.
func highestPin(items []Item) (count int, top string) {
	for i := range items {
		it := &items[i]
		if n := it.Replica + 1; n > count || n == count && n > 0 && it.ID < top {
			count, top = n, it.ID
		}
	}
	return count, top
}

func fixedLost(b Bounds, pinned int, top string) (lost []Lost) {
	if b.Fixed > b.MaxReplicas {
		lost = append(lost, Lost{What: FixedReplicas, To: MaxReplicas})
	}
	if b.Fixed < b.MinReplicas {
		lost = append(lost, Lost{What: MinReplicas, To: FixedReplicas})
	}
	if pinned > b.Fixed {
		lost = append(lost, Lost{What: FixedReplicas, To: Pin, Item: top, Replica: pinned - 1})
	}
	return lost
}
