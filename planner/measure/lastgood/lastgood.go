// Package lastgood has the last values of each metric and cluster that could be believed, and their form in the
// history.
package lastgood

import (
	"math"
	"slices"
	"strconv"
	"time"

	"ballast/planner/plan"
)

// Values are the last value of every metric and cluster that could be believed. They are kept in the history, so that a
// new leader, too, holds what it cannot measure. IDs are sorted and every column has a value for each. Names has for
// each the key of the name that is its, where a metric goes by names.
type Values struct {
	IDs     []string `json:"ids,omitempty"`
	Names   []string `json:"names,omitempty"`
	Columns []Column `json:"columns,omitempty"`
}

// Column is a metric's last good values. At is when a value was scraped, in Unix seconds; 0 says that there is
// none. Measured marks the clusters that had a value of their own at the last answer that was not refused: those,
// minCoverage asks for. DroppedSince is when a fall of the total was first refused, DropsFirst when one first was in
// the last day, and Low what is remembered of a low coverage. Held is for how many seconds others were measured and a
// cluster was not; nil: each was.
type Column struct {
	ID           string    `json:"id"`
	Values       []float64 `json:"values"`
	At           []int64   `json:"at"`
	Measured     []bool    `json:"measured"`
	DroppedSince time.Time `json:"droppedSince,omitzero"`
	DropsFirst   time.Time `json:"dropsFirst,omitzero"`
	Held         []int64   `json:"held,omitempty"`
	Low          Low       `json:"low,omitzero"`
}

// Low is a coverage that was refused: First by when it was in the last day, Since by when it fell no further, and To by
// how many clusters had a value then.
type Low struct {
	First time.Time `json:"lowFirst,omitzero"`
	Since time.Time `json:"lowSince,omitzero"`
	To    int       `json:"lowTo,omitempty"`
}

// NotAfter has no value of the future: a clock that was ahead once kept each from growing old until it was reached
// again.
func (l Values) NotAfter(now time.Time) Values {
	latest := now.Unix()
	for k, column := range l.Columns {
		if !slices.ContainsFunc(column.At, func(at int64) bool { return at > latest }) {
			continue
		}
		column.At = slices.Clone(column.At)
		for i := range column.At {
			column.At[i] = min(column.At[i], latest)
		}
		l.Columns = slices.Clone(l.Columns)
		l.Columns[k] = column
	}
	return l
}

// NewColumn is a metric without a value of so many clusters.
func NewColumn(id string, n int) Column {
	return Column{ID: id, Values: make([]float64, n), At: make([]int64, n), Measured: make([]bool, n)}
}

// Hold notes for how long a value is held.
func (l *Column) Hold(i int, seconds int64) {
	if seconds == 0 {
		return
	}
	if l.Held == nil {
		l.Held = make([]int64, len(l.At))
	}
	l.Held[i] = seconds
}

// HeldFor is for how many seconds a value has been held.
func (l *Column) HeldFor(row int) int64 {
	if len(l.Held) == 0 {
		return 0
	}
	return l.Held[row]
}

// Rows finds clusters: -1 for one that is not known.
func (l Values) Rows(shards []plan.Shard) []int {
	at := make([]int, len(shards))
	k := 0
	for i, s := range shards { // both are sorted
		for k < len(l.IDs) && l.IDs[k] < s.ID {
			k++
		}
		at[i] = -1
		if k < len(l.IDs) && l.IDs[k] == s.ID {
			at[i] = k
		}
	}
	return at
}

// Column is a metric's; nil: nothing is known of it.
func (l Values) Column(id string) *Column {
	for i := range l.Columns {
		if l.Columns[i].ID == id {
			return &l.Columns[i]
		}
	}
	return nil
}

// Round keeps seven significant digits, an error of at most 5e-7, where a plan shows three. Within the powers of ten
// that a float64 has exactly there is no need to print the number, which takes most of the time for a large fleet.
func Round(v float64) float64 {
	const digits, exact = 7, 22
	if at := digits - 1 - int(math.Floor(math.Log10(math.Abs(v)))); at >= 0 && at <= exact {
		scale := math.Pow10(at)
		return math.Round(v*scale) / scale
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64) // even the largest float64 stays one
	return short
}
