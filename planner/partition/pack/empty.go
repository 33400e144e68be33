package pack

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// Empty is the bins without the last, whose items the others took, none beyond full; nil: it was not found. It says how
// many steps are left. What is in a bin stays there as far as that leaves room: items go to where they fit, the rest is
// dealt anew with others, and at last each goes back to where it was that can.
func Empty(loads []plan.Load, bins []Bin, full plan.Load, steps int, seed uint64) ([]Bin, int) {
	last := len(bins) - 1
	w := newWalk(loads, seed)
	w.bins, w.full, w.steps = clone(bins)[:last], full, steps
	w.hand(bins[last].Items)
	if !w.settleAll() {
		return nil, max(w.steps, 0)
	}
	w.goBack(homes(loads, bins))
	return w.bins, max(w.steps, 0)
}

// hand puts each item, the heaviest first, where it fits best, and what fits nowhere where most room is.
func (w *walk) hand(items []int32) {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b int32) int { return cmp.Compare(w.loads[b], w.loads[a]) })
	var rest []int32
	for _, i := range items {
		best := -1
		for r := range w.bins {
			fits := w.bins[r].Load <= w.full-w.loads[i]
			if fits && (best < 0 || w.bins[r].Load > w.bins[best].Load) {
				best = r
			}
		}
		w.steps -= len(w.bins)
		if best < 0 {
			rest = append(rest, i)
			continue
		}
		w.put(i, best)
	}
	hot := least(w.bins)
	for _, i := range rest {
		w.put(i, hot)
	}
}

func (w *walk) put(i int32, r int) {
	w.bins[r].Items = append(w.bins[r].Items, i)
	w.bins[r].Load += w.loads[i]
}

// homes are the bins that items are in, -1 for those of the last.
func homes(loads []plan.Load, bins []Bin) []int {
	home := make([]int, len(loads))
	for r, b := range bins {
		for _, i := range b.Items {
			if home[i] = r; r == len(bins)-1 {
				home[i] = -1
			}
		}
	}
	return home
}

// goBack sends items home, the heaviest first: to room that is there, in exchange for one that is not at home there
// either, or with all that is with it, in exchange for all that is there, where more load is at home then.
func (w *walk) goBack(home []int) {
	for again := true; again && w.steps > 0; {
		again = false
		for _, a := range w.away(home) {
			again = w.goesBack(a, home) || w.allGo(a, home) || again
		}
	}
}

// place is an item in a bin.
type place struct {
	item int32
	bin  int
}

// away are the items that have a home and are elsewhere, the heaviest first.
func (w *walk) away(home []int) (all []place) {
	for r, b := range w.bins {
		for _, i := range b.Items {
			if home[i] >= 0 && home[i] != r {
				all = append(all, place{i, r})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(w.loads[b.item], w.loads[a.item]), cmp.Compare(a.item, b.item))
	})
	return all
}

// allGo reports whether two bins exchanged what they have.
func (w *walk) allGo(a place, home []int) bool {
	r, h := a.bin, home[a.item]
	here, there := &w.bins[r], &w.bins[h]
	ours, gain := w.sumOf(here.Items, home, r, h)
	theirs, gainThere := w.sumOf(there.Items, home, h, r)
	w.steps -= len(here.Items) + len(there.Items)
	fits := here.Load-ours <= w.full-theirs && there.Load-theirs <= w.full-ours
	if gain+gainThere <= 0 || !fits {
		return false
	}
	here.Items, there.Items = there.Items, here.Items
	here.Load, there.Load = here.Load-ours+theirs, there.Load-theirs+ours
	return true
}

// sumOf is the load of items, and how much more of it would be at home in another bin.
func (w *walk) sumOf(items []int32, home []int, in, other int) (sum, gain plan.Load) {
	for _, i := range items {
		sum += w.loads[i]
		switch home[i] {
		case in:
			gain -= w.loads[i]
		case other:
			gain += w.loads[i]
		}
	}
	return sum, gain
}

// goesBack reports whether one went home.
func (w *walk) goesBack(a place, home []int) bool {
	from, to := &w.bins[a.bin], &w.bins[home[a.item]]
	at := slices.Index(from.Items, a.item)
	if at < 0 {
		return false // it was exchanged for another one
	}
	load := w.loads[a.item]
	if to.Load <= w.full-load {
		w.steps--
		from.Items, from.Load = slices.Delete(from.Items, at, at+1), from.Load-load
		w.put(a.item, home[a.item])
		return true
	}
	for k, b := range to.Items {
		w.steps--
		theirs := w.loads[b]
		if fits := to.Load-theirs <= w.full-load && from.Load-load <= w.full-theirs; home[b] != home[a.item] && fits {
			from.Items[at], to.Items[k] = b, a.item
			from.Load, to.Load = from.Load-load+theirs, to.Load-theirs+load
			return true
		}
	}
	return false
}
