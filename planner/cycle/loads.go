package cycle

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/problem"
	"ballast/planner/index"
	"ballast/planner/measure"
	"ballast/planner/normalize"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/poll"
	podsmetrics "ballast/planner/poll/pods"
)

// standings is what is known of the clusters beside their metrics. Without Applications, by their number and by all
// pods, a cluster needs no series.
func (c *cycle) standings(a *adoption) measure.Standings {
	reported := c.in.Observed.Reported
	answered := map[int]bool{}
	for _, p := range reported.Pods {
		answered[p.Replica] = answered[p.Replica] || p.Ready && p.Answered
	}
	unserved := c.unserved()
	all := make(measure.Standings, len(c.out.Fleet.Clusters))
	for i, cl := range c.out.Fleet.Clusters {
		name := cl.Shard.ID
		s := measure.Standing{Uncounted: !c.out.Memory.Known.Has(name), Moved: !c.in.Had(name, cl.Shard.Server), Replica: placement.NoReplica}
		if row, planned := a.next.Clusters[name]; planned {
			s.Replica = row.Replica
		}
		s.Unserved = unserved(name, s.Replica)
		if shown, looked := reported.Clusters[name]; looked && reported.Asked && answered[s.Replica] {
			s.Gone = len(shown.Live) == 0
			s.Idle = shown.Apps == 0 && len(shown.Owners) == 0
			s.Uncounted = s.Uncounted || s.Idle
		}
		all[i] = s
	}
	return all
}

// unserved tells whether nobody works on a cluster, or somebody else since just now, as far as is known before this cycle's
// look: of those that no replica has, that are on one which is not ready, or that moved within a wave's time.
func (c *cycle) unserved() func(name string, replica int) bool {
	m, moved := c.in.Memory.Changes, map[string]bool{}
	for name, at := range m.Moved {
		moved[name] = c.in.Now.Sub(at) < justMoved
	}
	if p := c.in.InForce; p != nil && p.Rollout != nil {
		for name := range MovedBy(*p.Rollout) {
			moved[name] = true
		}
	}
	return func(name string, replica int) bool {
		_, lost := m.Ownership.Lost[name]
		down := c.in.Observed.Known && replica >= 0 && !works(c.in.Observed.Pods, replica)
		return lost || down || moved[name]
	}
}

// justMoved is how long what is measured of a cluster that moved is less than it makes: two of the ten minutes that the default
// rates look back.
const justMoved = 20 * time.Minute

// noteMoved remembers, whatever the mode, which clusters a rollout under way has moved.
func (c *cycle) noteMoved(r plan.Rollout) {
	c.forgetMoved()
	m := &c.out.Memory.Changes
	moved := maps.Clone(m.Moved)
	for name := range MovedBy(r) {
		if moved == nil {
			moved = map[string]time.Time{}
		}
		moved[name] = c.in.Now
	}
	m.Moved = moved
}

// forgetMoved drops those that did not move lately.
func (c *cycle) forgetMoved() {
	m := &c.out.Memory.Changes
	m.Moved = maps.Clone(m.Moved)
	maps.DeleteFunc(m.Moved, func(_ string, at time.Time) bool { return c.in.Now.Sub(at) >= justMoved })
}

// loadsOf turns a table into loads: normalize, then index. references are the plan's, and come back with those of
// metrics that had none; they stay as they are for ever after, so that a load means the same next year.
func loadsOf(c config.PlannerConfig, t measure.Table, references map[string]string) ([]plan.Load, map[string]string, *problem.Problem) {
	weights := WeightsOf(c)
	cols := make([]normalize.Column, 0, len(t.Columns))
	for _, col := range t.Columns {
		cols = append(cols, normalize.Column{ID: col.ID, Values: col.Values})
	}
	scores, references, err := normalized(c.Normalize, cols, references)
	if err != nil {
		return nil, references, &problem.Problem{Phase: problem.PhaseNormalize, Kind: "Refused", Message: err.Error(), Keeps: true}
	}
	loads, err := index.PNorm(scores, c.Index.PNorm.P.Float(), weights)
	if err != nil {
		return nil, references, &problem.Problem{Phase: problem.PhaseIndex, Kind: "Refused", Message: err.Error(), Keeps: true}
	}
	return loads, references, nil
}

func normalized(n config.Normalize, cols []normalize.Column, references map[string]string) ([]normalize.Column, map[string]string, error) {
	var out []normalize.Column
	var err error
	switch {
	case n.Robust != nil:
		offset := n.Robust.PositiveOffset.Float()
		out, err = normalize.OfLoaded(cols, func(cols []normalize.Column) ([]normalize.Column, error) {
			return normalize.Robust(cols, &offset)
		})
	case n.MinMax != nil:
		out, err = normalize.OfLoaded(cols, normalize.MinMax)
	case n.None != nil:
		out, err = normalize.None(cols)
	default:
		return byReference(cols, references)
	}
	return out, nil, err
}

// byReference divides by the references; metrics that have none are anchored at today's total, once.
func byReference(cols []normalize.Column, references map[string]string) ([]normalize.Column, map[string]string, error) {
	refs, kept := make(map[string]float64, len(cols)), make(map[string]string, len(cols))
	for _, c := range cols {
		text, ok := references[c.ID]
		if !ok {
			continue
		}
		ref, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, references, fmt.Errorf("reading the reference %q of metric %q: it is not a number", text, c.ID)
		}
		refs[c.ID], kept[c.ID] = ref, text
	}
	out, err := normalize.Reference(cols, refs)
	var unanchored *normalize.UnanchoredError
	if errors.As(err, &unanchored) {
		maps.Copy(refs, unanchored.Totals)
		for id, total := range unanchored.Totals {
			kept[id] = plan.FormatValue(total)
		}
		out, err = normalize.Reference(cols, refs)
	}
	if err != nil {
		return nil, references, err
	}
	return out, kept, nil
}

// WeightsOf are the configured weights, else the default set's. The configuration's check has seen to it that own
// metrics have weights.
func WeightsOf(c config.PlannerConfig) map[string]float64 {
	if c.Index.PNorm.Weights == nil {
		return poll.DefaultWeights()
	}
	weights := make(map[string]float64, len(c.Index.PNorm.Weights))
	for id, d := range c.Index.PNorm.Weights {
		weights[id] = d.Float()
	}
	return weights
}

// MetricsOf is what the configuration asks for: its own metrics, else the default set, of Prometheus or of the pods.
func MetricsOf(c config.PlannerConfig) []poll.Metric {
	switch {
	case c.Poll.Prometheus == nil:
		return podsmetrics.Metrics()
	case c.Poll.Prometheus.Metrics == nil && c.Poll.Prometheus.Recorded:
		return poll.RecordedMetrics()
	case c.Poll.Prometheus.Metrics == nil:
		return poll.DefaultMetrics()
	}
	metrics := make([]poll.Metric, len(c.Poll.Prometheus.Metrics))
	for i, m := range c.Poll.Prometheus.Metrics {
		metrics[i] = poll.Metric{ID: m.ID, Query: m.Query, QueryPerCluster: m.QueryPerCluster, AgeQuery: m.AgeQuery}
		if m.Match != nil {
			metrics[i].Match = poll.Match{Label: m.Match.Label, To: poll.MatchTo(m.Match.To), Aliases: m.Match.Aliases}
		}
		if m.NoData != nil {
			noData := m.NoData.Float()
			metrics[i].NoData = &noData
		}
	}
	return metrics
}
