package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/discover/workload"
	"ballast/planner/failover/health"
	"ballast/planner/nudge"
	"ballast/planner/ownership"
	"ballast/planner/ownership/podlist"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
)

// look is one look at the fleet, and what follows from it and those before.
type look struct {
	At       time.Time
	Replicas []replica
	Owners   []owner // by replica, pod and cluster
	Orphans  []ownership.Orphan
	Doubled  []ownership.Doubled
	Unwell   []health.Sick
	Trouble  []string // what could not be seen
	memory   recalled
	asked    bool // every ready pod answered
}

// replica is one pod, and how many clusters it has.
type replica struct {
	Replica  int
	Pod      string
	Ready    bool
	Answered bool
	Clusters int
}

// owner is a pod that has a cluster.
type owner struct {
	Replica int
	Pod     string
	Cluster string
}

// recalled is what one look hands to the next.
type recalled struct {
	owners   ownership.Memory
	replicas health.Memory
	begun    time.Time
}

// watcher looks.
type watcher struct {
	reader       client.Reader // reads no answer that is too large
	clusters     client.Reader // reads cluster Secrets, page by page
	namespace    string
	clock        clock.Clock
	scraper      *scrape.Scraper
	proxy        *proxy // nil: pods are asked at their own addresses
	applications *nudge.Nudger
	selects      selects
	figures      *Figures   // nil: none are served
	seen         servers    // where no Secret may be read
	found        *plan.Plan // of the workload that was found before: who takes its labels off does not hide it
	last         recalled
}

// listedFor is how old a listing of Applications may be.
const listedFor = 2 * time.Minute

// mostApplications is what a listing of Applications may take, some 100,000 of them: the shipped Deployment has 256
// MiB, and holds the last one while it reads the next.
const mostApplications = 32 << 20

func (w *watcher) look(ctx context.Context) (*look, error) {
	target, workload, err := w.controller(ctx)
	if err != nil {
		return nil, err
	}
	now := w.clock.Now().UTC()
	pods, err := podlist.List(ctx, w.reader, target, workload.UID, now)
	if err != nil {
		return nil, err
	}
	if w.proxy != nil {
		w.proxy.knows(pods.Pods)
	}
	reports := w.scraper.Scrape(ctx, pods.Pods, w.clock.Now)
	l := &look{At: now, Trouble: pods.Problems}
	fleet, count := w.fleet(ctx, reports, l)
	seen := ownership.Join(reports, fleet, count)
	seen.Setting = w.unlisted(l)
	l.judge(w.last, pods, reports, seen.Doubted(w.last.owners, now), workload, now)
	w.last = l.memory
	w.figures.show(l)
	return l, nil
}

// controller is the application-controller: the one that was found before as long as it is there, whatever somebody
// puts beside it or takes off it, and else the one that bears Argo CD's labels.
func (w *watcher) controller(ctx context.Context) (plan.Target, discover.Workload, error) {
	if w.found != nil {
		gone, err := workload.IsGone(ctx, w.reader, w.found.Target)
		if err != nil {
			return plan.Target{}, discover.Workload{}, err
		}
		if gone {
			w.found = nil
		}
	}
	asked := plan.Target{Namespace: w.namespace}
	target, found, err := workload.FindTarget(ctx, workload.Few(w.reader, asked, w.found), asked, w.found)
	if err == nil {
		w.found = &plan.Plan{Target: target}
	}
	return target, found, err
}

// fleet is every cluster that is known of: by its Secret, where those may be read, else by what pods show and
// Applications name.
func (w *watcher) fleet(ctx context.Context, reports []scrape.PodReport, l *look) (fleet discover.Fleet, count ownership.Applications) {
	in, doubt, err := w.secrets(ctx, l.At)
	switch {
	case err == nil:
		if doubt != "" {
			l.Trouble = append(l.Trouble, doubt)
		}
		fleet = discover.All(in, l.At)
	case !apierrors.IsForbidden(err):
		l.Trouble = append(l.Trouble, say.OneLine(err.Error()))
	}
	if err != nil {
		fleet = w.shown(ctx, reports, l)
	}
	destinations := make([]nudge.Destination, len(fleet.Clusters))
	for i, c := range fleet.Clusters {
		destinations[i] = nudge.Destination{Server: c.Shard.Server, Name: c.Called()}
	}
	found, _, err := w.applications.Count(ctx, w.namespace, destinations,
		w.applications.Current(ctx, w.namespace, listedFor))
	if err != nil {
		l.Trouble = append(l.Trouble, "without Applications a cluster that nobody had since this began is not missed: "+say.OneLine(err.Error()))
		return fleet, nil
	}
	return fleet, found
}

// unlisted tells which Applications are not found, and is what the last listing went by.
func (w *watcher) unlisted(l *look) (setting string) {
	setting, problems := w.applications.Listed()
	for _, p := range problems {
		why := p.Message
		if p.Reason == nudge.NamespaceForbidden {
			why = "not all Applications that Argo CD's setting application.namespaces names may be listed: " +
				"let `ballast watch` list them in all namespaces"
		}
		why += "; a cluster of which none is listed, and that nobody had since this began, is not missed"
		if !slices.Contains(l.Trouble, why) {
			l.Trouble = append(l.Trouble, why)
		}
	}
	return setting
}

// secrets are the clusters' as far as they may be listed; doubt says why they may not be those that the planner takes.
func (w *watcher) secrets(ctx context.Context, now time.Time) (in discover.Input, doubt string, err error) {
	selector, doubt, err := w.selects.find(ctx, w.reader, w.namespace, now)
	if err != nil {
		return discover.Input{}, "", err
	}
	in, err = secrets.ReadInput(ctx, w.clusters, w.namespace, selector, discover.Known{})
	return in, doubt, err
}

// shown is the fleet as pods and Applications name it, by servers.
func (w *watcher) shown(ctx context.Context, reports []scrape.PodReport, l *look) discover.Fleet {
	applications, err := w.applications.Destinations(ctx, w.namespace, listedFor)
	if err != nil {
		var forbidden *nudge.ForbiddenError
		if !errors.As(err, &forbidden) {
			l.Trouble = append(l.Trouble, say.OneLine(err.Error()))
		}
	}
	l.Trouble = append(l.Trouble, w.seen.take(reports, applications, l.At)...)
	return w.seen.fleet()
}

// patience is how long a replica that is not ready is no fault.
const patience = 5 * time.Minute

// judge works out who owns what.
func (l *look) judge(
	m recalled, pods podlist.Controllers, reports []scrape.PodReport, seen ownership.Observation, w discover.Workload,
	now time.Time,
) {
	// The replica that had a cluster last is the one that it is missed of: no plan is asked.
	intended := func(cluster string) (int, bool) {
		last, known := m.owners.Last[cluster]
		return last, known
	}
	var verdict ownership.Verdict
	l.memory.owners, verdict = ownership.Judge(m.owners, seen, intended, now, ownership.Grace{})
	l.Orphans, l.Doubled, l.asked = verdict.Orphans, verdict.Doubled, seen.Asked
	rolling := w.ObservedGeneration < w.Generation || w.UpdatedReplicas < min(w.Replicas, w.CurrentReplicas)
	var sick health.Verdict
	sick, l.memory.replicas = health.Judge(
		health.Fleet{Known: true, Replicas: w.Replicas, Dynamic: pods.Dynamic, Rolling: rolling,
			Pods: scrape.Pods(reports)},
		health.Options{After: patience, Interval: time.Minute}, now, m.replicas)
	l.Unwell = sick.Sick
	l.memory.begun = cmp.Or(m.begun, now)
	clusters := map[string]int{}
	for cluster, owned := range seen.Clusters {
		for _, holder := range owned.Holders {
			p := seen.Pods[holder]
			clusters[p.Name]++
			l.Owners = append(l.Owners, owner{p.Replica, p.Name, cluster})
		}
	}
	slices.SortFunc(l.Owners, func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Cluster, b.Cluster))
	})
	for _, r := range reports {
		l.Replicas = append(l.Replicas, replica{r.Replica, r.Name, r.Ready, r.Answered(), clusters[r.Name]})
		if r.Ready && !r.Answered() {
			l.Trouble = append(l.Trouble, fmt.Sprintf("nothing is known of what %s owns: %s", r.Name,
				say.OneLine(r.Err)))
		}
	}
	slices.SortFunc(l.Replicas, func(a, b replica) int { return cmp.Or(cmp.Compare(a.Replica, b.Replica), cmp.Compare(a.Pod, b.Pod)) })
}

// settled reports whether faults have lasted for as long as a verdict takes.
func (l *look) settled() bool { return l.At.Sub(l.memory.begun) > ownership.OrphanedAfter }

// lines are the faults, one each. Of clusters without an owner those come first that somebody had.
func (l *look) lines() (all []string) {
	orphans := slices.Clone(l.Orphans)
	slices.SortStableFunc(orphans, func(a, b ownership.Orphan) int {
		return cmp.Compare(min(b.Last, 0), min(a.Last, 0)) // NoReplica is below 0
	})
	for _, o := range orphans {
		if o.Why == ownership.NotPlanned { // there is no plan here that could
			o.Why = ""
		}
		all = append(all, o.Message())
	}
	for _, d := range l.Doubled {
		all = append(all, d.Message())
	}
	for _, s := range l.Unwell {
		all = append(all, s.String())
	}
	for _, t := range l.Trouble {
		all = append(all, "not seen: "+t)
	}
	return all
}

// fault is what --once ends with.
func (l *look) fault(err error) error {
	if err != nil {
		return err
	}
	if n := len(l.Orphans) + len(l.Doubled) + len(l.Unwell); n > 0 {
		return say.ExitWith(faults, errors.New(say.Plural(n, "fault")))
	}
	return nil
}

// tell says what is new, and what is over. The first look is shown whole. Named is whether each cluster has a line with
// its owner.
func (l *look) tell(w io.Writer, before *look, named bool) {
	at := l.At.Format(time.TimeOnly)
	var known []string
	if before == nil || !slices.Equal(before.Replicas, l.Replicas) || !slices.Equal(before.Owners, l.Owners) {
		l.table(w)
		if named {
			l.owners(w, before)
		}
	}
	if before != nil {
		known = before.lines()
	}
	now := l.lines()
	news(w, at+"  ", "faults", now, known)
	news(w, at+"  over: ", "faults that are over", known, now)
	first := before == nil || len(known) > 0
	if len(now) == 0 && l.asked && first {
		say.To(w, "%s  every cluster that pods show has one owner, and every replica is well\n", at)
	}
}

// mostNews is how many lines of a kind one look says at once: a fleet that stops has one for each of its clusters, and
// whoever may create Applications any number.
const mostNews = 1000

// news says the lines that were not there before.
func news(w io.Writer, prefix, what string, lines, before []string) {
	known := make(map[string]bool, len(before))
	for _, line := range before {
		known[line] = true
	}
	said := 0
	for _, line := range lines {
		if known[line] {
			continue
		}
		if said++; said <= mostNews {
			say.To(w, "%s%s\n", prefix, line)
		}
	}
	if said > mostNews {
		say.To(w, "%sand %d more %s\n", prefix, said-mostNews, what)
	}
}

func (l *look) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say.To(t, "REPLICA\tPOD\tREADY\tCLUSTERS\tOWNS\n")
	owns := map[string][]string{}
	for _, o := range l.Owners {
		owns[o.Pod] = append(owns[o.Pod], o.Cluster)
	}
	for _, r := range l.Replicas {
		ordinal, clusters := fmt.Sprint(r.Replica), fmt.Sprint(r.Clusters)
		if r.Replica == plan.NoReplica {
			ordinal = "-"
		}
		if !r.Answered {
			clusters = "it does not say"
		}
		say.To(t, "%s\t%s\t%s\t%s\t%s\n", ordinal, r.Pod, strings.ToLower(fmt.Sprint(r.Ready)), clusters,
			say.OrDash(say.Listed(owns[r.Pod])))
	}
	_ = t.Flush() // the writer's own error comes with the next line
}

// owners is a line for each cluster and the pod that has it, of those that the look before did not have so.
func (l *look) owners(w io.Writer, before *look) {
	known := map[owner]bool{}
	if before != nil {
		for _, o := range before.Owners {
			known[o] = true
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say.To(t, "CLUSTER\tREPLICA\tPOD\n")
	for _, o := range l.Owners {
		if known[o] {
			continue
		}
		ordinal := fmt.Sprint(o.Replica)
		if o.Replica == plan.NoReplica {
			ordinal = "-"
		}
		say.To(t, "%s\t%s\t%s\n", o.Cluster, ordinal, o.Pod)
	}
	_ = t.Flush()
}
