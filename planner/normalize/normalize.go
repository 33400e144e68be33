// Package normalize brings metrics of different units onto one scale, so that an index can add them up. Every function
// takes all metrics of the whole fleet and returns new columns; the input is never changed.
//
// Only Reference keeps loads additive (ballast's default): a cluster's share does not depend on who else is in the
// fleet. Robust and MinMax measure a cluster against the others, so that one cluster that joins with a load changes
// all.
package normalize

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Column is one metric over the whole fleet. All columns of a fleet are as long as each other and in the same order of
// clusters. Values are in the metric's own unit before normalizing, without a unit after.
type Column struct {
	ID     string
	Values []float64
}

// None keeps the values as they are and only refuses those that no index can use.
func None(cols []Column) ([]Column, error) {
	if err := check(cols); err != nil {
		return nil, err
	}
	out := blank(cols)
	for i, c := range cols {
		copy(out[i].Values, c.Values)
	}
	return out, nil
}

// MinMax maps each metric onto 0..1, its smallest value to 0 and its largest to 1. A metric that is the same everywhere
// tells no cluster from another and becomes 0.
func MinMax(cols []Column) ([]Column, error) {
	if err := check(cols); err != nil {
		return nil, err
	}
	out := blank(cols)
	for i, c := range cols {
		if len(c.Values) == 0 {
			continue
		}
		low, high := slices.Min(c.Values), slices.Max(c.Values)
		if low == high {
			continue
		}
		for j, v := range c.Values {
			out[i].Values[j] = (v - low) / (high - low)
		}
	}
	return out, nil
}

// OfLoaded normalizes the clusters that have a value above 0 in any metric, against each other alone; all others stay
// at 0. Without it, clusters without load decide by their number what the median and the smallest value are: where they
// are most of a fleet its interquartile range is 0, and no cluster has a load any more.
func OfLoaded(cols []Column, by func([]Column) ([]Column, error)) ([]Column, error) {
	if err := check(cols); err != nil {
		return nil, err
	}
	loaded := loadedOf(cols)
	some := make([]Column, len(cols))
	for i, c := range cols {
		some[i] = Column{ID: c.ID, Values: make([]float64, len(loaded))}
		for k, j := range loaded {
			some[i].Values[k] = c.Values[j]
		}
	}
	some, err := by(some)
	if err != nil {
		return nil, err
	}
	out := blank(cols)
	for i := range out {
		for k, j := range loaded {
			out[i].Values[j] = some[i].Values[k]
		}
	}
	return out, nil
}

// loadedOf are the clusters, by their place, that have a value above 0.
func loadedOf(cols []Column) (loaded []int) {
	if len(cols) == 0 {
		return nil
	}
	for j := range cols[0].Values {
		if slices.ContainsFunc(cols, func(c Column) bool { return c.Values[j] > 0 }) {
			loaded = append(loaded, j)
		}
	}
	return loaded
}

// check refuses what would spoil every cluster's load: values that are no measure of work, columns that do not line up,
// and a metric that is there twice. It reports the first such value of every metric.
func check(cols []Column) error {
	var errs []error
	for i, c := range cols {
		if len(c.Values) != len(cols[0].Values) {
			errs = append(errs, fmt.Errorf("normalizing metric %q: it has %d values where metric %q has %d: give every cluster a value in both",
				c.ID, len(c.Values), cols[0].ID, len(cols[0].Values)))
		}
		if slices.ContainsFunc(cols[:i], func(o Column) bool { return o.ID == c.ID }) {
			errs = append(errs, fmt.Errorf("normalizing metric %q: it is there twice: rename or remove one", c.ID))
		}
		if err := checkValues(c); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func checkValues(c Column) error {
	for i, v := range c.Values {
		if v >= 0 && v <= math.MaxFloat64 {
			continue
		}
		mend := "clamp it in its query, as in clamp_min(..., 0)"
		if math.IsNaN(v) || math.IsInf(v, 0) {
			mend = "let its query drop such samples, as (...) >= 0 < Inf does, and give the metric a noData"
		}
		return fmt.Errorf("normalizing metric %q: value %d of %d is %v, and only finite values of 0 or more measure work: %s",
			c.ID, i+1, len(c.Values), v, mend)
	}
	return nil
}

// checkScaled refuses results that left float64, which tiny divisors cause.
func checkScaled(cols []Column, mend string) error {
	for _, c := range cols {
		for i, v := range c.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("normalizing metric %q: value %d of %d is too large for float64 once scaled: %s",
					c.ID, i+1, len(c.Values), mend)
			}
		}
	}
	return nil
}

// blank returns columns of zeros in the shape of cols, on one backing array.
func blank(cols []Column) []Column {
	total := 0
	for _, c := range cols {
		total += len(c.Values)
	}
	values := make([]float64, total)
	out := make([]Column, len(cols))
	for i, c := range cols {
		n := len(c.Values)
		out[i] = Column{ID: c.ID, Values: values[:n:n]}
		values = values[n:]
	}
	return out
}
