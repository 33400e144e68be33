package main

import (
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// answerTimeout bounds each call of a person's command. Lists of 5,000 Secrets take a second or two.
	answerTimeout = 30 * time.Second
	// interruptGrace is how long a person's command may go on after it was interrupted.
	interruptGrace = 2 * time.Second
)

// clusterOptions say which cluster a person's command talks to, and as whom: kubectl's own flags.
type clusterOptions struct {
	kubeconfig string
	namespace  string
	kubectl    *genericclioptions.ConfigFlags
	host       atomic.Value // whom the client asks; a command that was interrupted may go on meanwhile
}

func (o *clusterOptions) register(cmd *cobra.Command) {
	o.namespace = "argocd"
	o.flags().AddFlags(cmd.Flags())
	cmd.Flags().Lookup("namespace").Usage = "Argo CD's namespace"
	cmd.Flags().Lookup("request-timeout").Usage = "how long the API server may take for one answer; 0 is no end"
	hidden := cmd.Flags().Lookup("cache-dir")
	hidden.Hidden = true // nothing is cached
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// The REST mapper's discovery takes no context.
		err := endWithin(cmd.Context(), interruptGrace, func() error { return run(cmd, args) })
		return o.explain(err)
	}
}

// explain says what to do about an API server that does not answer.
func (o *clusterOptions) explain(err error) error {
	var call *url.Error
	switch {
	case errors.Is(err, errLeftBehind):
		return fmt.Errorf("interrupted before API server %q answered", o.host.Load())
	case errors.As(err, &call) && call.Timeout():
		return fmt.Errorf("%w\nAPI server %q did not answer in time: see whether `kubectl get --raw /readyz` does; "+
			"another one is chosen by --context or --kubeconfig, more time given by --request-timeout", err, o.host.Load())
	}
	return err
}

// flags are kubectl's, with the namespace and the patience of ballast's commands.
func (o *clusterOptions) flags() *genericclioptions.ConfigFlags {
	if o.kubectl == nil {
		patience := answerTimeout.String()
		o.kubectl = genericclioptions.NewConfigFlags(false)
		o.kubectl.KubeConfig, o.kubectl.Namespace, o.kubectl.Timeout = &o.kubeconfig, &o.namespace, &patience
	}
	return o.kubectl
}

func (o *clusterOptions) rest() (*rest.Config, error) {
	cfg, err := o.flags().ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.UserAgent = "ballast/" + buildVersion()
	cfg.QPS, cfg.Burst = 50, 100
	o.host.Store(cfg.Host)
	return cfg, nil
}

func (o *clusterOptions) client() (client.Client, error) {
	cfg, err := o.rest()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", cfg.Host, err)
	}
	return c, nil
}
