package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/controller/wiring"
	"ballast/planner/cycle/loads"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/discover/workload"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/poll/promql"
)

// ownerMetric asks which pod reconciles which server. The two labels are joined into one, which is what a sample's key
// is.
func ownerMetric() poll.Metric {
	return poll.Metric{
		ID:    "owner",
		Query: `label_join(group by ({{.pod}}, dest_server) (argocd_app_info{ {{.pods}},dest_server!="" } {{.ofTargets}}), "owner", "|", "{{.pod}}", "dest_server")`,
		Match: poll.Match{Label: "owner"},
	}
}

// NewFetcher makes the Prometheus client that the configuration describes, for the pods of a target.
func NewFetcher(c config.PlannerConfig, target plan.Target) (*poll.Prometheus, error) {
	p := c.Poll.Prometheus
	if p == nil {
		return nil, errors.New("the configuration names no Prometheus: poll.pods asks the application-controllers' pods, which only a running planner does")
	}
	return poll.New(poll.Config{URL: p.URL, Timeout: time.Duration(p.Timeout), Within: time.Duration(c.Interval),
		Concurrency: p.Concurrency,
		Pods:        promql.PodsMatcher(p.PodLabel, target) + promql.Matchers(p.Matchers), PodLabel: p.PodLabel,
		Namespace: target.Namespace, HTTP: p.HTTP.HTTPClientConfig})
}

// Look reads what stands in Argo CD's namespace: the cluster Secrets, of too many those that are known first, Argo CD's
// settings and the workload, that of the plan if there is one.
func Look(ctx context.Context, r client.Reader, c config.PlannerConfig, known discover.Known, of *plan.Plan) (discover.Input, discover.Workload, error) {
	selector, err := discover.Selector(c.Discover.Selector)
	if err != nil {
		return discover.Input{}, discover.Workload{}, fmt.Errorf("reading discover.selector: %w", err)
	}
	in, err := secrets.ReadInput(ctx, r, c.Target.Namespace, selector, known, c.Partition.LabelKeys()...)
	if err != nil {
		return discover.Input{}, discover.Workload{}, err
	}
	_, w, err := workload.FindTarget(ctx, r, c.Target, of)
	return in, w, err
}

// Looker looks at what stands for cycles and repairs, one at a time: a list of more Secrets than are planned takes
// room.
type Looker struct {
	*wiring.Options
	looking sync.Mutex
}

// Stands is what stands now, as Look finds it; one look at a time.
func (l *Looker) Stands(ctx context.Context, c config.PlannerConfig, known discover.Known, of *plan.Plan) (discover.Input, discover.Workload, error) {
	l.looking.Lock()
	defer l.looking.Unlock()
	return Look(ctx, l.Reader, c, known, of)
}

// Measure asks Prometheus about a fleet: the metrics, those of replicas behind those of clusters, and who owns what.
func Measure(ctx context.Context, f poll.Fetcher, c config.PlannerConfig, in discover.Input, now time.Time) ([]poll.Fetched, poll.Fetched) {
	fleet := discover.All(in, now)
	metrics := slices.Concat(loads.MetricsOf(c), loads.ReplicaMetricsOf(c))
	fetched := f.Fetch(ctx, append(append([]poll.Metric{}, metrics...), ownerMetric()), fleet, now)
	return fetched[:len(metrics)], fetched[len(metrics)]
}

// Coverage says in a few words where a metric's values come from: "24 Fresh" or "22 Fresh, 2 Held".
func Coverage(c measure.Column) string {
	count := map[measure.Flag]int{}
	for _, f := range c.Flags {
		count[f]++
	}
	var parts []string
	for _, f := range measure.Flags() {
		if count[f] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[f], f))
		}
	}
	return strings.Join(parts, ", ")
}
