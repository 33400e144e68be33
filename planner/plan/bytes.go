package plan

import (
	"fmt"
	"math"
	"math/bits"
)

// Bytes is memory.
type Bytes int64

// NewBytes refuses what no memory has: a number below 0, or one that is not finite or beyond an int64.
func NewBytes(b float64) (Bytes, error) {
	if !(b >= 0 && b < math.MaxInt64) {
		return 0, fmt.Errorf("memory of %v bytes: it is between 0 and 2^63", b)
	}
	return Bytes(math.Round(b)), nil
}

// Plus stops at the most there can be instead of wrapping. Both are 0 or more.
func (b Bytes) Plus(other Bytes) Bytes {
	if other > math.MaxInt64-b {
		return math.MaxInt64
	}
	return b + other
}

// Share is a share of it, in LoadUnit, rounded down; it stops at the most there can be.
func (b Bytes) Share(of Load) Bytes {
	hi, lo := bits.Mul64(uint64(b), uint64(of))
	if hi >= uint64(LoadUnit) {
		return math.MaxInt64
	}
	quo, _ := bits.Div64(hi, lo, uint64(LoadUnit))
	return Bytes(min(quo, math.MaxInt64))
}

// String is for people: three digits that count, and the unit.
func (b Bytes) String() string {
	v, unit := float64(b), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1024, larger
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
