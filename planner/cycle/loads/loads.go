// Package loads makes one load of each cluster of what was polled, and keeps the references that loads are shares of.
package loads

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/problem"
	"ballast/planner/index"
	"ballast/planner/measure"
	"ballast/planner/normalize"
	"ballast/planner/plan"
	"ballast/planner/poll"
	podsmetrics "ballast/planner/poll/pods"
)

// Of turns a table into loads: normalize, then index. references are the plan's, and come back with those of
// metrics that had none; they stay as they are for ever after, so that a load means the same next year.
func Of(c config.PlannerConfig, t measure.Table, references map[string]string) ([]plan.Load, map[string]string, *problem.Problem) {
	weights := WeightsOf(c)
	cols := make([]normalize.Column, 0, len(t.Columns))
	for _, col := range t.Columns {
		cols = append(cols, normalize.Column{ID: col.ID, Values: col.Values})
	}
	scores, references, err := normalized(c.Normalize, cols, references)
	if err != nil {
		return nil, references, &problem.Problem{Phase: problem.PhaseNormalize, Kind: "Refused", Message: err.Error(),
			Keeps: true}
	}
	loads, err := index.PNorm(scores, c.Index.PNorm.P.Float(), weights)
	if err != nil {
		return nil, references, &problem.Problem{Phase: problem.PhaseIndex, Kind: "Refused", Message: err.Error(),
			Keeps: true}
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

// MetricsOf is what the configuration asks for of clusters: its own metrics, else the default set, of Prometheus or of
// the pods.
func MetricsOf(c config.PlannerConfig) []poll.Metric {
	p := c.Poll.Prometheus
	if p == nil {
		return podsmetrics.Metrics()
	}
	own := p.OfClusters()
	switch {
	case own == nil && p.Recorded:
		return poll.RecordedMetrics()
	case own == nil:
		return poll.DefaultMetrics()
	}
	return pollMetrics(own)
}

// ReplicaMetricsOf is what the configuration asks for of replicas, for their sizes.
func ReplicaMetricsOf(c config.PlannerConfig) []poll.Metric {
	if c.Poll.Prometheus == nil {
		return nil
	}
	return pollMetrics(c.Poll.Prometheus.OfReplicas())
}

func pollMetrics(configured []config.Metric) []poll.Metric {
	metrics := make([]poll.Metric, len(configured))
	for i, m := range configured {
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

// BelievedLast are the loads of what was measured and believed last, by cluster; of one that never was there is none.
func BelievedLast(g *ground.Ground) map[string]plan.Load {
	t := measure.TableOf(g.In.Memory.LastGood, MetricsOf(g.In.Config))
	loads, _, problem := Of(g.In.Config, t, g.Next.References)
	if problem != nil {
		return nil
	}
	believed := make(map[string]plan.Load, len(t.Shards))
	for i, s := range t.Shards {
		believed[s.ID] = loads[i]
	}
	return believed
}

// Last are the loads that were believed last, by cluster, of those that are gone too; of one that was never
// measured its row's.
func Last(g *ground.Ground) map[string]plan.Load {
	last := make(map[string]plan.Load, len(g.Next.Clusters))
	for name, row := range g.Next.Clusters {
		last[name] = plan.LoadOf(row.Load)
	}
	for name, load := range BelievedLast(g) {
		last[name] = max(load, last[name])
	}
	return last
}

// Held is what values of earlier cycles, and those that nothing can measure, make of each cluster's load; nil: there
// are none. Where a value is divided by what all others have, a cluster of which one is held is taken for one that
// nobody measures.
func Held(c config.PlannerConfig, t measure.Table, loads []plan.Load, references map[string]string) []plan.Load {
	held := func(flag measure.Flag) bool { return flag == measure.Held || flag == measure.Unshown }
	if !slices.ContainsFunc(t.Columns, func(column measure.Column) bool { return slices.ContainsFunc(column.Flags, held) }) {
		return nil // as nearly always
	}
	some, fresh := map[int]bool{}, t
	fresh.Columns = slices.Clone(t.Columns)
	for k, column := range t.Columns {
		fresh.Columns[k].Values = slices.Clone(column.Values)
		for i, flag := range column.Flags {
			if held(flag) {
				fresh.Columns[k].Values[i], some[i] = 0, true
			}
		}
	}
	made := make([]plan.Load, len(loads))
	measured, _, problem := Of(c, fresh, references)
	relative := c.Normalize.Robust != nil || c.Normalize.MinMax != nil
	for i := range some {
		if made[i] = loads[i]; problem == nil && !relative {
			made[i] -= min(measured[i], made[i])
		}
	}
	return made
}

// Objects is how many live objects each cluster's replica keeps, where the default metric says it; nil: nothing does.
func Objects(c config.PlannerConfig, t measure.Table) []float64 {
	at := slices.IndexFunc(t.Columns, func(c measure.Column) bool { return c.ID == poll.Objects })
	own := c.Poll.Prometheus != nil && c.Poll.Prometheus.OfClusters() != nil
	if at < 0 || own {
		return nil
	}
	return t.Columns[at].Values
}
