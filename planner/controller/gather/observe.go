package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/change/harm"
	"ballast/planner/conflicts"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/ownership/podlist"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/size/inputs"
	"ballast/planner/telemetry"
)

// Observer asks the application-controllers' pods who has which cluster, and Prometheus for those that cannot be
// reached: a NetworkPolicy may keep ballast from the pods. Reader reads past any cache. Count, which may be nil, is how
// many Applications each server has, by a listing of at most that age, and when that was so; ByServer, which may be
// nil, how many of them give the server and not the cluster's name.
type Observer struct {
	Reader client.Reader
	Scrape *scrape.Scraper
	Count  Count
	Clock  clock.PassiveClock

	ByServer Count

	// Listed, which may be nil, is what the last listing went by, and what keeps Applications from being found.
	Listed func() (setting string, unlisted []string)

	waits    time.Duration // for a listing; 0 stands for besideFor
	all      asked         // of Count
	byServer asked         // of ByServer
}

// Count is how many Applications each server of a fleet has, by a listing of at most that age, and when that was so.
type Count func(ctx context.Context, namespace string, fleet discover.Fleet, age time.Duration) (ownership.Applications, time.Time, error)

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

// conflictsEvery is how long what else has a say over the workload is believed.
const conflictsEvery = 5 * time.Minute

// A look that lasts longer than besideFor is given up, and what was seen last stands: who may make what is looked at
// may make any number of it, and no cycle may wait for that. It is tried again a minute later.
const (
	besideFor   = 20 * time.Second
	besideAgain = time.Minute
)

// FindConflicts looks for autoscalers and disruption budgets from time to time.
func (a *Asker) FindConflicts(ctx context.Context, in input.Inputs) (found []input.Finding) {
	for _, f := range a.neighbours(ctx, in) {
		found = append(found, input.Finding{Kind: string(f.Kind), Subject: f.Subject, Message: f.Message})
	}
	return found
}

// neighbours are what was found last, or is found now where that is too old.
func (a *Asker) neighbours(ctx context.Context, in input.Inputs) []conflicts.Finding {
	if a.Conflicts == nil || in.InForce == nil {
		return nil
	}
	if since := a.Clock.Since(a.conflictsAt); !a.conflictsAt.IsZero() && since >= 0 && since < conflictsEvery {
		return a.found
	}
	ctx, end := context.WithTimeout(ctx, besideFor)
	defer end()
	found, err := a.Conflicts(ctx, *in.InForce)
	if err != nil {
		a.Log.Error(err, "looking for autoscalers and disruption budgets; it is tried again")
		a.found, a.conflictsAt = conflicts.Standing(found, a.found), a.Clock.Now().Add(besideAgain-conflictsEvery)
		return a.found
	}
	a.found, a.conflictsAt = found, a.Clock.Now()
	return found
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

// The nodes of a large cluster are megabytes of answers, and change slowly.
const (
	manyNodes  = 500
	nodesEvery = 5 * time.Minute
)

// around is what was seen last beside the workload.
type around struct {
	at   time.Time
	of   plan.Target
	want inputs.Wants
	seen inputs.Surroundings
}

// lasts is how long it is planned with.
func (a around) lasts(interval time.Duration) time.Duration {
	if n := a.seen.Nodes; n != nil && n.Count > manyNodes {
		return max(interval, nodesEvery)
	}
	return interval
}

// Surroundings asks once an interval for what size rules read beside loads, of large clusters less often. While the API
// server does not answer, what was seen last stands, with the time at which it was.
func (a *Asker) Surroundings(ctx context.Context, in input.Inputs) inputs.Surroundings {
	want, of := inputs.WantsOf(in.Config.Size), standing.TargetOf(in.Workload)
	if a.Surround == nil || !want.Any() {
		a.around = around{}
		return inputs.Surroundings{}
	}
	last := a.around
	if last.want != want || last.of != of {
		last = around{want: want, of: of}
	}
	if age := in.Now.Sub(last.at); age >= 0 && age < last.lasts(time.Duration(in.Config.Interval)) {
		return last.seen
	}
	ctx, end := context.WithTimeout(ctx, besideFor)
	defer end()
	seen, err := a.Surround(ctx, of, want)
	if err != nil {
		a.Log.Error(err, "looking at nodes and autoscalers for size rules; what was seen last stands")
	}
	last.at, last.seen = in.Now, seen.Or(last.seen)
	a.around = last
	return last.seen
}
