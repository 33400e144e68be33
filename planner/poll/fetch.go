package poll

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"ballast/planner/discover"
	"ballast/planner/poll/meter"
	"ballast/planner/poll/promql"
)

// Fetch asks for every metric: one query for a fleet metric and one for its age, or one for each cluster that is
// reconciled. It never fails as a whole: what went wrong stands in the answers. As many timeouts as queries run at once
// are taken for a Prometheus that hangs, and what was not asked by then is not asked any more; nor is what was not
// asked within the time of all. So a Fetch ends in time however many clusters there are, however slow the answers come,
// and whatever keeps a request from ending.
// What is asked of the whole fleet comes first, and a query for a cluster that timed out before comes last.
func (p *Prometheus) Fetch(ctx context.Context, metrics []Metric, fleet discover.Fleet, now time.Time) []Fetched {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Within, errLate)
	defer cancel()
	f := fetch{Prometheus: p, now: now, ages: map[aged]*reply{}, templates: p.budget()}
	f.group.SetLimit(p.config.Concurrency)
	theirs := f.targets(ctx, metrics)
	fetched := make([]Fetched, len(metrics))
	var finish []func()
	for i, m := range metrics {
		fetched[i].Metric = m.ID
		if m.PerCluster() {
			continue
		}
		if err := theirs.refuses(m); err != nil {
			fetched[i].Err = err.Error()
			continue
		}
		finish = append(finish, f.fleet(ctx, m, theirs.vars, &fetched[i]))
	}
	for i, m := range metrics {
		if m.PerCluster() {
			finish = append(finish, f.perCluster(m, fleet, &fetched[i]))
		}
	}
	p.hung.last(f.each)
	for _, q := range f.each {
		f.ask(ctx, func() (string, error) { return f.templates.Render(q.template, *q.shard) }, q.into, single)
	}
	_ = f.group.Wait() // the errors stand in the answers
	p.hung.note(f.each, now)
	for _, done := range finish {
		done()
	}
	return fetched
}

// targets asks Prometheus which targets are the workload's, where a metric wants to know.
func (f *fetch) targets(ctx context.Context, metrics []Metric) targets {
	pod, pods, namespace := f.config.PodLabel, f.config.Pods, f.config.Namespace
	wanted := slices.ContainsFunc(metrics, func(m Metric) bool { asks, _ := usesTargets(m); return asks })
	if namespace == "" || !wanted {
		return targets{vars: promql.FleetVars{Pod: pod, Pods: pods, Targets: pods}}
	}
	rows, err := f.rows(ctx, targetsQuery(pod, pods, namespace))
	if label := labelOf(rows, namespace); err == nil && doubtful(rows, label) {
		var doubts []row
		doubts, err = f.rows(ctx, doubtsQuery(pod, pods, label))
		rows = append(rows, doubts...)
	}
	if err != nil {
		return targets{vars: promql.FleetVars{Pod: pod, Pods: pods},
			all: fmt.Errorf("asking which pods are those of namespace %q: %w", namespace, err)}
	}
	return judgeTargets(rows, pod, pods, namespace)
}

func (f *fetch) rows(ctx context.Context, query string) (rows []row, err error) {
	var answer reply
	f.askNow(ctx, asText(query), &answer, func(v model.Value, into *reply) (err error) {
		into.rows, err = readRows(f.config.PodLabel, v)
		return err
	})
	return answer.rows, answer.err
}

// fleet asks for a metric of all clusters and for its age; the function it returns gives the samples.
func (f *fetch) fleet(ctx context.Context, m Metric, vars promql.FleetVars, into *Fetched) func() {
	values, ages := reply{}, &reply{}
	query, err := f.render(ctx, m.Query, vars)
	if err != nil {
		into.Err = err.Error()
		return func() {}
	}
	read := func(v model.Value, into *reply) (err error) {
		into.samples, into.passed, err = samples(m, v)
		return err
	}
	f.ask(ctx, asText(query), &values, read)
	if m.AgeQuery != "" {
		if query, err = f.render(ctx, m.AgeQuery, vars); err != nil {
			ages.err = err
		} else if once := (aged{query, m.Match.Label}); f.ages[once] != nil {
			ages = f.ages[once]
		} else {
			f.ages[once] = ages
			f.ask(ctx, asText(query), ages, read)
		}
	}
	return func() {
		into.Warnings = values.warnings
		if into.Samples = values.samples; values.err != nil {
			into.Err = fmt.Sprintf("query %q: %v", m.Query, values.err)
			return
		}
		if values.passed > 0 {
			into.Warnings = append(into.Warnings, fmt.Sprintf("%d of its series are passed over: their label %q has more than %d KiB, "+
				"as no cluster's has; look for the cluster Secret that has it, and for its Applications", values.passed,
				m.Match.Label, meter.MaxString>>10))
		}
		if m.AgeQuery != "" {
			into.setAges(m, *ages)
		}
	}
}

// render fills a query for the fleet while there is time.
func (f *fetch) render(ctx context.Context, query string, vars promql.FleetVars) (string, error) {
	if err := ended(ctx); err != nil {
		return "", err
	}
	return f.templates.RenderFleet(query, vars)
}

// setAges says of the samples when they were taken, where that is known.
func (into *Fetched) setAges(m Metric, ages reply) {
	if ages.err != nil {
		into.Warnings = append(into.Warnings, fmt.Sprintf("the samples' age is unknown: age query %q: %v", m.AgeQuery,
			ages.err))
		return
	}
	at := make(map[string]time.Time, len(ages.samples))
	for _, a := range ages.samples {
		// NaN fails both comparisons; beyond the year 9999 it is no time that JSON has.
		if a.Value > 0 && a.Value < 253402300800 {
			at[a.Key] = time.UnixMilli(int64(math.Round(a.Value * 1000))).UTC()
		}
	}
	for i, s := range into.Samples {
		into.Samples[i].At = at[s.Key]
	}
}

// perCluster has every cluster asked for alone; the function it returns gives the samples. A query is rendered when its
// turn comes.
func (f *fetch) perCluster(m Metric, fleet discover.Fleet, into *Fetched) func() {
	parsed, err := promql.ParseTemplate(m.QueryPerCluster)
	if err != nil {
		into.Err = err.Error()
		return func() {}
	}
	if !f.keeps(keptQuestion * int64(len(fleet.Clusters))) {
		into.Err = errTooManyQueries.Error()
		return func() {}
	}
	replies := make([]reply, len(fleet.Clusters))
	for i := range fleet.Clusters {
		if c := &fleet.Clusters[i]; !c.Skip {
			f.each = append(f.each, question{of: asked{m.ID, c.Shard.ID}, template: parsed, shard: &c.Shard,
				into: &replies[i]})
		}
	}
	return func() { into.collect(fleet, replies) }
}

// collect takes the replies of the clusters, each asked for alone.
func (into *Fetched) collect(fleet discover.Fleet, replies []reply) {
	var failed, warned few
	asked, late, spent := 0, 0, 0
	for i, c := range fleet.Clusters {
		if c.Skip {
			continue
		}
		asked++
		r := replies[i]
		for _, w := range r.warnings {
			warned.add("cluster %q: %s", c.Shard.ID, w)
		}
		switch {
		case errors.Is(r.err, errLate):
			late++
		case errors.Is(r.err, promql.ErrSpent):
			spent++
		}
		if r.err != nil {
			failed.add("cluster %q: %v", c.Shard.ID, r.err)
		} else if r.found {
			into.Samples = append(into.Samples, Sample{Key: c.Shard.ID, Value: r.value})
		}
	}
	switch { // of whom it is says when the others answered, or how long their templates are, and nothing of those clusters
	case spent > 0:
		into.Samples, into.Err = nil, fmt.Sprintf("%d of %d clusters were not asked: %v", spent, asked, promql.ErrSpent)
	case late > 0:
		into.Samples, into.Err = nil, fmt.Sprintf("%d of %d clusters were not asked in time, since their queries take too long: ask for all of them by one query, or set a longer interval", late, asked)
	case asked > 0 && failed.count == asked:
		into.Err = fmt.Sprintf("every query failed, the first: %s", failed.first[0])
	default:
		into.Warnings = append(failed.told(), warned.told()...)
	}
}
