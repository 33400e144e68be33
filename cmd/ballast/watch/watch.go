// Package watch is `ballast watch`.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/serve"
	"ballast/planner/nudge"
	"ballast/planner/ownership/scrape"
	"ballast/planner/paged"
)

const (
	viaAPIServer = "api-server"
	viaPods      = "pods"
)

type options struct {
	cluster     connect.Options
	interval    time.Duration
	via         string
	once        bool
	owners      bool
	metricsPort int
	bind        string
	selector    string
	installed   string // the ConfigMap with the planner's configuration

	clock clock.Clock // nil: the machine's
}

// NewCommand is `ballast watch`.
func NewCommand() *cobra.Command { return command(&options{}) }

// command is the command that puts its flags there.
func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Watch who owns which cluster, and say which nobody has",
		Long: `watch asks the application-controller's pods for their own metrics, again and again, and says which clusters nobody
reconciles, which several replicas do, which replicas are unwell, and which replica has which cluster. It needs no Prometheus, no
webhook and no ballast installed, and changes nothing: ten minutes after reading this you know whether your Argo CD has an orphan.

It needs list on pods, statefulsets, deployments and replicasets, list on Applications, and get on pods/proxy (--via pods asks the
pods at their own addresses instead, which works from within the cluster). Where it may list cluster Secrets it knows the clusters by
their names; else by the servers that pods show and Applications name, and an Application that names its cluster by name alone tells of
none; a server that several pods show and none reads is no cluster, but a name in Applications that Argo CD does not find. Cluster
Secrets are those that the installed planner takes for such (discover.selector, where its ConfigMap may be read), else those of
Argo CD's own label; --selector says others.

A cluster is orphaned once nobody has it for two minutes although it has Applications, or had an owner before. With --once the
exit code is 2 if one is, or several have one, or a replica is unwell.`,
		Example: `  ballast watch
  ballast watch --once --via pods
  ballast watch --owners   # every cluster with its replica, and who has it next whenever that changes
  ballast watch --selector argocd.argoproj.io/secret-type=cluster,team=a
  ballast watch --metrics-port 8080 --via pods   # in a pod: ballast_watch_orphaned_clusters and others, for alerts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.cluster.Register(cmd)
	cmd.Flags().DurationVar(&o.interval, "interval", 30*time.Second, "how long to wait between two looks")
	cmd.Flags().StringVar(&o.via, "via", viaAPIServer,
		"how pods are asked: api-server (its proxy) or pods (their own addresses)")
	cmd.Flags().BoolVar(&o.once, "once", false, "look for as long as a verdict takes, some two minutes, say it, and end")
	cmd.Flags().BoolVar(&o.owners, "owners", false,
		"a line for each cluster with the replica that has it, and for each that changes it; "+
			"without it a replica's first three are named")
	cmd.Flags().IntVar(&o.metricsPort, "metrics-port", 0, "port of /metrics, plain HTTP; 0 serves none")
	cmd.Flags().StringVar(&o.bind, "bind-address", "", "address that /metrics listens at; empty: all")
	cmd.Flags().StringVar(&o.selector, "selector", "",
		"which Secrets are clusters, by `labels` (default: the installed planner's discover.selector, else Argo CD's own label)")
	cmd.Flags().StringVar(&o.installed, "config-configmap", "ballast-config",
		"name of the ConfigMap with the installed planner's configuration")
	return cmd
}

// Memory is below the shipped Deployment's limit.
func Memory() serve.Memory { return serve.Memory{Limit: 200 << 20, Container: 256 << 20} }

func (o *options) check() error {
	var errs []error
	if o.via != viaAPIServer && o.via != viaPods {
		errs = append(errs, fmt.Errorf("--via: %q is neither %s nor %s", o.via, viaAPIServer, viaPods))
	}
	if o.interval < time.Second {
		errs = append(errs, fmt.Errorf("--interval: %s is less than a second: each look asks every pod for all that it shows", o.interval))
	}
	if o.metricsPort < 0 || o.metricsPort > 65535 {
		errs = append(errs, fmt.Errorf("--metrics-port: %d is no port", o.metricsPort))
	}
	if _, err := o.asked(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// faults is what the command ends with where --once finds something.
const faults = 2

func (o *options) run(ctx context.Context, out, notes io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	w, err := o.watcher()
	if err != nil {
		return err
	}
	stop, err := o.serves(w)
	if err != nil {
		return err
	}
	defer stop()
	if o.metricsPort != 0 { // in a pod
		Memory().Bound()
	}
	say.To(notes, "looking at the application-controllers in %s every %s\n", o.cluster.Namespace, say.Span(o.interval))
	return o.watch(ctx, w, w.clock, out)
}

// watch looks until it is told to end, and says what differs from the look before.
func (o *options) watch(ctx context.Context, w *watcher, c clock.Clock, out io.Writer) error {
	var before *look
	for {
		now, err := w.look(ctx)
		if err != nil && before == nil {
			return connect.ExplainDenied(err, o.cluster.Namespace)
		}
		if err != nil {
			now = &look{At: c.Now().UTC(), Trouble: []string{say.OneLine(err.Error())}, Replicas: before.Replicas,
				Owners: before.Owners, memory: before.memory}
		}
		now.tell(out, before, o.owners)
		if o.once && (now.settled() || err != nil) {
			return now.fault(err)
		}
		before = now
		select {
		case <-ctx.Done():
			return nil // a person ends it
		case <-c.After(o.interval):
		}
	}
}

func (o *options) watcher() (*watcher, error) {
	cfg, err := o.cluster.REST()
	if err != nil {
		return nil, err
	}
	c, err := o.cluster.Client()
	if err != nil {
		return nil, err
	}
	// Pods, workloads and Applications are as many and as large as others make them.
	bounded, err := client.New(paged.Bounded(cfg), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	asked, err := o.asked()
	if err != nil {
		return nil, err
	}
	w := &watcher{reader: bounded, clusters: c, namespace: o.cluster.Namespace, seen: servers{},
		clock:   cmp.Or[clock.Clock](o.clock, clock.RealClock{}),
		selects: selects{asked: asked, installed: o.installed}}
	how := scrape.Options{}
	if o.via == viaAPIServer {
		if w.proxy, err = newProxy(cfg, o.cluster.Namespace); err != nil {
			return nil, err
		}
		how.Client = &http.Client{Transport: w.proxy}
	}
	w.scraper = scrape.NewScraper(how)
	w.applications = nudge.New(nudge.Options{Client: bounded, Reader: bounded, Clock: w.clock,
		MostKept: mostApplications})
	return w, nil
}

// serves offers the metrics, where that was asked for.
func (o *options) serves(w *watcher) (stop func(), err error) {
	if o.metricsPort == 0 {
		return func() {}, nil
	}
	listener, err := serve.ListenPlain(o.bind, o.metricsPort)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	w.figures = NewFigures(registry)
	mux := http.NewServeMux()
	mux.Handle("/metrics", serve.MetricsHandler(registry, clock.RealClock{}))
	server := serve.PlainServer(mux)
	go func() { _ = server.Serve(listener) }() // it ends with the command
	return func() { _ = server.Close() }, nil
}
