// Package planner is `ballast planner`.
package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ballast/cmd/ballast/ending"
	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/settings"
	"ballast/cmd/ballast/version"
	"ballast/planner/apply"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/conflicts"
	"ballast/planner/controller"
	"ballast/planner/controller/wiring"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/discover/workload"
	"ballast/planner/paged"
	"ballast/planner/plan"
	"ballast/planner/probe"
	"ballast/planner/rewatch"
	"ballast/planner/size/inputs"
	"ballast/planner/store"
	"ballast/planner/surroundings"
	"ballast/planner/telemetry"
)

// stopGrace is how long a planner that is told to end waits for its parts: a leader takes up to 5 s to finish what it
// writes, and then gives its Lease back; the kubelet kills what runs for 30 s.
const stopGrace = 10 * time.Second

// options are the flags of `ballast planner`.
type options struct {
	log         serve.LogOptions
	config      string
	bindAddress string
	metricsPort int
	healthPort  int
	pageAddress string
	pageHosts   []string
	identity    string
	grace       time.Duration // that a target stays another installation's; 0: conflicts.DefaultGrace
	stopGrace   time.Duration // for parts that do not end; 0: stopGrace
}

// Memory is below the shipped Deployment's limit.
func Memory() serve.Memory { return serve.Memory{Limit: 420 << 20, Container: 512 << 20} }

const plannerHelp = `Run the planner: measure the fleet, decide which replica owns which cluster, write the plan, and keep what stands in
agreement with it. Two replicas run it; the one that holds the Lease ballast-<workload> plans, the other takes over from the
plan and history ConfigMaps and moves nothing by doing so. A planner with another plan ConfigMap or another user stands by,
is not ready, and says who owns the workload, until that one has been gone for ten minutes.

It needs the ServiceAccount of the shipped manifests: in Argo CD's namespace it reads Secrets, ConfigMaps, workloads, their pods, and
what else scales or guards them, and beside it the webhook configuration that it is installed with. It patches data.shard of cluster
Secrets; of the application-controller's workload the replicas, ARGOCD_CONTROLLER_REPLICAS, the container's resources and the restart
annotation; the size of its running pods (pods/resize); and, with component nudge, an annotation of Applications. It writes its
ConfigMaps ballast-plan, ballast-history and ballast-plan-status, the key in Secret ballast-plan-key that vouches for the first two,
its Lease and events.

How far it goes is the configuration's mode: Observe (default) writes these last and nothing of Argo CD's, Hold keeps what is, Enforce
moves and scales.
Every replica serves a page of the fleet on its loopback, which only shows: kubectl -n argocd port-forward deploy/ballast-planner 8082,
then http://localhost:8082. Of a cluster Secret it has the name, the cluster's name and its server.

The configuration is read again when its file changes; a mistake keeps the last good one and is told by event, log and metric.`

// NewCommand makes `ballast planner`.
func NewCommand() *cobra.Command { return command(&options{}) }

// command is the command that puts its flags there.
func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "planner",
		Short:   "Run the planner, one of which leads",
		Long:    plannerHelp,
		Example: `  ballast planner --config=config.yaml   # in its pod, or beside a kubeconfig`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	host, _ := os.Hostname()
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "/etc/ballast/config/config.yaml",
		"configuration `file`; \"ballast config default\" prints one")
	f.StringVar(&o.bindAddress, "bind-address", "", "address of both ports (default: all addresses)")
	f.IntVar(&o.metricsPort, "metrics-port", 8080, "port of /metrics, plain HTTP")
	f.IntVar(&o.healthPort, "health-port", 8081, "port of /healthz and /readyz, plain HTTP")
	f.StringVar(&o.pageAddress, "page-address", "127.0.0.1:8082",
		"`address` of the page for people, plain HTTP, read by kubectl port-forward; empty for none")
	f.StringSliceVar(&o.pageHosts, "page-host", nil,
		"a `name` by which the page may be asked for beside localhost, where --page-address is no loopback's")
	f.StringVar(&o.identity, "identity", envOr("POD_NAME", host), "name of this replica in the plan's decided-by")
	o.log.Register(cmd)
	return cmd
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// errRestart ends the process where a new configuration concerns what is watched or elected; the kubelet starts it
// again.
var errRestart = errors.New("the new configuration names another namespace, target, selector or ConfigMap, or labels that no group asked for: restarting to take it over")

func (o *options) run(ctx context.Context) error {
	log, err := o.log.Logger()
	if err != nil {
		return err
	}
	log = log.WithName("planner")
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	cfg, err := ctrlconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	// A wave of 5,000 stamps should take seconds; the applier bounds what goes at once.
	cfg.UserAgent, cfg.QPS, cfg.Burst = "ballast-planner/"+version.Build(), 200, 400

	Memory().Bound()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	app := &plannerApp{options: o, log: log, rest: cfg, stop: stop, metrics: telemetry.NewMetrics(ctrlmetrics.Registry)}
	return app.run(ctx)
}

// plannerApp only wires: what it wires stands in packages of its own.
type plannerApp struct {
	options *options
	log     logr.Logger
	rest    *rest.Config
	stop    context.CancelCauseFunc
	metrics *telemetry.Metrics
	config  *configfile.Reloader
	target  plan.Target
	found   discover.Workload // the target as it was found
	user    string
	owner   *conflicts.Lock
	manager manager.Manager
	reader  client.Client // past the cache, a bounded answer at a time
	loop    *controller.Loop
}

// run plans until the context ends, and returns soon after that, whatever its parts wait for.
func (a *plannerApp) run(ctx context.Context) error {
	grace := cmp.Or(a.options.stopGrace, stopGrace)
	err := ending.Within(ctx, grace, func() error { return a.work(ctx) })
	switch {
	case errors.Is(err, ending.ErrLeftBehind):
		a.log.Info("ending before everything has stopped: most likely the API server does not answer; "+
			"a Lease that is held expires", "grace", grace.String())
	case errors.Is(context.Cause(ctx), errRestart):
		a.log.Info("restarting", "reason", errRestart.Error())
	case ctx.Err() != nil:
		a.log.Info("stopped") // asked to: what did not come about, or was given up, on the way is no failure
	default:
		return err
	}
	return nil
}

func (a *plannerApp) work(ctx context.Context) error {
	if err := a.loadConfig(); err != nil {
		return err
	}
	if err := a.findTarget(ctx); err != nil {
		return err
	}
	if err := a.assemble(ctx); err != nil {
		return err
	}
	return a.manager.Start(ctx)
}

func (a *plannerApp) loadConfig() error {
	var err error
	var first config.PlannerConfig
	a.config, err = configfile.NewReloader(a.options.config, configfile.ReloaderOptions{
		Checks: []configfile.Check{settings.CheckMetrics},
		OnChange: func(c config.PlannerConfig) {
			if needsRestart(first, c) {
				a.stop(errRestart)
				return
			}
			a.log.Info("took over a new configuration", "mode", c.Mode)
			a.loop.ConfigChanged(nil)
		},
		OnError: func(err error) {
			a.log.Error(err, "refused the new configuration; the last good one stays in force")
			a.loop.ConfigChanged(err)
		},
	})
	if err == nil {
		first = a.config.Current()
	}
	return err
}

// needsRestart reports whether what was set up once, watches and the Lease, would no longer fit.
func needsRestart(a, b config.PlannerConfig) bool {
	selects := metav1.FormatLabelSelector(&a.Discover.Selector) != metav1.FormatLabelSelector(&b.Discover.Selector)
	reads := !slices.Equal(a.Partition.LabelKeys(), b.Partition.LabelKeys())
	return a.Target != b.Target || a.Plan != b.Plan || selects || reads
}

// findTarget waits for the workload, since the Lease is named after it, and asks who we are.
func (a *plannerApp) findTarget(ctx context.Context) error {
	c, err := client.New(paged.Bounded(a.rest), client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to %q: %w", a.rest.Host, err)
	}
	for {
		err := a.identify(ctx, c)
		if err == nil {
			return nil
		}
		a.log.Error(err, "waiting for the application-controller's workload")
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the application-controller's workload: %w", err)
		case <-time.After(5 * time.Second):
		}
	}
}

func (a *plannerApp) identify(ctx context.Context, c client.Client) (err error) {
	of, err := ownPlan(ctx, c, a.config.Current())
	if err != nil {
		return err
	}
	want := a.config.Current().Target
	if a.target, a.found, err = workload.FindTarget(ctx, workload.Few(c, want, of), want, of); err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return fmt.Errorf("asking the API server who we are: %w", err)
	}
	a.user = review.Status.UserInfo.Username
	return nil
}

// ownPlan is the plan that stands, if this installation's planners wrote it: whoever may write there must not choose
// which workload is the target, nor have it be one that is not there.
func ownPlan(ctx context.Context, c client.Client, cfg config.PlannerConfig) (*plan.Plan, error) {
	st := store.New(store.Options{Client: c, Reader: c, Namespace: cfg.Target.Namespace,
		Plan: cfg.Plan.ConfigMap, History: cfg.Plan.History, Key: store.KeyName(cfg.Plan.ConfigMap)})
	if err := st.Peek(ctx); err != nil {
		return nil, err
	}
	stands, err := st.Read(ctx)
	return stands.Document.Plan, err
}

// assemble makes the manager with its caches, and the loop that it runs on the leader.
func (a *plannerApp) assemble(ctx context.Context) error {
	c := a.config.Current()
	selector, err := discover.Selector(c.Discover.Selector)
	if err != nil {
		return fmt.Errorf("reading discover.selector: %w", err)
	}
	if a.owner, err = a.newOwner(c); err != nil {
		return err
	}
	// What its caches list is bounded, too: rewatch reads it page by page.
	a.manager, err = ctrl.NewManager(paged.Bounded(a.rest), ctrl.Options{
		Logger:                              a.log,
		LeaderElection:                      true,
		LeaderElectionID:                    a.owner.Describe(), // a label of the election's metrics
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: a.owner,
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // its ports have no bounds: see servePlain
		// ConfigMaps are read live: few and rare, and of Argo CD's namespace none but the plan's concerns us as a
		// watch.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}},
		Cache: cache.Options{
			NewInformer:       rewatch.NewInformer,
			DefaultNamespaces: map[string]cache.Config{c.Target.Namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Label: selector,
					Transform: secrets.Transform(selector, c.Partition.LabelKeys()...)},
				&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", c.Plan.ConfigMap)},
				// Of others' workloads there may be any number, of any size.
				&appsv1.StatefulSet{}: {Field: fields.OneTermEqualSelector("metadata.name", a.target.Name)},
				&appsv1.Deployment{}:  {Field: fields.OneTermEqualSelector("metadata.name", a.target.Name)},
			},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	probes, err := a.newProber()
	if err != nil {
		return err
	}
	options := client.Options{Scheme: a.manager.GetScheme(), Mapper: a.manager.GetRESTMapper()}
	if a.reader, err = client.New(a.manager.GetConfig(), options); err != nil {
		return fmt.Errorf("making a client that reads past the cache: %w", err)
	}
	a.loop = a.newLoop(c, probes)
	if err := a.watch(ctx, c); err != nil {
		return err
	}
	if err := a.servePlain(); err != nil {
		return err
	}
	if err := a.servePage(); err != nil {
		return err
	}
	if err := a.manager.Add(manager.RunnableFunc(a.loop.Run)); err != nil { // needs the Lease, as every plain Runnable
		return fmt.Errorf("adding the loop: %w", err)
	}
	return a.manager.Add(everywhere(a.config.Run))
}

// servePlain adds the plain ports, which answer before the caches have synced.
func (a *plannerApp) servePlain() error {
	o := a.options
	health := serve.HealthHandler(serve.Checks{"cycles": a.cyclesEnd},
		serve.Checks{"caches": a.cachesSynced, "owner": a.ownsTarget})
	for name, port := range map[string]struct {
		number  int
		handler http.Handler
	}{"metrics": {o.metricsPort, serve.MetricsHandler(ctrlmetrics.Registry, clock.RealClock{})},
		"health": {o.healthPort, health}} {
		listener, err := serve.ListenPlain(o.bindAddress, port.number)
		if err != nil {
			return err
		}
		server := &manager.Server{Name: name, Server: serve.PlainServer(port.handler), Listener: listener,
			ShutdownTimeout: ptr.To(time.Second)}
		if err := a.manager.Add(server); err != nil {
			return fmt.Errorf("adding the port of %s: %w", name, err)
		}
	}
	return nil
}

func (a *plannerApp) newLoop(c config.PlannerConfig, probes client.Client) *controller.Loop {
	nudger := a.newNudger()
	st := store.New(store.Options{Client: a.manager.GetClient(), Reader: a.reader, Namespace: c.Target.Namespace,
		Plan: c.Plan.ConfigMap, History: c.Plan.History, Key: store.KeyName(c.Plan.ConfigMap)})
	return controller.NewLoop(wiring.Options{
		Config: a.config.Current,
		Reader: a.manager.GetClient(),
		Store:  st,
		Applier: apply.New(apply.Options{Client: a.manager.GetClient(), Reader: a.reader,
			Clock: clock.RealClock{}, Nudger: nudger}),
		NewFetcher: (&fetchers{}).get,
		Observe:    a.newObserver(nudger).Observe,
		Conflicts: func(ctx context.Context, p plan.Plan) ([]conflicts.Finding, error) {
			return conflicts.Look(ctx, a.reader, p)
		},
		Surround: func(ctx context.Context, t plan.Target, w inputs.Wants) (inputs.Surroundings, error) {
			return surroundings.Look(ctx, a.reader, t, w, time.Now())
		},
		Probe: func(ctx context.Context, h probe.Held) probe.Result {
			return probe.Ask(ctx, probes, h)
		},
		Installed:   a.newLooker().Look,
		Resizes:     a.resizes,
		Emit:        newEmitter(a.manager.GetEventRecorder("ballast-planner"), c),
		Metrics:     a.metrics,
		Log:         a.log,
		Clock:       clock.RealClock{},
		Identity:    a.options.identity,
		PlannerUser: a.user,
	})
}

// watch wakes the loop when Secrets, workloads or the plan change; on a standby nobody listens.
func (a *plannerApp) watch(ctx context.Context, c config.PlannerConfig) error {
	changed := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.loop.Changed() },
		UpdateFunc: func(before, after any) {
			if workload.Differ(before, after) {
				a.loop.Changed()
			}
		},
		DeleteFunc: func(any) { a.loop.Changed() },
	}
	planSeen := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { a.planSeen(c, o) },
		UpdateFunc: func(_, o any) { a.planSeen(c, o) },
		DeleteFunc: func(o any) { a.planGone(c, o) },
	}
	workload := client.Object(&appsv1.StatefulSet{})
	if a.target.Kind == plan.Deployment {
		workload = &appsv1.Deployment{}
	}
	for _, w := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{{&corev1.Secret{}, changed}, {workload, changed}, {&corev1.ConfigMap{}, planSeen}} {
		informer, err := a.manager.GetCache().GetInformer(ctx, w.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", w.object, err)
		}
		if _, err := informer.AddEventHandler(w.handler); err != nil {
			return fmt.Errorf("watching %T: %w", w.object, err)
		}
	}
	return nil
}

func (a *plannerApp) planSeen(c config.PlannerConfig, o any) {
	if cm, ok := o.(*corev1.ConfigMap); ok && cm.Name == c.Plan.ConfigMap {
		a.loop.PlanSeen(cm)
	}
}

// planGone is told of a deletion, by the last state that the watch knows where it missed it.
func (a *plannerApp) planGone(c config.PlannerConfig, o any) {
	if missed, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	if cm, ok := o.(*corev1.ConfigMap); ok && cm.Name == c.Plan.ConfigMap {
		a.loop.PlanGone(cm)
	}
}
