package measure

import (
	"time"

	"ballast/planner/measure/lastgood"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// NewLastGood is what to keep of a table, given what was kept before. Clusters that are gone are forgotten; a refused
// column stays as it was. Values are rounded before they are stored, so that the leader that measured them and the one
// that reads them hold the same.
func NewLastGood(t Table, last LastGood) LastGood {
	last = last.NotAfter(t.At)
	old := last.Rows(t.Shards)
	next := LastGood{IDs: make([]string, len(t.Shards)), Columns: make([]LastColumn, len(t.Columns))}
	for i, s := range t.Shards {
		next.IDs[i] = s.ID
	}
	for c, column := range t.Columns {
		if column.names != nil {
			next.Names = column.names
		}
		before := last.Column(column.ID)
		kept := lastgood.NewColumn(column.ID, len(t.Shards))
		kept.DroppedSince = column.droppedSince.UTC().Truncate(time.Second)
		kept.DropsFirst = column.dropsFirst.UTC().Truncate(time.Second)
		kept.Low = keptLow(column.low, t.At)
		for i, flag := range column.Flags {
			switch {
			case flag == Fresh && !column.Refused:
				kept.Values[i], kept.Measured[i] = lastgood.Round(column.Values[i]), true
				kept.At[i] = scraped(column.SampledAt[i], t.At)
			case before != nil && old[i] >= 0 && !column.ended(i):
				kept.Hold(i, column.heldOr(i, before.HeldFor(old[i])))
				kept.Values[i], kept.At[i] = before.Values[old[i]], before.At[old[i]]
				kept.Measured[i] = column.Refused && before.Measured[old[i]] && !column.standings.of(i).Moved
			}
		}
		next.Columns[c] = kept
	}
	return next
}

// TableOf is what is kept of those metrics: each cluster's last good value, else the metric's noData. It is frozen.
func TableOf(l LastGood, metrics []poll.Metric) Table {
	t := Table{Shards: make([]plan.Shard, len(l.IDs)), Columns: make([]Column, 0, len(metrics)), Frozen: true}
	for i, id := range l.IDs {
		t.Shards[i].ID = id
	}
	for _, m := range metrics {
		column, last := newColumn(m, len(l.IDs)), l.Column(m.ID)
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
