package normalize

import (
	"fmt"
	"math"
	"slices"
)

// Robust measures each value from its metric's median in interquartile ranges: (x - median) / IQR. Quartiles are the
// medians of the two halves, the middle value left out when their number is odd. A metric whose IQR is 0, or that has
// one value, becomes 0.
//
// Half of the values are then below 0, which no index takes. A positiveOffset e lifts all metrics by the same
// -min + e*(max-min), with min and max over all metrics together, so that the smallest value becomes e*(max-min). When
// every value is the same (all of them 0) that leaves 0, not e: clusters that nothing tells apart have no load, and a
// partition spreads them by number; a load of e for each would ask for as many replicas as there are clusters.
func Robust(cols []Column, positiveOffset *float64) ([]Column, error) {
	if err := check(cols); err != nil {
		return nil, err
	}
	if e := positiveOffset; e != nil && !(*e >= 0 && *e <= math.MaxFloat64) {
		return nil, fmt.Errorf("offsetting robust metrics by %v: positiveOffset is a share of their range, 0 or more: 0.01 is usual", *e)
	}
	out := blank(cols)
	var sorted []float64
	for i, c := range cols {
		sorted = append(sorted[:0], c.Values...)
		slices.Sort(sorted)
		scale(out[i].Values, c.Values, sorted)
	}
	if positiveOffset != nil {
		lift(out, *positiveOffset)
	}
	if err := checkScaled(out, "divide it in its query, or use the reference normalizer"); err != nil {
		return nil, err
	}
	return out, nil
}

func scale(out, values, sorted []float64) {
	n := len(sorted)
	if n < 2 {
		return
	}
	iqr := median(sorted[(n+1)/2:]) - median(sorted[:n/2])
	if iqr == 0 {
		return
	}
	middle := median(sorted)
	for i, v := range values {
		out[i] = (v - middle) / iqr
	}
}

// lift rounds the product before it adds: fused multiply-add, which Go allows on some machines, would give others
// another last digit.
func lift(cols []Column, e float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range cols {
		for _, v := range c.Values {
			low, high = min(low, v), max(high, v)
		}
	}
	if !(low < high) {
		return
	}
	offset := float64(e*(high-low)) - low
	for _, c := range cols {
		for i := range c.Values {
			// Rounding may leave the smallest value a hair below 0 when e is 0.
			c.Values[i] = max(c.Values[i]+offset, 0)
		}
	}
}

// median of sorted values, the mean of the middle two when their number is even.
func median(sorted []float64) float64 {
	n := len(sorted)
	low, high := sorted[(n-1)/2], sorted[n/2]
	return low + (high-low)/2
}
