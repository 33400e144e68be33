// Package webhook is `ballast webhook`.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/version"
	"ballast/webhook"
	"ballast/webhook/intake"
	"ballast/webhook/source"
)

// options are the flags of `ballast webhook`.
type options struct {
	log          serve.LogOptions
	namespace    string
	configMap    string
	plannerUser  string
	bindAddress  string
	port         int
	metricsPort  int
	healthPort   int
	certDir      string
	clientCAFile string
	clientNames  []string
	lameDuck     time.Duration
}

// Memory is below the shipped Deployment's limit.
func Memory() serve.Memory { return serve.Memory{Limit: 200 << 20, Container: 256 << 20} }

const webhookHelp = `Serve the admission webhook: every write to Argo CD's cluster Secrets and to its application-controller is
made to agree with the plan in the plan ConfigMap, whoever writes and by whichever path.

It needs one right, get, list and watch of that one ConfigMap, and reads nothing else: the object is in the
request. It rejects one thing: a pin that cannot be, in data.pins or as an edited row of data.plan. What fails
inside lets the write pass, warns its writer and counts in ballast_webhook_faults_total; an object that cannot
be read passes, too, and counts in ballast_webhook_malformed_total. A call that has no room gets HTTP 503, one
that is too large 413, one without a length 411: of those the webhook configuration's failurePolicy judges,
which as shipped lets the write pass.

  path          answers writes to                       and holds
  /clusters     cluster Secrets                         data.shard
  /controllers  the StatefulSet or Deployment           replicas, ARGOCD_CONTROLLER_REPLICAS, resources
  /scale        its scale subresource                   spec.replicas
  /plan         the plan ConfigMap                      data.plan; edited rows become pins
  /pods         new pods of the workload                requests and limits of their replica's size

How to see what it did: each call leaves the audit annotations reason, revision, requested and enforced in the
API server's audit log (level Metadata is enough), and each rewritten value a warning to who wrote it.

How to stop it at once, for every replica, without a restart:
  kubectl -n argocd annotate configmap ballast-plan ballast.argoproj.io/enforcement=off

Whoever can reach its port can ask it. With --client-ca-file it answers the API server alone; manifests/README.md
says what the API server needs for that. Until then, log lines say verified=false: what they tell may be made up.

It is ready once it has listed the plan and has a certificate. On SIGTERM it is unready at once, and goes on
answering for --lame-duck, each call on a connection that is then closed; then it ends.`

// NewCommand makes `ballast webhook`.
func NewCommand() *cobra.Command { return command(&options{}) }

// command is the command that puts its flags there.
func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "webhook",
		Short:   "Serve the admission webhook that makes every write agree with the plan",
		Long:    webhookHelp,
		Example: `  ballast webhook --namespace=argocd --cert-dir=/etc/ballast/tls   # in its pod`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.namespace, "namespace", "argocd", "Argo CD's namespace, where the plan ConfigMap is")
	f.StringVar(&o.configMap, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	f.StringVar(&o.plannerUser, "planner-user", "",
		"user of the planner beside the one that the plan names (default: ServiceAccount ballast-planner of --namespace)")
	f.StringVar(&o.bindAddress, "bind-address", "", "address of all ports (default: all addresses)")
	f.IntVar(&o.port, "port", 9443, "port of the webhook, TLS 1.3")
	f.IntVar(&o.metricsPort, "metrics-port", 8080, "port of /metrics, plain HTTP")
	f.IntVar(&o.healthPort, "health-port", 8081, "port of /healthz and /readyz, plain HTTP")
	f.StringVar(&o.certDir, "cert-dir", "/etc/ballast/tls",
		"folder of tls.crt and tls.key; a new pair is taken up without a restart")
	f.StringVar(&o.clientCAFile, "client-ca-file", "",
		"CA of the API server's client certificate, which is then demanded")
	f.StringSliceVar(&o.clientNames, "client-name", nil,
		"common names that this certificate may have (default: any of that CA)")
	f.DurationVar(&o.lameDuck, "lame-duck", 5*time.Second, "how long calls are still answered after SIGTERM")
	o.log.Register(cmd)
	return cmd
}

func (o *options) run(ctx context.Context) error {
	if len(o.clientNames) > 0 && o.clientCAFile == "" {
		return errors.New("--client-name needs --client-ca-file: without a CA nobody's name is verified")
	}
	Memory().Bound()
	log, err := o.log.Logger()
	if err != nil {
		return err
	}
	log = log.WithName("webhook")
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	client, err := o.client()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := webhook.NewMetrics(registry)
	plans := source.New(source.Options{Client: client, Namespace: o.namespace, ConfigMap: o.configMap,
		Planner: o.planner(), Metrics: source.NewMetrics(registry), Log: log})
	server := intake.NewServer(intake.ServerOptions{
		Handler: webhook.NewHandler(plans, metrics, log), Listen: o.listener(o.port), CertDir: o.certDir,
		ClientCAFile: o.clientCAFile, ClientNames: o.clientNames, LameDuck: o.lameDuck, Expiry: metrics.CertificateEnds,
		Log: log,
	})

	// What serves the last calls outlives them: the plan is watched, and health and metrics answer, through the lame
	// duck.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	wg.Go(func() { plans.Run(background) })
	ready := serve.Checks{
		"plan":        func(*http.Request) error { return plans.Ready() },
		"certificate": func(*http.Request) error { return server.Ready() },
	}
	wg.Go(func() { fail(o.serveHTTP(background, o.healthPort, serve.HealthHandler(nil, ready))) })
	wg.Go(func() {
		fail(o.serveHTTP(background, o.metricsPort, serve.MetricsHandler(registry, clock.RealClock{})))
	})
	err = server.Serve(stop)
	if cause := context.Cause(stop); ctx.Err() == nil && cause != nil {
		err = errors.Join(cause, err)
	}
	end()
	wg.Wait()
	return err
}

// client asks the API server with the command's kubeconfig or the pod's own token.
func (o *options) client() (kubernetes.Interface, error) {
	config, err := ctrlconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = "ballast-webhook/" + version.Build()
	// The largest plan is one string of 0.8 MB, which JSON holds once more in escapes.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf,
		runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

func (o *options) planner() string {
	if o.plannerUser != "" {
		return o.plannerUser
	}
	return "system:serviceaccount:" + o.namespace + ":ballast-planner"
}

func (o *options) listener(port int) func() (net.Listener, error) {
	return func() (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(o.bindAddress, strconv.Itoa(port)))
	}
}

// serveHTTP serves one of the plain ports until the context ends.
func (o *options) serveHTTP(ctx context.Context, port int, handler http.Handler) error {
	listener, err := serve.ListenPlain(o.bindAddress, port)
	if err != nil {
		return err
	}
	server := serve.PlainServer(handler)
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving port %d: %w", port, err)
	}
	return nil
}
