package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/discover"
	"ballast/planner/discover/workload"
	"ballast/planner/installation"
	"ballast/planner/nudge"
	"ballast/planner/ownership"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/probe"
	"ballast/planner/telemetry"
)

// everywhere is a Runnable that runs on the leader and the standby alike.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// fetchers keeps one Prometheus client until its settings change: a new one a cycle would leave its idle connections
// behind.
type fetchers struct {
	settings *config.Prometheus
	target   plan.Target
	client   *poll.Prometheus
}

// get is called by the loop only, one call at a time.
func (f *fetchers) get(c config.PlannerConfig, t plan.Target) (poll.Fetcher, error) {
	if f.client != nil && f.settings == c.Poll.Prometheus && f.target == t {
		return f.client, nil
	}
	client, err := gather.NewFetcher(c, t)
	if err != nil {
		return nil, err
	}
	f.settings, f.target, f.client = c.Poll.Prometheus, t, client
	return client, nil
}

// newNudger refreshes Applications. Where it may not, rollouts go on without: a new owner then begins later.
func (a *plannerApp) newNudger() *nudge.Nudger {
	return nudge.New(nudge.Options{Client: a.manager.GetClient(), Reader: a.reader, Clock: clock.RealClock{},
		Own: func(ctx context.Context) (string, bool, error) {
			_, w, err := workload.FindTarget(ctx, a.manager.GetClient(), a.loop.Config().Target,
				&plan.Plan{Target: a.target})
			if err != nil || w.ApplicationNamespaces == nil {
				return "", false, err
			}
			return *w.ApplicationNamespaces, true, nil
		},
		Report: func(p nudge.ListingProblem) {
			a.log.Info("not every Application is found", "reason", p.Reason, "message", p.Message)
		}})
}

// newObserver asks the application-controllers' pods for what they own.
func (a *plannerApp) newObserver(n *nudge.Nudger) *gather.Observer {
	return &gather.Observer{Reader: a.reader, Scrape: scrape.NewScraper(scrape.Options{}), Clock: clock.RealClock{},
		Count:    counting(n, discover.Cluster.Called),
		ByServer: counting(n, func(discover.Cluster) string { return "" }),
		Listed: func() (string, []string) {
			setting, problems := n.Listed()
			return setting, nudge.Messages(problems)
		}}
}

// counting counts the Applications of each cluster by its server and that name.
func counting(n *nudge.Nudger, called func(discover.Cluster) string) gather.Count {
	return func(ctx context.Context, namespace string, fleet discover.Fleet, age time.Duration) (ownership.Applications, time.Time, error) {
		destinations := make([]nudge.Destination, len(fleet.Clusters))
		for i, c := range fleet.Clusters {
			destinations[i] = nudge.Destination{Server: c.Shard.Server, Name: called(c)}
		}
		count, at, err := n.Count(ctx, namespace, destinations, n.Current(ctx, namespace, age))
		var forbidden *nudge.ForbiddenError
		if errors.As(err, &forbidden) {
			return nil, at, fmt.Errorf("nothing tells a cluster without Applications from one without an owner, "+
				"and no new owner is nudged: add component nudge, or set rollout.live.nudge: false: %w", err)
		}
		return count, at, err
	}
}

// newProber is the client of the probe: its warnings say how a probe came to the webhook.
func (a *plannerApp) newProber() (client.Client, error) {
	cfg := rest.CopyConfig(a.rest)
	cfg.WarningHandlerWithContext = probe.Warnings{}
	c, err := client.New(cfg, client.Options{HTTPClient: a.manager.GetHTTPClient(), Mapper: a.manager.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("setting up the probe of the webhooks: %w", err)
	}
	return c, nil
}

// newLooker looks at the webhook configuration and at the API server's version.
func (a *plannerApp) newLooker() *installation.Looker {
	return &installation.Looker{Reader: a.reader, Clock: clock.RealClock{},
		Version: func(ctx context.Context) (string, error) {
			c, err := discovery.NewDiscoveryClientForConfigAndClient(a.rest, a.manager.GetHTTPClient())
			if err != nil {
				return "", err
			}
			var v apiversion.Info
			text, err := c.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
			if err != nil {
				return "", err
			}
			err = json.Unmarshal(text, &v)
			return v.GitVersion, err
		}}
}

// resizes asks whether the API server has pods/resize.
func (a *plannerApp) resizes(ctx context.Context) (bool, error) {
	return connect.Resizes(ctx, a.rest, a.manager.GetHTTPClient())
}

var errCaches = errors.New("the caches of Secrets, workloads and the plan have not synced yet")

// cachesSynced is the readiness of leader and standby: one that took over without it would see an empty fleet.
func (a *plannerApp) cachesSynced(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if !a.manager.GetCache().WaitForCacheSync(ctx) {
		return errCaches
	}
	return nil
}

func (a *plannerApp) cyclesEnd(*http.Request) error { return a.loop.Alive() }

// newEmitter writes events on the plan ConfigMap and, where they concern it, on the workload, or on a cluster's Secret,
// and nothing that does not pass the gate: not every event comes from the loop.
func newEmitter(recorder events.EventRecorder, c config.PlannerConfig) func(discover.Workload, ...telemetry.Event) {
	planMap := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Target.Namespace, Name: c.Plan.ConfigMap}}
	return telemetry.PrintableEvents(func(w discover.Workload, list ...telemetry.Event) {
		for _, e := range list {
			targets := []runtime.Object{planMap}
			if e.Workload && w.Name != "" {
				targets = append(targets, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1",
					Kind: w.Kind},
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: types.UID(w.UID)}})
			}
			if e.Secret.Name != "" {
				targets = []runtime.Object{&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1",
					Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{Namespace: c.Target.Namespace, Name: e.Secret.Name,
						UID: types.UID(e.Secret.UID)}}}
			}
			for _, t := range targets {
				recorder.Eventf(t, nil, e.Type, e.Reason, actionOf(e), "%s", e.Message)
			}
		}
	})
}

// actionOf is an action that differs where the message does: of events of one action, the recorder shows the first
// message alone.
func actionOf(e telemetry.Event) string {
	h := fnv.New32a()
	h.Write([]byte(e.Message))
	return fmt.Sprintf("Plan-%08x", h.Sum32())
}
