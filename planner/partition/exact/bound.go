package exact

import "math"

// Bound is what is known of a least value: none is below Least, and Best was found.
type Bound struct {
	Least int64
	Best  int64
}

// Proved reports whether Best is the least there is.
func (b Bound) Proved() bool { return b.Least == b.Best }

// None is the Best of a Bound for which nothing was found.
const None = math.MaxInt64
