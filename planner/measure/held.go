package measure

import (
	"fmt"
	"slices"
	"time"
)

// HoldFor is how long a cluster's last good value stands while others are measured and it is not: what one cluster said
// once must not decide for good what a replica may carry. Then it is as one that was never measured.
const HoldFor = 24 * time.Hour

// longestStep is what counts of the time between two answers that are believed: a Prometheus that was away for days
// ends nothing.
const longestStep = time.Hour

const longestHold = int64(HoldFor / time.Second)

// heldFor is for how many seconds each cluster of a column that has its fresh values is without one: nil where none is.
// The time of those alone counts whose series Prometheus would have if there were any: other clusters of the replica
// are measured, or no pod shows the cluster. What it does not scrape keeps its last good values.
func (j *metricJoin) heldFor(c Column) []int64 {
	if j.last == nil {
		return nil
	}
	var without []int // of the clusters that had a value
	for i, row := range j.rows {
		if c.Flags[i] != Fresh && row >= 0 && j.last.At[row] != 0 {
			without = append(without, i)
		}
	}
	if len(without) == 0 {
		return nil // as nearly always
	}
	seen := map[int]bool{}
	for i, flag := range c.Flags {
		if s := j.options.Standings.of(i); flag == Fresh && s.Replica >= 0 {
			seen[s.Replica] = true
		}
	}
	held, step, any := make([]int64, len(c.Flags)), j.step(c), false
	for _, i := range without {
		held[i] = min(j.last.HeldFor(j.rows[i]), longestHold)
		if j.carries(i) && !j.unshown(&c, i) && j.options.Standings.of(i).measurable(seen) {
			held[i] += step
		}
		any = any || held[i] > 0
	}
	if !any {
		return nil
	}
	return held
}

// step is the time between the newest values of two answers, in seconds.
func (j *metricJoin) step(c Column) int64 {
	newest := int64(0)
	for i, flag := range c.Flags {
		if flag == Fresh {
			newest = max(newest, scraped(c.SampledAt[i], j.now))
		}
	}
	return min(max(newest-slices.Max(append(slices.Clone(j.last.At), 0)), 0), int64(longestStep/time.Second))
}

// ended reports whether a cluster's last good value was held for as long as it may be.
func (c Column) ended(i int) bool {
	return c.held != nil && c.held[i] >= longestHold
}

// heldOr is for how long a cluster's value is held now; a refused column says nothing of it.
func (c Column) heldOr(i int, before int64) int64 {
	switch {
	case c.Refused:
		return before
	case c.held == nil:
		return 0
	}
	return c.held[i]
}

// tellHeld names the clusters whose last good value is older than a sample may be.
func (j *joiner) tellHeld(c Column, g gathered, report func(ProblemKind, string)) {
	var held []string
	for i, flag := range c.Flags {
		if flag == Held && !g.got[i] && j.options.MaxAge > 0 && j.now.Sub(time.UnixMilli(c.SampledAt[i])) > j.options.MaxAge {
			held = append(held, j.fleet.Clusters[i].Shard.ID)
		}
	}
	if len(held) > 0 {
		report(HeldLong, fmt.Sprintf("%s: no value for longer than maxAge, so the last good one stands, until the replica's other clusters "+
			"had values for %s without; a cluster without Applications has none", some(held), HoldFor))
	}
}
