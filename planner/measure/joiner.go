package measure

import (
	"time"

	"ballast/planner/discover"
	"ballast/planner/measure/match"
	"ballast/planner/poll"
)

// Options are the bounds within which an answer is believed.
type Options struct {
	MinCoverage float64       // share of the clusters measured last time that must be measured now, 0 to 1
	MaxDrop     float64       // share by which the total of the clusters measured both times may fall at once, 0 to 1
	MaxAge      time.Duration // a sample older than that is no measurement; 0 is any age
	Standings   Standings     // of the fleet's clusters
}

// joiner is what all columns of one table share.
type joiner struct {
	fleet    discover.Fleet
	carriers []int
	indexes  map[poll.MatchTo]match.Index
	rows     []int    // by cluster: its row in the last good columns, or -1
	names    []string // by row: the key of the name that was the cluster's
	options  Options
	now      time.Time
	metrics  []poll.Metric
	fetched  []poll.Fetched
	room     gathered // for one metric after the other
}

// metricJoin makes the column of one metric, by what the table's columns share and its last good values.
type metricJoin struct {
	*joiner
	metric poll.Metric
	last   *LastColumn // nil: there are none
}

func answerTo(m poll.Metric, fetched []poll.Fetched) poll.Fetched {
	for _, f := range fetched {
		if f.Metric == m.ID {
			return f
		}
	}
	return poll.Fetched{Metric: m.ID, Err: "it was not asked for"}
}

// carries reports whether a cluster carries load at all.
func (j *joiner) carries(i int) bool { return j.carriers[i] == i && !j.fleet.Clusters[i].Skip }

// expected is how many clusters a metric may have a value of.
func (j *joiner) expected(c Column) int {
	n := 0
	for i := range j.fleet.Clusters {
		if j.carries(i) && !j.unshown(&c, i) {
			n++
		}
	}
	return n
}

// unshown reports whether a metric cannot say anything of a cluster, whatever Prometheus has: it is neither measured
// nor lost.
func (j *joiner) unshown(c *Column, i int) bool {
	return c.byDestination && j.options.Standings.of(i).Unshown
}

// old reports whether a sample is older than is believed.
func (j *joiner) old(at time.Time) bool {
	return j.options.MaxAge > 0 && !at.IsZero() && j.now.Sub(at) > j.options.MaxAge
}

// lastRow is a cluster's row among the last values; false: there is none.
func (j *metricJoin) lastRow(i int) (row int, was bool) {
	row = j.rows[i]
	return row, j.last != nil && row >= 0
}

// measured reports whether a cluster that carries load had a value last time.
func (j *metricJoin) measured(i int) bool {
	row, was := j.lastRow(i)
	return was && j.last.Measured[row] && j.carries(i)
}
