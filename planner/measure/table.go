package measure

import (
	"fmt"
	"time"

	"ballast/planner/measure/lastgood"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// Flag says where a value comes from.
type Flag uint8

// The flags; the set is closed.
const (
	Missing Flag = iota // never had a value: 0
	Fresh               // of this answer
	Held                // the last good one, for a day: this answer has none, or a bad or an old one
	NoData              // never had a value: the metric's noData
	Stale               // never had a good value: an old one is better than none
	Shared              // another cluster with the same server carries the value: 0
	Skipped             // Argo CD reconciles nothing there: 0
	Unshown             // Argo CD 3.0.0 to 3.0.5 shows no value: the last good one, without an end, else the middle of the others'
)

var flagNames = [...]string{"Missing", "Fresh", "Held", "NoData", "Stale", "Shared", "Skipped", "Unshown"}

// Flags lists the closed set, for metrics that show every flag from the start.
func Flags() []Flag { return []Flag{Missing, Fresh, Held, NoData, Stale, Shared, Skipped, Unshown} }

// String is the flag's name.
func (f Flag) String() string {
	if int(f) < len(flagNames) {
		return flagNames[f]
	}
	return fmt.Sprintf("Flag(%d)", uint8(f))
}

// MarshalText writes the flag's name.
func (f Flag) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a flag's name.
func (f *Flag) UnmarshalText(text []byte) error {
	for i, name := range flagNames {
		if name == string(text) {
			*f = Flag(i)
			return nil
		}
	}
	return fmt.Errorf("reading the flag of a value: %q is none of %v", text, flagNames)
}

// ProblemKind is what is wrong with a metric.
type ProblemKind string

// The kinds of problems; the set is closed. Those up to NothingFound refuse the metric: its last good values stand and
// nothing may be decided. The others are for people to know.
const (
	QueryFailed     ProblemKind = "QueryFailed"     // Prometheus did not answer, or refused the query
	DuplicateSeries ProblemKind = "DuplicateSeries" // several series claim one cluster
	LowCoverage     ProblemKind = "LowCoverage"     // fewer clusters have a value than the metric asks for
	TotalDropped    ProblemKind = "TotalDropped"    // the sum fell further than is believed
	NothingFound    ProblemKind = "NothingFound"    // no cluster has a value

	Unmatched   ProblemKind = "Unmatched"   // a series is of no cluster
	BadValue    ProblemKind = "BadValue"    // a value is no number, or below 0
	OldValue    ProblemKind = "OldValue"    // a value is older than is believed
	HeldLong    ProblemKind = "HeldLong"    // last good values have stood for long
	SharedName  ProblemKind = "SharedName"  // two clusters have the name by which the metric tells them apart
	QueryWarned ProblemKind = "QueryWarned" // Prometheus, or the pods, answered with a warning
)

// MetricProblem is one thing wrong with a metric's answer; Metric is empty where it is about all of them.
type MetricProblem struct {
	Metric  string      `json:"metric,omitempty"`
	Kind    ProblemKind `json:"kind"`
	Message string      `json:"message"`
}

// Column is a metric over the clusters of the table. Every value is finite and not negative. SampledAt is in Unix
// milliseconds, 0 where unknown. A refused column is the last good one.
type Column struct {
	ID        string    `json:"id"`
	Query     string    `json:"query"`
	Values    []float64 `json:"values"`
	Flags     []Flag    `json:"flags"`
	SampledAt []int64   `json:"sampledAt"`
	Refused   bool      `json:"refused,omitempty"`
	// droppedSince is when a fall of the total was first refused, dropsFirst when one first was in the last day.
	droppedSince, dropsFirst time.Time
	held                     []int64 // by cluster: for how many seconds others were measured and it was not; nil: none was held, or the column is refused
	low                      Low
	names                    []string // by cluster: the key of the name that is its; nil where the metric goes by something else
	standings                Standings
	byDestination            bool // Argo CD 3.0.0 to 3.0.5 leaves clusters out of it
}

func newColumn(m poll.Metric, n int) Column {
	return Column{ID: m.ID, Query: m.Text(), byDestination: m.ByDestination(), Values: make([]float64, n),
		Flags: make([]Flag, n), SampledAt: make([]int64, n)}
}

// scraped is when a value was scraped; where that is unknown it is when it was asked for.
func scraped(sampledAt int64, asked time.Time) int64 {
	if sampledAt != 0 {
		return sampledAt / 1000
	}
	return asked.Unix()
}

// Table is what is known of every cluster, a column a metric, both in the order they were given. While it is Frozen the
// plan in force stays.
type Table struct {
	At       time.Time       `json:"at"`
	Shards   []plan.Shard    `json:"shards"`
	Columns  []Column        `json:"columns"`
	Problems []MetricProblem `json:"problems,omitempty"`
	Frozen   bool            `json:"frozen,omitempty"`
}

// What is kept of a table: see package lastgood.
type (
	LastGood   = lastgood.Values // of all metrics
	LastColumn = lastgood.Column // of one
	Low        = lastgood.Low    // what is remembered of a coverage that was refused
)

// MetricValues are the table's values for people, metric by metric.
func MetricValues(t Table) []plan.MetricValue {
	values := make([]plan.MetricValue, 0, len(t.Columns)*len(t.Shards))
	for _, c := range t.Columns {
		for i, shard := range t.Shards {
			v := plan.MetricValue{ID: c.ID, Shard: shard, Query: c.Query, Value: c.Values[i],
				DisplayValue: plan.FormatValue(c.Values[i])}
			if at := c.SampledAt[i]; at != 0 {
				v.SampledAt = time.UnixMilli(at).UTC()
			}
			values = append(values, v)
		}
	}
	return values
}
