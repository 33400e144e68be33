package partition

import "slices"

// Ranked is an item's place with what it is ranked by, kept together for the sort's sake.
type Ranked struct {
	Key  uint64
	Item int32
}

// Rank sorts by key, and those with one key by tie. It goes digit by digit, the last first, and leaves out digits that all have alike:
// comparisons of thousands of loads would take most of a partition's time.
func Rank(all []Ranked, tie func(a, b int32) int) {
	const bits = 8
	from, to := all, make([]Ranked, len(all))
	for shift := 0; shift < 64; shift += bits {
		var starts [1<<bits + 1]int
		digit := func(r Ranked) int { return int(r.Key>>shift) & (1<<bits - 1) }
		for _, r := range from {
			starts[digit(r)+1]++
		}
		if slices.Contains(starts[:], len(all)) {
			continue
		}
		for d := 1; d < len(starts); d++ {
			starts[d] += starts[d-1]
		}
		for _, r := range from {
			d := digit(r)
			to[starts[d]] = r
			starts[d]++
		}
		from, to = to, from
	}
	copy(all, from)
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end].Key == all[i].Key {
			end++
		}
		slices.SortFunc(all[i:end], func(a, b Ranked) int { return tie(a.Item, b.Item) })
		i = end
	}
}
