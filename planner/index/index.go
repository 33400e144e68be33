// Package index makes one load of a cluster's normalized metrics.
package index

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ballast/planner/normalize"
	"ballast/planner/plan"
)

// PNorm is each cluster's weighted p-norm (sum w*x^p)^(1/p) over its metrics, in fixed point, in the columns' order of
// clusters. With p = 1 loads add up; the larger p, the more the largest metric alone counts. p is 1 or more, weights
// are 0 or more, and metrics and weights name each other exactly once.
//
// The order of the columns does not matter: metrics are added up by name.
func PNorm(cols []normalize.Column, p float64, weights map[string]float64) ([]plan.Load, error) {
	if !(p >= 1 && p <= math.MaxFloat64) {
		return nil, fmt.Errorf("indexing by a p-norm of p %v: p is a finite number of 1 or more: 1 adds metrics up, 2 favours the larger ones", p)
	}
	terms, err := match(cols, weights)
	if err != nil {
		return nil, err
	}
	if err := checkValues(terms); err != nil {
		return nil, err
	}
	terms = slices.DeleteFunc(terms, func(t term) bool { return t.weight == 0 })
	return fix(norm(terms, p, len(cols[0].Values)), terms)
}

// term is a metric with its weight.
type term struct {
	id     string
	weight float64
	values []float64
}

// match pairs columns with weights, by name, and reports all that do not pair.
func match(cols []normalize.Column, weights map[string]float64) ([]term, error) {
	var errs []error
	terms := make([]term, 0, len(cols))
	seen := make(map[string]bool, len(cols))
	for _, c := range cols {
		w, weighted := weights[c.ID]
		switch {
		case seen[c.ID]:
			errs = append(errs, fmt.Errorf("indexing metric %q: it is there twice: rename or remove one", c.ID))
		case !weighted:
			errs = append(errs, fmt.Errorf("indexing metric %q: it has no weight: give it one (0 to ignore it), or stop polling it", c.ID))
		case !(w >= 0 && w <= math.MaxFloat64):
			errs = append(errs, fmt.Errorf("indexing metric %q: its weight is %v, and a weight is a finite number of 0 or more", c.ID, w))
		case len(c.Values) != len(cols[0].Values):
			errs = append(errs, fmt.Errorf("indexing metric %q: it has %d values where metric %q has %d: give every cluster a value in both",
				c.ID, len(c.Values), cols[0].ID, len(cols[0].Values)))
		}
		seen[c.ID] = true
		terms = append(terms, term{id: c.ID, weight: w, values: c.Values})
	}
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		if !seen[id] {
			errs = append(errs, fmt.Errorf("indexing metric %q: it has a weight but no values: poll it, or remove its weight", id))
		}
	}
	if len(cols) == 0 && len(weights) == 0 {
		errs = append(errs, errors.New("indexing without metrics: poll at least one metric and give it a weight"))
	}
	slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.id, b.id) })
	return terms, errors.Join(errs...)
}

func checkValues(terms []term) error {
	for _, t := range terms {
		for i, v := range t.values {
			if v >= 0 && v <= math.MaxFloat64 {
				continue
			}
			mend := "normalize it first"
			if v < 0 {
				mend = "give the robust normalizer a positiveOffset, such as 0.01"
			}
			return fmt.Errorf("indexing metric %q: value %d of %d is %v, and an index takes finite values of 0 or more: %s", t.id, i+1, len(t.values), v, mend)
		}
	}
	return nil
}

// norm rounds each product before adding it (the conversions), since fused multiply-add would give other machines
// another last digit.
func norm(terms []term, p float64, clusters int) []float64 {
	sums := make([]float64, clusters)
	switch p {
	case 1:
		for _, t := range terms {
			for i, v := range t.values {
				sums[i] += float64(t.weight * v)
			}
		}
	case 2:
		for _, t := range terms {
			for i, v := range t.values {
				sums[i] += float64(t.weight * float64(v*v))
			}
		}
		for i, s := range sums {
			sums[i] = math.Sqrt(s)
		}
	default:
		powerSums(sums, terms, p)
	}
	return sums
}

// powerSums takes each cluster's largest metric out of its sum first: 0.001 to the power of 200 is 0 in float64.
func powerSums(sums []float64, terms []term, p float64) {
	largest := make([]float64, len(sums))
	for _, t := range terms {
		for i, v := range t.values {
			largest[i] = max(largest[i], v)
		}
	}
	for _, t := range terms {
		for i, v := range t.values {
			if v > 0 {
				sums[i] += float64(t.weight * math.Pow(v/largest[i], p))
			}
		}
	}
	for i, s := range sums {
		sums[i] = largest[i] * math.Pow(s, 1/p)
	}
}

// fix turns indexes into fixed point and makes sure that the whole fleet's load still fits.
func fix(indexes []float64, terms []term) ([]plan.Load, error) {
	loads := make([]plan.Load, len(indexes))
	for i, x := range indexes {
		l, err := plan.NewLoad(x)
		if err != nil {
			return nil, fmt.Errorf("indexing cluster %d of %d, mostly by metric %q: %w", i+1, len(indexes),
				heaviest(terms, i), err)
		}
		loads[i] = l
	}
	if _, err := plan.SumLoads(loads...); err != nil {
		return nil, fmt.Errorf("indexing %d clusters: %w", len(loads), err)
	}
	return loads, nil
}

// heaviest names the metric that adds the most to a cluster's load.
func heaviest(terms []term, cluster int) string {
	return slices.MaxFunc(terms, func(a, b term) int {
		return cmp.Compare(a.weight*a.values[cluster], b.weight*b.values[cluster])
	}).id
}
