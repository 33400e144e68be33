// Package source is where commands have a cycle's inputs from: a live cluster, or a file that one was saved to.
package source

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/settings"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/size/inputs"
	"ballast/planner/surroundings"
)

// Source is where other commands have a cycle's inputs from, as plan has: a live cluster, or a file that it saved.
type Source struct {
	cluster    connect.Options
	prometheus string
	config     string
	installed  string // the ConfigMap with the planner's
	inputs     string
}

// Register adds the flags that say where a cycle's inputs come from.
func (s *Source) Register(cmd *cobra.Command) {
	s.RegisterLive(cmd)
	cmd.Flags().StringVar(&s.inputs, "inputs", "",
		"run the cycle of this `file` again, which --save-inputs of ballast plan wrote, and ask no cluster")
	for _, other := range []string{"prometheus", "config", "config-configmap"} {
		cmd.MarkFlagsMutuallyExclusive("inputs", other)
	}
}

// RegisterLive adds those of a live cluster alone.
func (s *Source) RegisterLive(cmd *cobra.Command) {
	s.cluster.Register(cmd)
	cmd.Flags().StringVar(&s.prometheus, "prometheus", "",
		"URL of the Prometheus that scrapes the application-controller (default: the configuration's)")
	cmd.Flags().StringVar(&s.config, "config", "",
		"configuration file (default: the installed planner's, else every setting's default)")
	cmd.Flags().StringVar(&s.installed, "config-configmap", "ballast-config",
		"name of the ConfigMap with the installed planner's configuration")
}

// Gather is what a cycle sees now, or saw when it was saved.
func (s *Source) Gather(ctx context.Context, cmd *cobra.Command, progress io.Writer) (input.Inputs, error) {
	if s.inputs != "" {
		return readInputs(s.inputs)
	}
	if s.config != "" { // its mistakes are told without a cluster
		if _, err := s.fromFile(); err != nil {
			return input.Inputs{}, err
		}
	}
	c, err := s.cluster.Client()
	if err != nil {
		return input.Inputs{}, err
	}
	cfg, err := s.Config(ctx, cmd, c, progress)
	if err != nil {
		return input.Inputs{}, err
	}
	return observe(ctx, c, s.cluster.Resizes, cfg, progress)
}

// Outcome is the cycle's outcome.
func (s *Source) Outcome(in input.Inputs) (out cycle.Outcome, err error) {
	err = s.Runs(func() error {
		out = cycle.Run(in)
		return nil
	})
	return out, err
}

// Runs runs what goes by the inputs. What a file says that no cluster ever did is an error, and no crash.
func (s *Source) Runs(run func() error) (err error) {
	if s.inputs == "" {
		return run()
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("--inputs: the cycle in %s cannot be run: %v", s.inputs, r)
		}
	}()
	return run()
}

// Client is a person's way to the API server, by the flags.
func (s *Source) Client() (client.Client, error) { return s.cluster.Client() }

// Config is the configuration by which the planner goes, or would.
func (s *Source) Config(ctx context.Context, cmd *cobra.Command, c client.Client, progress io.Writer) (config.PlannerConfig, error) {
	return s.loadConfig(ctx, c, progress, cmd.Flags().Changed("namespace"))
}

// Observe is what a cycle by that configuration sees now.
func (s *Source) Observe(ctx context.Context, c client.Client, cfg config.PlannerConfig, progress io.Writer) (input.Inputs, error) {
	return observe(ctx, c, s.cluster.Resizes, cfg, progress)
}

// REST is a person's way to the API server as a configuration, by the flags.
func (s *Source) REST() (*rest.Config, error) { return s.cluster.REST() }

// Prepare is the configuration, by which the planner goes too, and the fleet and the workload as they stand, without
// what is measured of them.
func (s *Source) Prepare(ctx context.Context, cmd *cobra.Command, c client.Client, progress io.Writer) (input.Inputs, error) {
	cfg, err := s.loadConfig(ctx, c, progress, cmd.Flags().Changed("namespace"))
	if err != nil {
		return input.Inputs{}, err
	}
	in := input.Inputs{Now: time.Now().UTC().Truncate(time.Second), Config: cfg}
	doc, err := connect.ReadDocument(ctx, c, cfg)
	if err != nil {
		return in, err
	}
	if in.InForce = doc.Plan; in.InForce != nil {
		in.PlannerUser = in.InForce.PlannerUser
	}
	if in.Discovered, in.Workload, err = gather.Look(ctx, c, cfg, discover.Known{}, doc.Plan); err != nil {
		return in, connect.ExplainDenied(err, cfg.Target.Namespace)
	}
	return in, nil
}

func (s *Source) fromFile() (config.PlannerConfig, error) {
	cfg, err := configfile.ParseFile(s.config, settings.CheckMetrics)
	if err != nil {
		return cfg, fmt.Errorf("reading the configuration %q: %w", s.config, err)
	}
	return cfg, nil
}

// fromCluster is the installed planner's configuration, and the default one where none is installed.
func (s *Source) fromCluster(ctx context.Context, c client.Client, progress io.Writer) (config.PlannerConfig, error) {
	if s.installed == "" {
		return config.Default(), nil
	}
	var cm corev1.ConfigMap
	switch err := c.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: s.installed}, &cm); {
	case apierrors.IsNotFound(err):
		return config.Default(), nil
	case apierrors.IsForbidden(err):
		say.To(progress, "note: without the right to read ConfigMap %q, the installed planner's configuration is not known, "+
			"and every setting is at its default\n", s.installed)
		return config.Default(), nil
	case err != nil:
		return config.Default(), fmt.Errorf("reading ConfigMap %q in %q: %w", s.installed, s.cluster.Namespace, err)
	}
	text, there := cm.Data["config.yaml"]
	if !there {
		say.To(progress, "note: ConfigMap %q has no config.yaml, and every setting is at its default\n", s.installed)
		return config.Default(), nil
	}
	cfg, err := configfile.Parse([]byte(text), settings.CheckMetrics)
	if err != nil {
		return cfg, fmt.Errorf("reading the configuration of ConfigMap %q, as the planner does: %w", s.installed, err)
	}
	say.To(progress, "by the configuration of ConfigMap %s, as the planner\n", s.installed)
	if p := cfg.Poll.Prometheus; p != nil && p.HTTP.NamesFiles() {
		// Whoever writes the ConfigMap names them, and would be sent this machine's: a kubeconfig, as a password.
		p.HTTP = config.Default().Poll.Prometheus.HTTP
		if s.prometheus == "" {
			say.To(progress, "note: the planner's configuration names files for its Prometheus, which are in the planner's pod: "+
				"none is read here, and the Prometheus is asked without its settings of HTTP; "+
				"where it takes credentials give a file with --config\n")
		}
	}
	return cfg, nil
}

func (s *Source) loadConfig(
	ctx context.Context, c client.Client, progress io.Writer, namespaceSet bool,
) (cfg config.PlannerConfig, err error) {
	if s.config != "" {
		cfg, err = s.fromFile()
	} else {
		cfg, err = s.fromCluster(ctx, c, progress)
	}
	if err != nil {
		return cfg, err
	}
	if namespaceSet || s.config == "" {
		cfg.Target.Namespace = s.cluster.Namespace
	}
	if s.prometheus != "" {
		cfg.Poll = cfg.Poll.WithPrometheus() // the one named here is asked in the pods' place, too
		cfg.Poll.Prometheus.URL = s.prometheus
		if s.config == "" { // the files that the planner reads are in its pod, and the credentials are for another URL
			cfg.Poll.Prometheus.HTTP = config.Default().Poll.Prometheus.HTTP
		}
	}
	return cfg, nil
}

// observe gathers a cycle's inputs with a person's rights, as the leader does.
func observe(
	ctx context.Context, c client.Client, resizes func(context.Context) (bool, error), cfg config.PlannerConfig, progress io.Writer,
) (input.Inputs, error) {
	in := input.Inputs{Now: time.Now().UTC().Truncate(time.Second), Config: cfg}
	say.To(progress, "reading cluster Secrets and the application-controller in %s\n", cfg.Target.Namespace)
	kept := keptBy(c, cfg)
	snapshot, err := kept.Read(ctx)
	if err != nil {
		return in, connect.ExplainDenied(err, cfg.Target.Namespace)
	}
	history := remembered(ctx, kept, &in, progress)
	takeIn(&in, snapshot, history)
	if in.Discovered, in.Workload, err = gather.Look(ctx, c, cfg, in.Memory.Known, cmp.Or(in.InForce, in.Last)); err != nil {
		return in, connect.ExplainDenied(err, cfg.Target.Namespace)
	}
	in.Discovered.AcceptDiscovery = snapshot.Document.AcceptDiscovery
	if in.InForce != nil && in.InForce.Mode.Enforced() && !in.BreakGlass {
		in.Enforcement, in.Unheld = probedBy(ctx, kept, in.Now, progress)
	}
	if has, err := resizes(ctx); err == nil {
		in.Resizes = &has
	} else {
		say.To(progress, "note: whether running pods can be resized is not known: %v\n", err)
	}
	err = ask(ctx, c, &in, progress)
	return in, err
}

// ask asks for what size rules read, for loads and for what the pods show.
func ask(ctx context.Context, c client.Client, in *input.Inputs, progress io.Writer) (err error) {
	cfg, target := in.Config, standing.TargetOf(in.Workload)
	if in.Surroundings, err = surroundings.Look(ctx, c, target, inputs.WantsOf(cfg.Size), in.Now); err != nil {
		say.To(progress, "note: not all that size rules read is known: %v\n", err)
	}
	if cfg.Poll.Pods != nil {
		in.Fetched, err = fromPlanner(ctx, c, cfg, *in, progress)
		return err
	}
	prometheus, err := gather.NewFetcher(cfg, target)
	if err != nil {
		return err
	}
	say.To(progress, "asking %s about %s\n", cfg.Poll.Prometheus.URL,
		say.Plural(len(in.Discovered.Secrets), "cluster Secret"))
	in.Fetched, in.Owners = gather.Measure(ctx, prometheus, cfg, in.Discovered, in.Now)
	if cmp.Or(in.InForce, in.Last) != nil { // a leader looks at them, too
		in.Observed = lookAtPods(ctx, c, prometheus, *in, progress)
	}
	return nil
}

// Installed is the configuration by which the installed planner goes, of the ConfigMap of that name, and the default
// one where none is installed.
func Installed(ctx context.Context, c client.Client, namespace, name string, progress io.Writer) (config.PlannerConfig, error) {
	s := &Source{installed: name}
	s.cluster.Namespace = namespace
	return s.fromCluster(ctx, c, progress)
}
