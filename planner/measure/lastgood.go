package measure

import (
	"math"
	"slices"
	"strconv"
	"time"

	"ballast/planner/plan"
	"ballast/planner/poll"
)

// LastGood is the last value of every metric and cluster that could be believed. It is kept in the history, so that a
// new leader, too, holds what it cannot measure. IDs are sorted and every column has a value for each. Names has for each
// the key of the name that is its, where a metric goes by names.
type LastGood struct {
	IDs     []string     `json:"ids,omitempty"`
	Names   []string     `json:"names,omitempty"`
	Columns []LastColumn `json:"columns,omitempty"`
}

// LastColumn is a metric's last good values. At is when a value was scraped, in Unix seconds; 0 says that there is
// none. Measured marks the clusters that had a value of their own at the last answer that was not refused: those,
// minCoverage asks for. DroppedSince is when a fall of the total was first refused, DropsFirst when one first was in
// the last day, and Low what is remembered of a low coverage. Held is for how many seconds others were measured and a
// cluster was not; nil: each was.
type LastColumn struct {
	ID           string    `json:"id"`
	Values       []float64 `json:"values"`
	At           []int64   `json:"at"`
	Measured     []bool    `json:"measured"`
	DroppedSince time.Time `json:"droppedSince,omitzero"`
	DropsFirst   time.Time `json:"dropsFirst,omitzero"`
	Held         []int64   `json:"held,omitempty"`
	Low          Low       `json:"low,omitzero"`
}

// until has no value of the future: a clock that was ahead once kept each from growing old until it was reached again.
func (g LastGood) until(now time.Time) LastGood {
	latest := now.Unix()
	for k, column := range g.Columns {
		if !slices.ContainsFunc(column.At, func(at int64) bool { return at > latest }) {
			continue
		}
		column.At = slices.Clone(column.At)
		for i := range column.At {
			column.At[i] = min(column.At[i], latest)
		}
		g.Columns = slices.Clone(g.Columns)
		g.Columns[k] = column
	}
	return g
}

// NewLastGood is what to keep of a table, given what was kept before. Clusters that are gone are forgotten; a refused
// column stays as it was. Values are rounded before they are stored, so that the leader that measured them and the one
// that reads them hold the same.
func NewLastGood(t Table, last LastGood) LastGood {
	last = last.until(t.At)
	old := last.rows(t)
	next := LastGood{IDs: make([]string, len(t.Shards)), Columns: make([]LastColumn, len(t.Columns))}
	for i, s := range t.Shards {
		next.IDs[i] = s.ID
	}
	for c, column := range t.Columns {
		if column.names != nil {
			next.Names = column.names
		}
		before := last.column(column.ID)
		kept := newLastColumn(column.ID, len(t.Shards))
		kept.DroppedSince = column.droppedSince.UTC().Truncate(time.Second)
		kept.DropsFirst = column.dropsFirst.UTC().Truncate(time.Second)
		kept.Low = column.low.kept(t.At)
		for i, flag := range column.Flags {
			switch {
			case flag == Fresh && !column.Refused:
				kept.Values[i], kept.Measured[i] = round(column.Values[i]), true
				kept.At[i] = scraped(column.SampledAt[i], t.At)
			case before != nil && old[i] >= 0 && !column.ended(i):
				kept.hold(i, column.heldOr(i, before.held(old[i])))
				kept.Values[i], kept.At[i] = before.Values[old[i]], before.At[old[i]]
				kept.Measured[i] = column.Refused && before.Measured[old[i]] && !column.standings.of(i).Moved
			}
		}
		next.Columns[c] = kept
	}
	return next
}

func newLastColumn(id string, n int) LastColumn {
	return LastColumn{ID: id, Values: make([]float64, n), At: make([]int64, n), Measured: make([]bool, n)}
}

// hold notes for how long a value is held.
func (l *LastColumn) hold(i int, seconds int64) {
	if seconds == 0 {
		return
	}
	if l.Held == nil {
		l.Held = make([]int64, len(l.At))
	}
	l.Held[i] = seconds
}

// scraped is when a value was scraped; where that is unknown it is when it was asked for.
func scraped(sampledAt int64, asked time.Time) int64 {
	if sampledAt != 0 {
		return sampledAt / 1000
	}
	return asked.Unix()
}

// Table is what is kept of those metrics: each cluster's last good value, else the metric's noData. It is frozen.
func (l LastGood) Table(metrics []poll.Metric) Table {
	t := Table{Shards: make([]plan.Shard, len(l.IDs)), Columns: make([]Column, 0, len(metrics)), Frozen: true}
	for i, id := range l.IDs {
		t.Shards[i].ID = id
	}
	for _, m := range metrics {
		column, last := newColumn(m, len(l.IDs)), l.column(m.ID)
		for i := range l.IDs {
			switch {
			case last != nil && last.At[i] != 0:
				column.Values[i], column.SampledAt[i], column.Flags[i] = last.Values[i], last.At[i]*1000, Held
			case m.NoData != nil:
				column.Values[i], column.Flags[i] = *m.NoData, NoData
			}
		}
		t.Columns = append(t.Columns, column)
	}
	return t
}

// rows finds the table's clusters: -1 for one that is not known.
func (l LastGood) rows(t Table) []int {
	at := make([]int, len(t.Shards))
	k := 0
	for i, s := range t.Shards { // both are sorted
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

func (l LastGood) column(id string) *LastColumn {
	for i := range l.Columns {
		if l.Columns[i].ID == id {
			return &l.Columns[i]
		}
	}
	return nil
}

// round keeps seven significant digits, an error of at most 5e-7, where a plan shows three. Within the powers of ten
// that a float64 has exactly there is no need to print the number, which takes most of the time for a large fleet.
func round(v float64) float64 {
	const digits, exact = 7, 22
	if at := digits - 1 - int(math.Floor(math.Log10(math.Abs(v)))); at >= 0 && at <= exact {
		scale := math.Pow10(at)
		return math.Round(v*scale) / scale
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64) // even the largest float64 stays one
	return short
}
