// Package settings checks of a configuration what only the phases know.
package settings

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/config/validation"
	"ballast/planner/cycle/loads"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"
)

// CheckMetrics judges what the poll phase knows: whether queries are templates that it can fill, and, where a file
// leaves the metrics out, whether its weights are the default metrics'.
func CheckMetrics(c config.PlannerConfig) field.ErrorList {
	var errs field.ErrorList
	if c.Poll.Prometheus != nil {
		at := field.NewPath("poll", "prometheus", "metrics")
		for i, m := range c.Poll.Prometheus.Metrics {
			errs = append(errs, checkQueries(m, at.Index(i))...)
		}
	}
	defaults := c.Poll.Prometheus == nil || c.Poll.Prometheus.OfClusters() == nil
	if defaults && c.Index.PNorm != nil && c.Index.PNorm.Weights != nil {
		errs = append(errs, checkDefaultWeights(c.Index.PNorm.Weights)...)
	}
	if d := c.Index.Dimensions; defaults && d != nil && d.Memory != nil {
		ids := slices.Collect(maps.Keys(poll.DefaultWeights()))
		errs = append(errs, validation.UnknownMetrics(d.Memory.Weights, ids,
			field.NewPath("index", "dimensions", "memory", "weights"))...)
	}
	return append(errs, checkInputs(c)...)
}

// checkInputs judges whether size rules name inputs that there are.
func checkInputs(c config.PlannerConfig) field.ErrorList {
	var errs field.ErrorList
	var metrics []string
	for _, m := range loads.MetricsOf(c) {
		metrics = append(metrics, m.ID)
	}
	for _, m := range loads.ReplicaMetricsOf(c) {
		if slices.Contains(metrics, m.ID) {
			errs = append(errs, field.Invalid(field.NewPath("poll", "prometheus", "metrics"), m.ID,
				"is the id of a metric of replicas, and of a default metric: give the first another one"))
		}
		metrics = append(metrics, m.ID)
	}
	known := config.KnownInputs(metrics)
	for i, policy := range c.Size.Policies {
		for k, rule := range policy.Rules {
			at := field.NewPath("size", "policies").Index(i).Child("rules").Index(k).Child("input")
			switch own := slices.Contains(metrics, rule.Input); {
			case rule.Input == "":
			case own && slices.Contains(config.KnownInputs(nil), rule.Input):
				errs = append(errs, field.Invalid(at, rule.Input,
					"is a metric of yours and an input of ballast's: give the metric another id"))
			case !slices.Contains(known, rule.Input):
				errs = append(errs, field.Invalid(at, rule.Input, "is no input: there are "+strings.Join(known, ", ")))
			}
		}
	}
	return errs
}

// checkQueries fills a metric's queries as for a cluster of Argo CD's own.
func checkQueries(m config.Metric, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	judge := func(name, query string, render func(string) (string, error)) {
		if query == "" {
			return
		}
		if _, err := render(query); err != nil {
			errs = append(errs, field.Invalid(p.Child(name), field.OmitValueType{}, err.Error()))
		}
	}
	fleet := func(query string) (string, error) {
		return promql.RenderFleet(query, promql.FleetVars{Pod: "pod",
			Pods: promql.PodsMatcher("pod", plan.Target{Kind: plan.StatefulSet, Name: "a"})})
	}
	judge("query", m.Query, fleet)
	judge("ageQuery", m.AgeQuery, fleet)
	judge("queryPerCluster", m.QueryPerCluster, func(query string) (string, error) {
		return promql.Render(query, plan.Shard{UID: "1", ID: "in-cluster", Namespace: "argocd", Name: "in-cluster",
			Server: plan.InClusterServer})
	})
	return errs
}

func checkDefaultWeights(weights map[string]config.Decimal) field.ErrorList {
	var errs field.ErrorList
	at, defaults := field.NewPath("index", "pNorm", "weights"), poll.DefaultWeights()
	known := slices.Sorted(maps.Keys(defaults))
	for _, id := range known {
		if _, ok := weights[id]; !ok {
			errs = append(errs, field.Required(at.Key(id),
				"the default metric has no weight: give it one, 0 to leave it out of the load"))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		if _, ok := defaults[id]; !ok {
			errs = append(errs, field.Invalid(at.Key(id), field.OmitValueType{},
				"is none of the default metrics "+strings.Join(known, ", ")))
		}
	}
	return errs
}
