package partition

import (
	"cmp"
	"math/bits"
	"slices"
)

// Ranked is an item's place with what it is ranked by, kept together for the sort's sake.
type Ranked struct {
	Key  uint64
	Item int32
}

// digit is how many bits one has.
const digit = 11

// Rank sorts by key, and those with one key by tie. It goes digit by digit, the last first, by as many as tell about
// all keys apart, and compares those that these have alike: comparisons of thousands of loads would take most of a
// partition's time.
func Rank(all []Ranked, tie func(a, b int32) int) {
	differs := uint64(0)
	for i := range all {
		differs |= all[i].Key ^ all[0].Key
	}
	top := bits.Len64(differs)
	from, to := all, make([]Ranked, len(all))
	low := max(top-digits(len(all))*digit, 0) // what is below it is compared
	for at := low; at < top; at += digit {
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
	if len(all) > 0 && &from[0] != &all[0] {
		copy(all, from)
	}
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end].Key>>low == all[i].Key>>low {
			end++
		}
		if end > i+1 {
			slices.SortFunc(all[i:end], func(a, b Ranked) int {
				if a.Key != b.Key {
					return cmp.Compare(a.Key, b.Key)
				}
				return tie(a.Item, b.Item)
			})
		}
		i = end
	}
}

// digits is how many tell about all of so many keys apart.
func digits(n int) int { return (bits.Len(uint(n)) + 8 + digit - 1) / digit }
