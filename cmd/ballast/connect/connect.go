// Package connect is the way of a person's command to an API server.
package connect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/ending"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/version"
	"ballast/planner/discover/secrets"
	"ballast/planner/paged"
	"ballast/planner/printable"
)

const (
	// AnswerTimeout bounds each call of a person's command. Lists of 5,000 Secrets take a second or two.
	AnswerTimeout = 30 * time.Second
	// InterruptGrace is how long a person's command may go on after it was interrupted.
	InterruptGrace = 2 * time.Second
)

// Options say which cluster a person's command talks to, and as whom: kubectl's own flags. They are those of
// client-go; cli-runtime's are the same, and link in kustomize and 19 MiB.
type Options struct {
	Kubeconfig string
	Namespace  string
	overrides  clientcmd.ConfigOverrides
	host       atomic.Value // whom the client asks; a command that was interrupted may go on meanwhile
	context    atomic.Value // of the kubeconfig, by which that was chosen
	owes       atomic.Value // *debt
}

// debt is what a command has to take back before it ends.
type debt struct {
	within time.Duration
	stays  string // what is so, and how to mend it, where it cannot
}

// Owe has an interrupt wait for that long, beside InterruptGrace, for what the command has to take back. stays is told
// where that takes longer.
func (o *Options) Owe(within time.Duration, stays string) { o.owes.Store(&debt{within, stays}) }

// OwesNothing ends that: there is nothing to wait for any more.
func (o *Options) OwesNothing() { o.owes.Store((*debt)(nil)) }

func (o *Options) debt() *debt {
	owed, _ := o.owes.Load().(*debt)
	return owed
}

// Register adds the flags, and ends the command in time.
func (o *Options) Register(cmd *cobra.Command) {
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ContextOverrideFlags.Namespace.LongName = ""                                            // below, for it has a default of its own
	flags.AuthOverrideFlags.Username.LongName, flags.AuthOverrideFlags.Password.LongName = "", "" // no API server takes them
	flags.Timeout.Default, flags.Timeout.Description = AnswerTimeout.String(),
		"how long the API server may take for one answer; 0 is no end"
	clientcmd.BindOverrideFlags(&o.overrides, cmd.Flags(), flags)
	cmd.Flags().Lookup("as-group").Usage = "`group` to impersonate for the operation; it can be repeated"
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "",
		"kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or the pod's own ServiceAccount)")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "argocd", "Argo CD's namespace")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// The REST mapper's discovery takes no context.
		ended := make(chan error, 1)
		err := ending.Within(cmd.Context(), InterruptGrace, func() error {
			err := run(cmd, args)
			ended <- err
			return err
		})
		if owed := o.debt(); owed != nil && errors.Is(err, ending.ErrLeftBehind) {
			err = ending.Within(cmd.Context(), owed.within, func() error { return <-ended })
		}
		return o.explain(err)
	}
}

// explain says what to do about an API server that does not answer.
func (o *Options) explain(err error) error {
	var call *url.Error
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status) && apierrors.IsForbidden(err):
		return missing(err, o.Namespace)
	case errors.Is(err, ending.ErrLeftBehind):
		err = fmt.Errorf("interrupted before API server %q answered", o.host.Load())
		if owed := o.debt(); owed != nil {
			err = fmt.Errorf("%w\n%s", err, owed.stays)
		}
		return err
	case errors.As(err, &call) && call.Timeout():
		return fmt.Errorf("%w\nAPI server %q did not answer in time: see whether `kubectl get --raw /readyz` does; "+
			"another one is chosen by --context or --kubeconfig, more time given by --request-timeout", err,
			o.host.Load())
	}
	return err
}

// REST is the way to the API server as a configuration.
func (o *Options) REST() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides)
	cfg, err := loading.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig, and this is no pod: name one by --kubeconfig or KUBECONFIG, as for kubectl")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.UserAgent = "ballast/" + version.Build()
	cfg.QPS, cfg.Burst = 50, 100
	o.host.Store(cfg.Host)
	if raw, err := loading.RawConfig(); err == nil {
		o.context.Store(cmp.Or(o.overrides.CurrentContext, raw.CurrentContext))
	}
	return cfg, nil
}

// SayWhere says which API server is asked, to whoever is about to answer a question: namespaces and workloads have the
// same names in each cluster. It says nothing before a client was made.
func (o *Options) SayWhere(out io.Writer) {
	host, _ := o.host.Load().(string)
	name, _ := o.context.Load().(string)
	switch {
	case host == "":
	case name == "":
		say.To(out, "This is API server %q.\n", printable.Server(host))
	default:
		say.To(out, "This is API server %q, by context %q.\n", printable.Server(host),
			printable.Text(name, mostContext))
	}
}

// mostContext is how much of a context's name is shown, in characters.
const mostContext = 100

// Client asks the API server. Cluster Secrets it reads page by page.
func (o *Options) Client() (client.Client, error) {
	cfg, err := o.REST()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	bounded, err := client.New(paged.Bounded(cfg), client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	return secrets.Paged(c, bounded), nil
}
