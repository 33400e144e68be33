// Package measure turns what Prometheus said of a fleet into one value for each metric and cluster, and says of each
// value where it comes from.
package measure

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/discover"
	"ballast/planner/measure/match"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// Join gives every cluster a value for each metric: this answer's, else its last good one, else the metric's noData. A
// metric whose answer cannot be believed keeps its last good values, and the table is frozen; a cluster without a value
// never freezes the rest. Clusters with one server URL are one to Argo CD: the first that is reconciled carries the
// unit's value, the largest where they have their own, and the others 0. Series that name one cluster in two spellings
// are added up; two with the very same label refuse the metric, since its query does not aggregate by that label.
// The error is for metrics that are none: no metric at all, or two with one ID.
func Join(metrics []poll.Metric, fleet discover.Fleet, fetched []poll.Fetched, last LastGood, o Options, now time.Time) (Table, error) {
	if err := checkIDs(metrics); err != nil {
		return Table{}, err
	}
	last = last.NotAfter(now)
	t := Table{At: now, Shards: make([]plan.Shard, len(fleet.Clusters)), Columns: make([]Column, 0, len(metrics))}
	for i, c := range fleet.Clusters {
		t.Shards[i] = c.Shard
	}
	j := joiner{fleet: fleet, carriers: match.Carriers(fleet), indexes: map[poll.MatchTo]match.Index{},
		rows:  last.Rows(t.Shards),
		names: last.Names, options: o, now: now, metrics: metrics, fetched: fetched}
	samples := 0
	for _, m := range metrics {
		answer := answerTo(m, fetched)
		samples += len(answer.Samples)
		column, problems := (&metricJoin{&j, m, last.Column(m.ID)}).join(answer)
		if m.Match.To == poll.ToName {
			column.names = j.namesOf()
		}
		t.Columns = append(t.Columns, column)
		t.Problems = append(t.Problems, problems...)
		t.Frozen = t.Frozen || column.Refused
	}
	if samples == 0 && j.expected(Column{}) > 0 && !slices.ContainsFunc(fetched, func(f poll.Fetched) bool { return f.Err != "" }) {
		t.Frozen = true
		t.Problems = append(t.Problems, MetricProblem{Kind: NothingFound, Message: nothingAtAll})
	}
	return t, nil
}

const nothingAtAll = "no metric has a single series: does Prometheus scrape the application-controller? With the Helm chart set " +
	"controller.metrics.enabled=true and controller.metrics.serviceMonitor.enabled=true, and see that its targets have the labels pod and namespace"

func checkIDs(metrics []poll.Metric) error {
	if len(metrics) == 0 {
		return fmt.Errorf("joining metrics to clusters: there is no metric")
	}
	for i, m := range metrics {
		if slices.ContainsFunc(metrics[:i], func(o poll.Metric) bool { return o.ID == m.ID }) {
			return fmt.Errorf("joining metrics to clusters: the ID %q stands twice", m.ID)
		}
	}
	return nil
}

func (j *metricJoin) join(answer poll.Fetched) (Column, []MetricProblem) {
	var problems []MetricProblem
	report := func(kind ProblemKind, message string) {
		problems = append(problems, MetricProblem{j.metric.ID, kind,
			fmt.Sprintf("metric %q: %s", j.metric.ID, message)})
	}
	for _, w := range answer.Warnings {
		report(QueryWarned, w)
	}
	if answer.Err != "" {
		report(QueryFailed, answer.Err)
		return j.refuse(), problems
	}
	g := j.gather(answer)
	g.report(report)
	if g.duplicate != "" {
		report(DuplicateSeries, fmt.Sprintf("two series have %s=%q: aggregate the query by that label",
			j.metric.Match.Label, g.duplicate))
		return j.refuse(), problems
	}
	column := j.choose(g)
	kind, message, low := j.judge(column)
	if kind != "" {
		report(kind, message)
		refused := j.refuse()
		if kind == TotalDropped {
			refused.droppedSince, refused.dropsFirst = j.droppedSince(), j.dropsFirst()
		}
		refused.low = low
		return refused, problems
	}
	j.tellHeld(column, g, report)
	column.low, column.dropsFirst = low, j.dropsBefore()
	return column, problems
}

// choose gives each cluster the best value there is.
func (j *metricJoin) choose(g gathered) Column {
	column := newColumn(j.metric, len(j.fleet.Clusters))
	oldest := int64(math.MinInt64)
	if j.options.MaxAge > 0 {
		oldest = j.now.Add(-j.options.MaxAge).UnixMilli()
	}
	for i := range j.fleet.Clusters {
		told := g.got[i] && !j.unshown(&column, i)
		young := g.at[i] == 0 || g.at[i] >= oldest
		if told && young && j.carries(i) {
			column.Values[i], column.SampledAt[i], column.Flags[i] = g.values[i], g.at[i], Fresh
			j.mayOnlyRise(&column, i)
		}
	}
	column.held = j.heldFor(column)
	for i := range j.fleet.Clusters {
		if column.Flags[i] == Fresh {
			continue
		}
		if j.fallBack(&column, i); column.Flags[i] == Missing && g.got[i] {
			column.Values[i], column.SampledAt[i], column.Flags[i] = g.values[i], g.at[i], Stale
		}
	}
	column.assume()
	return column
}

// assume gives the clusters of which a metric can say nothing, and never said anything, the middle of those that have a
// value: without one they would look light, and receive nothing but others.
func (c *Column) assume() {
	unknown := func(i int) bool { return c.Flags[i] == Unshown && c.SampledAt[i] == 0 }
	some, fresh := false, 0
	for i, flag := range c.Flags {
		some = some || unknown(i)
		if flag == Fresh {
			fresh++
		}
	}
	if !some || fresh == 0 {
		return
	}
	values := make([]float64, 0, fresh)
	for i, flag := range c.Flags {
		if flag == Fresh {
			values = append(values, c.Values[i])
		}
	}
	slices.Sort(values)
	for i := range c.Flags {
		if unknown(i) {
			c.Values[i] = values[(len(values)-1)/2]
		}
	}
}

// mayOnlyRise keeps the last good value, for a day, of a cluster on which nobody works now: a controller that is down
// counts no event, and one that has just taken a cluster over has not counted for long.
func (j *metricJoin) mayOnlyRise(c *Column, i int) {
	row, was := j.lastRow(i)
	if !was || !j.options.Standings.of(i).Unserved {
		return
	}
	if !j.last.Measured[row] || j.last.Values[row] <= c.Values[i] {
		return
	}
	if age := j.now.Unix() - j.last.At[row]; age >= 0 && age < longestHold {
		c.Values[i], c.SampledAt[i] = j.last.Values[row], j.last.At[row]*1000
	}
}

// fallBack is the value of a cluster that this answer says nothing of.
func (j *metricJoin) fallBack(c *Column, i int) {
	row, was := j.lastRow(i)
	switch {
	case j.fleet.Clusters[i].Skip:
		c.Flags[i] = Skipped
	case j.carriers[i] != i:
		c.Flags[i] = Shared
	case was && j.last.At[row] != 0 && !c.ended(i):
		c.Values[i], c.SampledAt[i], c.Flags[i] = j.last.Values[row], j.last.At[row]*1000, Held
		if j.unshown(c, i) {
			c.Flags[i] = Unshown
		}
	case j.unshown(c, i):
		if c.Flags[i] = Unshown; j.metric.NoData != nil {
			c.Values[i] = *j.metric.NoData
		}
	case j.metric.NoData != nil:
		c.Values[i], c.Flags[i] = *j.metric.NoData, NoData
	}
}

// refuse is the column of a metric whose answer is not believed.
func (j *metricJoin) refuse() Column {
	column := newColumn(j.metric, len(j.fleet.Clusters))
	column.Refused, column.standings = true, j.options.Standings
	if j.last != nil {
		column.droppedSince, column.dropsFirst, column.low = j.last.DroppedSince, j.last.DropsFirst, j.last.Low
	}
	for i := range j.fleet.Clusters {
		j.fallBack(&column, i)
	}
	return column
}

// judge compares a column with the last one: an empty kind believes it. It says too what to remember of a low coverage.
func (j *metricJoin) judge(c Column) (ProblemKind, string, Low) {
	v := j.cover(c)
	why, low := j.lowCoverage(v)
	switch {
	case why != "":
		return LowCoverage, why, low
	case !v.had && v.fresh == 0 && j.metric.NoData == nil && j.expected(c) > 0:
		return NothingFound, "no cluster has a value, and none is configured as noData", low
	case v.dropped(j.options.MaxDrop) && j.now.Before(j.dropUntil()):
		return TotalDropped, fmt.Sprintf("the total of the %d clusters measured both times fell from %.4g to %.4g, so all keep their last good value until %s",
			v.both, v.sumBefore, v.sumNow, j.dropUntil().UTC().Format(time.RFC3339)), low
	}
	return "", "", low
}
