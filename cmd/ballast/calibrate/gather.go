package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/say"
	"ballast/planner/calibrate"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/loads"
	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"
)

// mostSteps bounds how often everything is asked: a week of 10 minutes.
const mostSteps = 1008

// Questions are what is asked beside the configured metrics, and when. PodLabel names the pod in what the queries
// answer; an empty query is the default one.
type Questions struct {
	Range, Step           time.Duration
	MemoryQuery, CPUQuery string
	PodLabel              string
}

// gather asks a cluster and a Prometheus.
func (o *options) gather(ctx context.Context, cmd *cobra.Command, a asked, progress io.Writer) (calibrate.Samples, error) {
	c, err := o.source.Client()
	if err != nil {
		return calibrate.Samples{}, err
	}
	in, err := o.source.Prepare(ctx, cmd, c, progress)
	if err != nil {
		return calibrate.Samples{}, err
	}
	target := plan.Target{Kind: in.Workload.Kind, Namespace: in.Workload.Namespace, Name: in.Workload.Name}
	prometheus, err := gather.NewFetcher(in.Config, target)
	if err != nil {
		return calibrate.Samples{}, err
	}
	say.To(progress, "asking %s about %s, every %s of %s\n", in.Config.Poll.Prometheus.URL,
		say.Plural(len(in.Discovered.Secrets), "cluster Secret"), a.Step, a.Range)
	s, err := Measure(ctx, prometheus, in, a.Questions, progress)
	if err != nil {
		return s, err
	}
	if s.Limits, err = readLimits(ctx, c, in.Workload); err != nil {
		say.To(progress, "note: the workload's limits are not known, --memory-limit and --cpu-limit say them: %v\n",
			err)
	}
	return s, nil
}

// readLimits are those that the workload's template has now.
func readLimits(ctx context.Context, c client.Client, w discover.Workload) (map[calibrate.Resource]float64, error) {
	key := client.ObjectKey{Namespace: w.Namespace, Name: w.Name}
	var template corev1.PodTemplateSpec
	if w.Kind == plan.Deployment {
		var d appsv1.Deployment
		if err := c.Get(ctx, key, &d); err != nil {
			return nil, err
		}
		template = d.Spec.Template
	} else {
		var s appsv1.StatefulSet
		if err := c.Get(ctx, key, &s); err != nil {
			return nil, err
		}
		template = s.Spec.Template
	}
	at := slices.IndexFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == w.Container })
	if at < 0 {
		return nil, fmt.Errorf("it has no container %q", w.Container)
	}
	return limitsOf(template.Spec.Containers[at]), nil
}

// used are the queries of what the pods use.
func (q Questions) used(w discover.Workload, matchers map[string]string) []poll.Metric {
	target := plan.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}
	pods := fmt.Sprintf(`namespace="%s",%s%s`, promql.Escape(w.Namespace), promql.PodsMatcher(q.PodLabel, target),
		promql.Matchers(matchers))
	if w.Container != "" {
		pods += fmt.Sprintf(`,container="%s"`, promql.Escape(w.Container))
	}
	memory := cmp.Or(q.MemoryQuery, fmt.Sprintf(`max by (%s) (max_over_time(container_memory_working_set_bytes{%s}[30m]))`, q.PodLabel, pods))
	cpu := cmp.Or(q.CPUQuery, fmt.Sprintf(`max by (%s) (rate(container_cpu_usage_seconds_total{%s}[30m]))`, q.PodLabel,
		pods))
	match := poll.Match{Label: q.PodLabel}
	return []poll.Metric{
		{ID: string(calibrate.Memory), Query: memory, Match: match},
		{ID: string(calibrate.CPU), Query: cpu, Match: match},
	}
}

// podLabels are names that a label may have: they become part of a query.
var podLabels = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Measure asks at each step what the planner would have asked then, and what the pods used.
func Measure(ctx context.Context, f poll.Fetcher, in input.Inputs, q Questions, progress io.Writer) (calibrate.Samples, error) {
	s := calibrate.Samples{}
	for _, m := range loads.MetricsOf(in.Config) {
		s.Metrics = append(s.Metrics, m.ID)
	}
	fleet := discover.All(in.Discovered, in.Now)
	queries := q.used(in.Workload, in.Config.Poll.Prometheus.Matchers)
	var newest measure.Table
	var faults faults
	asked := 0
	for at := in.Now.Add(-q.Range); !at.After(in.Now); at = at.Add(q.Step) {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		asked++
		fetched, owners := gather.Measure(ctx, f, in.Config, in.Discovered, at)
		use := f.Fetch(ctx, queries, fleet, at)
		table, err := joined(in.Config, fleet, fetched, at)
		if err != nil {
			return s, err
		}
		if !faults.note(at, fetched, owners, use) {
			newest = table
			s.Rows = append(s.Rows, rowsOf(table, ownersOf(owners, fleet), use, at)...)
		}
	}
	faults.tell(progress, asked)
	if len(s.Rows) == 0 {
		return s, faults.none(in.Config.Poll.Prometheus.URL)
	}
	s.References, s.Weights = references(in, newest), loads.WeightsOf(in.Config)
	return s, s.Check()
}

func joined(c config.PlannerConfig, fleet discover.Fleet, fetched []poll.Fetched, at time.Time) (measure.Table, error) {
	return measure.Join(loads.MetricsOf(c), fleet, fetched, measure.LastGood{},
		measure.Options{MaxDrop: 1, MaxAge: time.Duration(c.Poll.Prometheus.MaxAge)}, at)
}

// references are what the load's values are shares of: the plan's in force, else today's totals, as a first plan takes
// them; none where the configuration normalizes otherwise.
func references(in input.Inputs, newest measure.Table) map[string]float64 {
	if in.Config.Normalize.Reference == nil {
		return nil
	}
	refs := map[string]float64{}
	for _, c := range newest.Columns {
		total := 0.0
		for _, v := range c.Values {
			total += v
		}
		refs[c.ID] = cmp.Or(total, 1)
		if in.InForce == nil {
			continue
		}
		if ref, err := strconv.ParseFloat(in.InForce.References[c.ID], 64); err == nil && ref > 0 && !math.IsInf(ref, 0) {
			refs[c.ID] = ref
		}
	}
	return refs
}

// ownersOf are the clusters of each pod, and the pods that share one with another: a moment ago it moved, and nobody
// can say what of it they used.
func ownersOf(owners poll.Fetched, fleet discover.Fleet) map[string][]int {
	clusters := map[string][]int{}
	for i, c := range fleet.Clusters {
		clusters[c.Shard.Server] = append(clusters[c.Shard.Server], i)
	}
	of, first, unsure := map[string][]int{}, map[string]string{}, map[string]bool{}
	for _, sample := range owners.Samples {
		pod, server, ok := strings.Cut(sample.Key, "|")
		if !ok || strings.HasSuffix(server, "/") { // an Application that names no cluster: every pod shows it
			continue
		}
		server = plan.NormalizeServer(server)
		if other, twice := first[server]; twice && other != pod {
			unsure[other], unsure[pod] = true, true
		}
		first[server] = pod
		of[pod] = append(of[pod], clusters[server]...)
	}
	for pod := range unsure {
		delete(of, pod)
	}
	return of
}

// rowsOf are the pods of one time.
func rowsOf(t measure.Table, owns map[string][]int, use []poll.Fetched, at time.Time) (rows []calibrate.Row) {
	used := map[string]map[string]float64{}
	for _, f := range use {
		for _, s := range f.Samples {
			if used[s.Key] == nil {
				used[s.Key] = map[string]float64{}
			}
			if usable := s.Value >= 0 && !math.IsInf(s.Value, 0); usable {
				used[s.Key][f.Metric] = max(used[s.Key][f.Metric], s.Value)
			}
		}
	}
	for pod, clusters := range owns {
		row := calibrate.Row{Pod: pod, At: at.UTC(), Values: make([]float64, len(t.Columns))}
		slices.Sort(clusters)
		for _, i := range slices.Compact(clusters) {
			for k, c := range t.Columns {
				row.Values[k] += c.Values[i]
			}
		}
		if v, ok := used[pod][string(calibrate.Memory)]; ok {
			row.Memory = &v
		}
		if v, ok := used[pod][string(calibrate.CPU)]; ok {
			row.CPU = &v
		}
		if row.Memory != nil || row.CPU != nil {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b calibrate.Row) int { return cmp.Compare(a.Pod, b.Pod) })
	return rows
}

// faults are the times at which something was not answered.
type faults struct {
	times int
	first string
	seen  map[string]bool // metrics with a sample
}

// note reports whether a time is left out.
func (f *faults) note(at time.Time, fetched []poll.Fetched, owners poll.Fetched, use []poll.Fetched) bool {
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	for _, a := range slices.Concat(fetched, []poll.Fetched{owners}, use) {
		f.seen[a.Metric] = f.seen[a.Metric] || len(a.Samples) > 0
		if a.Err != "" {
			f.times++
			f.first = cmp.Or(f.first, fmt.Sprintf("%s at %s: %s", a.Metric, at.UTC().Format(time.RFC3339), a.Err))
			return true
		}
	}
	return false
}

func (f *faults) tell(w io.Writer, asked int) {
	if f.times > 0 {
		say.To(w, "note: %d of %d times are left out, the first: %s\n", f.times, asked, f.first)
	}
	for _, of := range calibrate.Resources() {
		if f.times < asked && !f.seen[string(of)] {
			say.To(w, "note: Prometheus has no %s of the pods: does it scrape the kubelets' cAdvisor? --%s-query says what else tells it\n", of, of)
		}
	}
}

// none is why there is no sample at all.
func (f *faults) none(url string) error {
	switch {
	case f.first != "":
		return fmt.Errorf("asking %s: every time is left out, the first: %s", url, f.first)
	case !f.seen[string(calibrate.Memory)] && !f.seen[string(calibrate.CPU)]:
		return fmt.Errorf("asking %s: it has neither memory nor CPU of the application-controller's pods: "+
			"scrape the kubelets' cAdvisor, or say with --memory-query and --cpu-query what else tells them, "+
			"like process_resident_memory_bytes", url)
	case !f.seen["owner"]:
		return fmt.Errorf("asking %s: it has no argocd_app_info of the pods, so that nobody knows which clusters each had", url)
	}
	return errors.New("no pod's use goes with its clusters: --pod-label names the label with the pod's name in what the queries answer")
}
