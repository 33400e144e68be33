package partition

import (
	"math/bits"
	"slices"
)

// Ranked is an item's place with what it is ranked by, kept together for the sort's sake.
type Ranked struct {
	Key  uint64
	Item int32
}

// digit is how many bits one has: of 8 and 11, too, it is the quickest for a thousand to a hundred thousand loads.
const digit = 9

// Rank sorts by key, and those with one key by tie. It goes digit by digit, the last first, and leaves out digits that all have alike:
// comparisons of thousands of loads would take most of a partition's time.
func Rank(all []Ranked, tie func(a, b int32) int) {
	differs := uint64(0)
	for i := range all {
		differs |= all[i].Key ^ all[0].Key
	}
	from, to := all, make([]Ranked, len(all))
	for at := 0; differs>>at != 0; at += digit {
		at += bits.TrailingZeros64(differs >> at) // all have these alike
		var starts [1<<digit + 1]int32
		for i := range from {
			starts[from[i].Key>>at%(1<<digit)+1]++
		}
		for d := 1; d < len(starts); d++ {
			starts[d] += starts[d-1]
		}
		for i := range from {
			d := from[i].Key >> at % (1 << digit)
			to[starts[d]] = from[i]
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
