package normalize

import (
	"fmt"
	"math"
	"strings"
)

// UnanchoredError says which metrics have values but no reference to divide them by: they were added, or had no data,
// when the first plan was made. Metrics is in the order of the columns; Totals are their fleet totals now.
//
// It is harmless to react by taking these totals as their references (maps.Copy(refs, e.Totals)) and to ask again: the
// metric then weighs what it would have weighed had it been there on the first day, and no other metric changes. The
// fleet's load grows by that metric's weight, once. Only a metric that reaches the clusters one by one (an exporter
// being rolled out) is better anchored when it covers the fleet, which is what poll's minCoverage waits for.
type UnanchoredError struct {
	Metrics []string
	Totals  map[string]float64
}

// Error names each metric and what its reference could be.
func (e *UnanchoredError) Error() string {
	var b strings.Builder
	for i, m := range e.Metrics {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "normalizing metric %q: it totals %v but has no reference, for it had no data when the references were taken: "+
			"give it the reference %[2]v, or leave it out of the index", m, e.Totals[m])
	}
	return b.String()
}

// Reference divides each metric by its reference, which is in the metric's unit: 1 is then the whole fleet on the day
// the references were taken. A metric whose reference is 0 or missing stays 0 while it has no values, and is reported
// as an *UnanchoredError, all such metrics at once, as soon as it has.
func Reference(cols []Column, refs map[string]float64) ([]Column, error) {
	if err := check(cols); err != nil {
		return nil, err
	}
	var unanchored UnanchoredError
	out := blank(cols)
	for i, c := range cols {
		ref := refs[c.ID]
		if !(ref >= 0 && ref <= math.MaxFloat64) {
			return nil, fmt.Errorf("normalizing metric %q: its reference is %v, and a reference is a fleet total above 0: correct it, or remove it to take today's", c.ID, ref)
		}
		if ref == 0 {
			unanchored.add(c)
			continue
		}
		for j, v := range c.Values {
			out[i].Values[j] = v / ref
		}
	}
	if len(unanchored.Metrics) > 0 {
		return nil, &unanchored
	}
	if err := checkScaled(out, "raise its reference"); err != nil {
		return nil, err
	}
	return out, nil
}

func (e *UnanchoredError) add(c Column) {
	t := total(c)
	if t == 0 {
		return
	}
	if e.Totals == nil {
		e.Totals = map[string]float64{}
	}
	e.Metrics = append(e.Metrics, c.ID)
	e.Totals[c.ID] = t
}

func total(c Column) float64 {
	var sum float64
	for _, v := range c.Values {
		sum += v
	}
	return sum
}
