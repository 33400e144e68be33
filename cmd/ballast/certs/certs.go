// Package certs is `ballast certs`.
package certs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"ballast/certs"
	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/serve"
	"ballast/cmd/ballast/version"
)

// options are the flags of `ballast certs`.
type options struct {
	log           serve.LogOptions
	settings      certs.Settings
	configuration string
	once          bool
	interval      time.Duration
	settle        time.Duration
	overlap       time.Duration
}

const certsHelp = `Make the webhook's certificates where there is no cert-manager, and renew them: components/self-signed runs it.

  Secret ballast-webhook-ca    the CA: 10 years, renewed a year before its end
  Secret ballast-webhook-tls   the webhook's certificate: 30 days, renewed 10 days before its end, or when its names or
                               its CA do not fit; the webhook takes it up without a restart
  caBundle                     of every webhook in MutatingWebhookConfiguration ballast.NAMESPACE: the CA

It looks every --interval, and at once when somebody changes or deletes one of these. A new CA first joins the old one in
the caBundle; after --settle, when every API server knows it, it signs the certificate; after --overlap, when every webhook
pod serves that, the old one leaves. No call is lost by it.

To renew the certificate now, delete Secret ballast-webhook-tls; to change the CA now, delete Secret ballast-webhook-ca.
It judges them by a TLS handshake, and makes anew what no API server takes. It deletes nothing: a Secret that somebody made
immutable or of another type stands until you delete it, and the log says so every minute.
With --once it does what is due and ends, as for a CronJob: a change of the CA then takes three runs.
Two at once do not fight. No key is ever printed.`

// NewCommand makes `ballast certs`.
func NewCommand() *cobra.Command { return command(&options{}) }

// command is the command that puts its flags there.
func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "certs",
		Short:   "Make and renew the webhook's certificates, where there is no cert-manager",
		Long:    certsHelp,
		Example: `  ballast certs --namespace=argocd   # in its pod`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	defaults := certs.DefaultSettings()
	f := cmd.Flags()
	f.StringVar(&o.settings.Namespace, "namespace", defaults.Namespace,
		"namespace of the Secrets and of the webhook's Service")
	f.StringVar(&o.settings.Service, "service", defaults.Service, "name of the webhook's Service")
	f.StringVar(&o.configuration, "webhook-configuration", "",
		"name of the MutatingWebhookConfiguration (default ballast.NAMESPACE)")
	f.BoolVar(&o.once, "once", false, "do what is due, and end")
	f.DurationVar(&o.interval, "interval", certs.DefaultInterval,
		"how often to look though nothing changed; up to a tenth is added")
	f.DurationVar(&o.settle, "settle", certs.DefaultSettle, "how long an API server may take to learn a caBundle")
	f.DurationVar(&o.overlap, "overlap", certs.DefaultOverlap, "how long a webhook pod may take to load a certificate")
	o.log.Register(cmd)
	return cmd
}

func (o *options) run(ctx context.Context) error {
	for flag, d := range map[string]time.Duration{"interval": o.interval, "settle": o.settle, "overlap": o.overlap} {
		if d <= 0 {
			return fmt.Errorf("--%s: %s is not above 0", flag, d)
		}
	}
	log, err := o.log.Logger()
	if err != nil {
		return err
	}
	log = log.WithName("certs")
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	config, err := ctrlconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = "ballast-certs/" + version.Build()
	if o.once {
		config.Timeout = connect.AnswerTimeout // a watch has no end, and a Job should have one
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return fmt.Errorf("connecting to %q: %w", config.Host, err)
	}
	rules := o.settings.DefaultRules()
	rules.Settle, rules.Overlap = o.settle, o.overlap
	rotator := certs.NewRotator(certs.RotatorOptions{
		Client: c, Settings: o.settings, Rules: rules,
		Configuration: cmp.Or(o.configuration, o.settings.Configuration()), Clock: clock.RealClock{}, Log: log,
	})
	if o.once {
		_, err := rotator.Once(ctx)
		return err
	}
	rotator.Run(ctx, o.interval)
	return nil
}
