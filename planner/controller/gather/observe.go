package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/change/harm"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/ownership/podlist"
	"ballast/planner/ownership/scrape"
	"ballast/planner/poll"
	"ballast/planner/telemetry"
)

// Observe looks at the pods of a workload, and answers what it makes of that and what each said. It
// never fails as a whole: what could not be seen is a sentence in the answer, and makes nothing move. Without a Fetcher
// no Prometheus is asked.
func (o *Observer) Observe(
	ctx context.Context, f poll.Fetcher, w discover.Workload, fleet discover.Fleet,
) (input.Observed, []scrape.PodReport) {
	now := o.Clock.Now()
	controllers, err := podlist.List(ctx, o.Reader, standing.TargetOf(w), w.UID, now)
	if err != nil {
		return input.Observed{Trouble: []string{err.Error()}}, nil
	}
	reports := o.Scrape.Scrape(ctx, controllers.Pods, o.Clock.Now)
	alone := "; there is no Prometheus to ask instead (poll.pods)"
	if f != nil {
		alone = ""
		o.askAgain(ctx, f, controllers.Pods, reports)
	}
	seen := input.Observed{Known: true, Dynamic: controllers.Dynamic, Pods: scrape.Pods(reports), Work: workOf(reports),
		Trouble: controllers.Problems}
	if controllers.Dynamic {
		seen.Slots = controllers.Slots(w.Replicas, now)
	}
	if seen.Reported, err = o.reported(ctx, w.Namespace, reports, fleet); err != nil {
		seen.Trouble = append(seen.Trouble, err.Error())
	}
	if o.Listed != nil {
		seen.Reported.Setting, seen.Unlisted = o.Listed()
	}
	for _, r := range reports {
		if r.Ready && !r.Answered() {
			seen.Trouble = append(seen.Trouble, fmt.Sprintf("nothing is known of what %s owns: %s%s", r.Name, r.Err,
				alone))
		}
	}
	return seen, reports
}

// countedFor is how long the number of Applications is believed while every cluster has an owner.
const countedFor = 10 * time.Minute

// reported joins the reports to the number of Applications. A cluster that nobody has is counted anew: its last
// Application may have been deleted since.
func (o *Observer) reported(ctx context.Context, namespace string, reports []scrape.PodReport, fleet discover.Fleet) (ownership.Observation, error) {
	if o.Count == nil {
		return ownership.Join(reports, fleet, nil), nil
	}
	reported := ownership.Join(reports, fleet, nil)
	wait, end := context.WithTimeout(ctx, cmp.Or(o.waits, besideFor))
	defer end()
	for _, age := range []time.Duration{countedFor, ownership.OrphanedAfter} {
		now, err := o.count(ctx, wait, &o.all, o.Count, namespace, fleet, age)
		if err != nil {
			return reported, err
		}
		reported = ownership.Join(reports, fleet, now.of)
		if reported.Counted = now.at; !reported.Misses() {
			return reported, nil
		}
	}
	empty := func(p ownership.PodObservation) bool { return p.Answered && p.Unplaced > 0 }
	if o.ByServer == nil || !slices.ContainsFunc(reported.Pods, empty) {
		return reported, nil
	}
	byServer, err := o.count(ctx, wait, &o.byServer, o.ByServer, namespace, fleet, ownership.OrphanedAfter)
	if err != nil {
		return reported, err
	}
	reported.TellByName(byServer.of)
	return reported, nil
}

// askAgain asks Prometheus about the pods that did not answer.
func (o *Observer) askAgain(ctx context.Context, f poll.Fetcher, pods []observed.Controller,
	reports []scrape.PodReport) {
	var silent []observed.Controller
	at := map[string]int{}
	for i, r := range reports {
		if r.Running && !r.Answered() {
			silent = append(silent, pods[i])
			at[r.Name] = i
		}
	}
	if len(silent) == 0 {
		return
	}
	for _, r := range scrape.Ask(ctx, f, silent, o.Clock.Now()) {
		if i := at[r.Name]; r.Answered() {
			reports[i] = r
		}
	}
}

// maxReconciles is where a sample no longer counts one by one.
const maxReconciles = 1 << 53

// workOf is what each replica did, by server.
func workOf(reports []scrape.PodReport) map[int]input.ServerWork {
	work := map[int]input.ServerWork{}
	for _, r := range reports {
		if !r.Answered() || r.Replica < 0 || r.Terminating {
			continue
		}
		if work[r.Replica] == nil {
			work[r.Replica] = input.ServerWork{}
		}
		for server, s := range r.Servers {
			more := harm.Work{Reconciles: uint64(min(max(s.Reconciles, 0), maxReconciles)), Seconds: s.Seconds}
			work[r.Replica][server] = work[r.Replica][server].Plus(more)
		}
	}
	return work
}

// ObservePods looks at the pods, if anything is there to look with.
func (a *Asker) ObservePods(ctx context.Context, f poll.Fetcher, in input.Inputs) (input.Observed, []scrape.PodReport) {
	if a.Observe == nil {
		return input.Observed{}, nil
	}
	fleet := discover.All(in.Discovered, in.Now)
	started := a.Clock.Now()
	seen, reports := a.Observe(ctx, f, in.Workload, fleet)
	a.Metrics.PhaseTime.WithLabelValues("observe").Observe(a.Clock.Since(started).Seconds())
	if len(seen.Trouble) > 0 {
		a.Metrics.ObservePhaseError(telemetry.PhaseObserve)
	}
	return seen, reports
}

// OwnersOf is which pod reconciles which server, by the reports, as ownerMetric asks a Prometheus.
func OwnersOf(reports []scrape.PodReport) poll.Fetched {
	owners := poll.Fetched{Metric: ownerMetric().ID}
	for _, r := range reports {
		for server, shown := range r.Servers {
			if shown.Apps > 0 {
				owners.Samples = append(owners.Samples, poll.Sample{Key: r.Name + "|" + server, Value: 1})
			}
		}
	}
	slices.SortFunc(owners.Samples, func(a, b poll.Sample) int { return strings.Compare(a.Key, b.Key) })
	return owners
}
