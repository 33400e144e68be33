package pack

import (
	"math/rand/v2"

	"ballast/planner/plan"
)

// walk is bins on their way to where none carries more than full.
type walk struct {
	loads  []plan.Load
	bins   []Bin
	full   plan.Load
	steps  int
	random *rand.Rand
	halves [2]half
	drawn  []int32
}

func newWalk(loads []plan.Load, seed uint64) *walk {
	return &walk{loads: loads, random: rand.New(rand.NewPCG(1, seed))}
}

// dealt is how many items two bins deal anew at a time, at most.
const dealt = 12

// settleAll settles the fullest bin until none is too full.
func (w *walk) settleAll() bool {
	for {
		hot := 0
		for r := range w.bins {
			if w.bins[r].Load > w.bins[hot].Load {
				hot = r
			}
		}
		if w.bins[hot].Load <= w.full {
			return true
		}
		if !w.settle(hot) {
			return false
		}
	}
}

// settle brings a bin down to full. It reports false once the steps are spent.
func (w *walk) settle(hot int) bool {
	n := len(w.bins)
	for w.bins[hot].Load > w.full {
		if w.steps <= 0 {
			return false
		}
		w.steps--
		to, from := w.random.IntN(n), hot
		if w.random.IntN(2) == 0 {
			from = w.random.IntN(n)
		}
		if to != from && to != hot {
			w.redistribute(&w.bins[to], &w.bins[from], from == hot)
		}
	}
	return true
}

// away is in how many turns for each item a bin takes less than it could.
const away = 4

// redistribute deals some items of two bins out anew, so that the one carries as much as it may. Only the hot one may
// carry more.
func (w *walk) redistribute(to, from *Bin, hot bool) {
	a := w.draw(to, max(dealt/2, dealt-len(from.Items)))
	b := w.draw(from, dealt-len(a))
	w.drawn = append(append(w.drawn[:0], a...), b...)
	w.random.Shuffle(len(w.drawn), func(x, y int) { w.drawn[x], w.drawn[y] = w.drawn[y], w.drawn[x] })
	var had plan.Load
	for _, i := range a {
		had += w.loads[i]
	}
	room, enough := w.full-to.Load+had, had
	if w.random.IntN(away*len(w.loads)) == 0 {
		room, enough = min(room, plan.Load(w.random.Int64N(max(int64(had), 1)))), 0
	}
	load, chosen := w.fill(w.drawn, room)
	if load < enough || !hot && from.Load-(load-had) > w.full {
		return
	}
	to.Items, from.Items = to.Items[:len(to.Items)-len(a)], from.Items[:len(from.Items)-len(b)]
	for k, i := range w.drawn {
		if chosen>>k&1 == 1 {
			to.Items = append(to.Items, i)
		} else {
			from.Items = append(from.Items, i)
		}
	}
	to.Load += load - had
	from.Load -= load - had
}

// draw brings so many items of a bin, if it has them, to its end.
func (w *walk) draw(b *Bin, n int) []int32 {
	last := len(b.Items)
	n = min(n, last)
	for k := range n {
		at, end := w.random.IntN(last-k), last-1-k
		b.Items[at], b.Items[end] = b.Items[end], b.Items[at]
	}
	return b.Items[last-n:]
}

// fill is the greatest load of some of the items up to the room, and which they are, by bit; negative: not even nothing
// fits.
func (w *walk) fill(items []int32, room plan.Load) (load plan.Load, chosen uint32) {
	middle := len(items) / 2
	first, second := w.halves[0].of(w.loads, items[:middle]), w.halves[1].of(w.loads, items[middle:])
	w.steps -= len(first) + len(second) + len(items)
	load = -1
	at := len(second) - 1
	for _, a := range first {
		for at >= 0 && second[at].load > room-a.load {
			at--
		}
		if at < 0 {
			break
		}
		if sum := a.load + second[at].load; sum > load {
			load, chosen = sum, a.items|second[at].items<<middle
		}
	}
	return load, chosen
}

// half has the sums of half of the items.
type half struct{ sums, spare []sum }

// sum is the load of some items, which are its bits.
type sum struct {
	load  plan.Load
	items uint32
}

// of are the sums of all subsets, ascending: those without an item merged with those with it.
func (h *half) of(loads []plan.Load, items []int32) []sum {
	h.sums = append(h.sums[:0], sum{})
	for k, i := range items {
		without, merged, at := h.sums, h.spare[:0], 0
		for _, s := range without {
			with := sum{s.load + loads[i], s.items | 1<<k}
			for at < len(without) && without[at].load <= with.load {
				merged = append(merged, without[at])
				at++
			}
			merged = append(merged, with)
		}
		h.sums, h.spare = append(merged, without[at:]...), without
	}
	return h.sums
}
