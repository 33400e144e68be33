package index

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ballast/planner/normalize"
	"ballast/planner/plan"
)

// Bytes is the memory that each cluster takes: the sum of its metrics as they are, each times its weight in bytes.
// Metrics without a weight take none. Columns and clusters are as of PNorm.
func Bytes(cols []normalize.Column, weights map[string]float64) ([]plan.Bytes, error) {
	var terms []term
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		at := slices.IndexFunc(cols, func(c normalize.Column) bool { return c.ID == id })
		switch w := weights[id]; {
		case at < 0:
			errs = append(errs, fmt.Errorf("adding up memory by metric %q: it has a weight but no values: poll it, or remove its weight", id))
		case !(w >= 0 && w <= math.MaxFloat64):
			errs = append(errs, fmt.Errorf("adding up memory by metric %q: its weight is %v, and a weight is a finite number of 0 or more", id, w))
		default:
			terms = append(terms, term{id: id, weight: w, values: cols[at].Values})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := checkValues(terms); err != nil {
		return nil, err
	}
	if len(cols) == 0 {
		return nil, nil
	}
	out, total := make([]plan.Bytes, len(cols[0].Values)), plan.Bytes(0)
	for i, sum := range norm(terms, 1, len(out)) {
		var err error
		if out[i], err = plan.NewBytes(sum); err != nil {
			return nil, fmt.Errorf("adding up the memory of cluster %d of %d, mostly by metric %q: %w", i+1, len(out),
				heaviest(terms, i), err)
		}
		if total = total.Plus(out[i]); total == math.MaxInt64 {
			return nil, fmt.Errorf("adding up the memory of %d clusters: it is beyond 2^63", len(out))
		}
	}
	return out, nil
}
