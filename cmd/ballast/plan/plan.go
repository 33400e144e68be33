// Package plan is `ballast plan`.
package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"ballast/planner/plan"
	"ballast/planner/printable"
	"ballast/planner/size/inputs"
	"ballast/planner/surroundings"
)

type options struct {
	cluster    connect.Options
	prometheus string
	config     string
	installed  string // the ConfigMap with the planner's
	output     string
	saveInputs string
	inputs     string
	all        bool
	exitCode   bool
}

// register adds the flags that say where a cycle's inputs come from.
func (o *options) register(cmd *cobra.Command) {
	o.live(cmd)
	cmd.Flags().StringVar(&o.inputs, "inputs", "",
		"run the cycle of this `file` again, which --save-inputs of ballast plan wrote, and ask no cluster")
	for _, other := range []string{"prometheus", "config", "config-configmap"} {
		cmd.MarkFlagsMutuallyExclusive("inputs", other)
	}
}

// live adds those of a live cluster.
func (o *options) live(cmd *cobra.Command) {
	o.cluster.Register(cmd)
	cmd.Flags().StringVar(&o.prometheus, "prometheus", "",
		"URL of the Prometheus that scrapes the application-controller (default: the configuration's)")
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file (default: the installed planner's, else every setting's default)")
	cmd.Flags().StringVar(&o.installed, "config-configmap", "ballast-config",
		"name of the ConfigMap with the installed planner's configuration")
}

func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what ballast would change, without changing anything",
		Long: `plan runs one cycle against a live cluster and prints it: what each replica carries now, what it would carry, and which
clusters would move; by which rollout mode, what that waits for, in how many waves, and how long the move budget makes it take at
least. Each move has its reason, of the closed set in docs/reference/reasons.md. It reads cluster Secrets, Argo CD's ConfigMaps and
the application-controller's workload, and asks Prometheus; it writes nothing and needs nothing installed. Where ballast is
installed, it goes by the configuration in ConfigMap ballast-config, as the planner does, but for the files that it names for its
Prometheus: they are in the planner's pod, and none of this machine's is read. With poll.pods it goes by what a running planner saw
of the pods, which its history has.

Where a plan is in force it begins with what the leader knows: what it remembers, a rollback that a person asked for, which pods are
ready, by Prometheus which cluster each really has (it needs list on pods for that), and whether the webhooks held the plan when the
leader asked last; and it says what the leader's next cycle begins. What only the leader's process knows is left out: which writes the
API server refused it, of Secrets or of sizes, which nodes have no room, and the key by which it knows its own plan and history.

The workload is found by its labels, whatever it is called. Of the Secrets name, server, shard, labels and annotations are looked
at, and of data.config whether Argo CD can read it.

The exit code is 0, and 1 where there is no answer. With --exit-code it is 2 where anything would change, whatever it waits for: clusters
that move, the number of replicas, sizes, the one restart that sets the env, cluster Secrets that are without a shard yet.`,
		Example: `  ballast plan --prometheus http://localhost:9090
  ballast plan --config ballast.yaml -o json
  ballast plan --prometheus http://localhost:9090 -o html > plan.html   # the page, as one file that loads nothing
  # for a bug report: names, servers and loads, no credential known by its place
  ballast plan --prometheus http://localhost:9090 --save-inputs inputs.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cmd.Flags().Changed("namespace"))
		},
	}
	o.register(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table, wide (every move), json, yaml (the plan document), "+
		"html (a page that stands alone), or the answer alone: patch, external-secrets or helm-values")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "end with exit code 2 where anything would change: "+
		"clusters that move, the number of replicas, sizes, the one restart, Secrets without a shard")
	cmd.Flags().StringVar(&o.saveInputs, "save-inputs", "",
		"also write the cycle's inputs to this `file`, as JSON: what a bug report needs to be understood; "+
			"names and servers, no credential that is known by its place")
	cmd.Flags().BoolVar(&o.all, "all", false, "list every move")
	cmd.MarkFlagsMutuallyExclusive("inputs", "save-inputs")
	return cmd
}

func (o *options) run(ctx context.Context, out, progress io.Writer, namespaceSet bool) error {
	if _, alone := answers[o.output]; !alone && !slices.Contains([]string{"table", "wide", "json", "yaml", "html"}, o.output) {
		return fmt.Errorf("--output: %q is not table, wide, json, yaml, html, patch, external-secrets or helm-values", o.output)
	}
	in, err := o.gather(ctx, progress, namespaceSet)
	if err != nil {
		return err
	}
	if o.saveInputs != "" {
		masked, err := saveInputs(o.saveInputs, in)
		if err != nil {
			return err
		}
		if masked > 0 {
			say.To(progress, "note: the server URL of %s holds credentials, which stand in %s as %s\n",
				say.Plural(masked, "cluster Secret"), o.saveInputs, printable.Mark)
		}
	}
	result, err := o.runs(in)
	if err != nil {
		return err
	}
	if err := o.write(out, in, result); err != nil || !o.exitCode {
		return err
	}
	return exitCode(in, result)
}

// write prints a cycle in the form that was asked for.
func (o *options) write(out io.Writer, in input.Inputs, result cycle.Outcome) error {
	switch o.output {
	case "json":
		return writePlanJSON(out, in, result)
	case "yaml":
		return writePlanYAML(out, result)
	case "html":
		return writePlanHTML(out, in, result)
	case "table", "wide":
		return writePlanTable(out, in, result, o.all || o.output == "wide")
	}
	return writeAnswer(out, o.output, in, result)
}

// gather is what a cycle sees now, or saw when it was saved.
func (o *options) gather(ctx context.Context, progress io.Writer, namespaceSet bool) (input.Inputs, error) {
	if o.inputs != "" {
		return readInputs(o.inputs)
	}
	if o.config != "" { // its mistakes are told without a cluster
		if _, err := o.fromFile(); err != nil {
			return input.Inputs{}, err
		}
	}
	c, err := o.cluster.Client()
	if err != nil {
		return input.Inputs{}, err
	}
	cfg, err := o.loadConfig(ctx, c, progress, namespaceSet)
	if err != nil {
		return input.Inputs{}, err
	}
	return observe(ctx, c, o.cluster.Resizes, cfg, progress)
}

// mostInputs bounds a file of inputs: a fleet of 20,000 clusters has some 60 MB.
const mostInputs = 256 << 20

// readInputs reads what saveInputs wrote.
func readInputs(file string) (in input.Inputs, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return in, fmt.Errorf("--inputs: %w", err)
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, mostInputs+1)) // a pipe has no size, and may have no end
	if err != nil {
		return in, fmt.Errorf("--inputs: %w", err)
	}
	if len(data) > mostInputs {
		return in, fmt.Errorf("--inputs: %s has more than %d bytes, which is more than a cycle's inputs have", file, int64(mostInputs))
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, fmt.Errorf("--inputs: %s is no file that ballast plan --save-inputs wrote: %w", file, err)
	}
	if n := in.Workload.Replicas; n > discover.MostReplicas {
		return in, fmt.Errorf("--inputs: %s is no file that ballast plan --save-inputs wrote: a workload of %d replicas is written as one of %d",
			file, n, discover.MostReplicas)
	}
	if in.Now.IsZero() || in.Config.Kind == "" {
		return in, fmt.Errorf("--inputs: %s is no file that ballast plan --save-inputs wrote: it has no time, or no configuration", file)
	}
	return in, nil
}

// runs is the cycle's outcome.
func (o *options) runs(in input.Inputs) (out cycle.Outcome, err error) {
	err = o.guarded(func() error {
		out = cycle.Run(in)
		return nil
	})
	return out, err
}

// guarded runs what goes by the inputs. What a file says that no cluster ever did is an error, and no crash.
func (o *options) guarded(run func() error) (err error) {
	if o.inputs == "" {
		return run()
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("--inputs: the cycle in %s cannot be run: %v", o.inputs, r)
		}
	}()
	return run()
}

func (o *options) fromFile() (config.PlannerConfig, error) {
	cfg, err := configfile.ParseFile(o.config, settings.CheckMetrics)
	if err != nil {
		return cfg, fmt.Errorf("reading the configuration %q: %w", o.config, err)
	}
	return cfg, nil
}

// fromCluster is the installed planner's configuration, and the default one where none is installed.
func (o *options) fromCluster(ctx context.Context, c client.Client, progress io.Writer) (config.PlannerConfig, error) {
	if o.installed == "" {
		return config.Default(), nil
	}
	var cm corev1.ConfigMap
	switch err := c.Get(ctx, client.ObjectKey{Namespace: o.cluster.Namespace, Name: o.installed}, &cm); {
	case apierrors.IsNotFound(err):
		return config.Default(), nil
	case apierrors.IsForbidden(err):
		say.To(progress, "note: without the right to read ConfigMap %q, the installed planner's configuration is not known, "+
			"and every setting is at its default\n", o.installed)
		return config.Default(), nil
	case err != nil:
		return config.Default(), fmt.Errorf("reading ConfigMap %q in %q: %w", o.installed, o.cluster.Namespace, err)
	}
	text, there := cm.Data["config.yaml"]
	if !there {
		say.To(progress, "note: ConfigMap %q has no config.yaml, and every setting is at its default\n", o.installed)
		return config.Default(), nil
	}
	cfg, err := configfile.Parse([]byte(text), settings.CheckMetrics)
	if err != nil {
		return cfg, fmt.Errorf("reading the configuration of ConfigMap %q, as the planner does: %w", o.installed, err)
	}
	say.To(progress, "by the configuration of ConfigMap %s, as the planner\n", o.installed)
	if p := cfg.Poll.Prometheus; p != nil && p.HTTP.NamesFiles() {
		// Whoever writes the ConfigMap names them, and would be sent this machine's: a kubeconfig, as a password.
		p.HTTP = config.Default().Poll.Prometheus.HTTP
		if o.prometheus == "" {
			say.To(progress, "note: the planner's configuration names files for its Prometheus, which are in the planner's pod: "+
				"none is read here, and the Prometheus is asked without its settings of HTTP; "+
				"where it takes credentials give a file with --config\n")
		}
	}
	return cfg, nil
}

func (o *options) loadConfig(
	ctx context.Context, c client.Client, progress io.Writer, namespaceSet bool,
) (cfg config.PlannerConfig, err error) {
	if o.config != "" {
		cfg, err = o.fromFile()
	} else {
		cfg, err = o.fromCluster(ctx, c, progress)
	}
	if err != nil {
		return cfg, err
	}
	if namespaceSet || o.config == "" {
		cfg.Target.Namespace = o.cluster.Namespace
	}
	if o.prometheus != "" {
		cfg.Poll = cfg.Poll.WithPrometheus() // the one named here is asked in the pods' place, too
		cfg.Poll.Prometheus.URL = o.prometheus
		if o.config == "" { // the files that the planner reads are in its pod, and the credentials are for another URL
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
		return in, err
	}
	history := remembered(ctx, kept, &in, progress)
	takeIn(&in, snapshot, history)
	if in.Discovered, in.Workload, err = gather.Look(ctx, c, cfg, in.Memory.Known, cmp.Or(in.InForce, in.Last)); err != nil {
		return in, connect.ExplainDenied(err, cfg.Target.Namespace)
	}
	in.Discovered.AcceptDiscovery = snapshot.Document.AcceptDiscovery
	if in.InForce != nil && in.InForce.Mode.Enforced() && !in.BreakGlass {
		in.Enforcement, in.Unheld = probedBy(ctx, kept, progress)
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
	say.To(progress, "asking %s about %s\n", cfg.Poll.Prometheus.URL, say.Plural(len(in.Discovered.Secrets), "cluster Secret"))
	in.Fetched, in.Owners = gather.Measure(ctx, prometheus, cfg, in.Discovered, in.Now)
	if cmp.Or(in.InForce, in.Last) != nil { // a leader looks at them, too
		in.Observed = lookAtPods(ctx, c, prometheus, *in, progress)
	}
	return nil
}

// saveInputs writes what a cycle saw, without credentials: those within URLs become a mark. It answers how many
// clusters' server URLs had some.
func saveInputs(file string, in input.Inputs) (masked int, err error) {
	data, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return 0, fmt.Errorf("encoding the inputs: %w", err)
	}
	servers, masked := maskedServers(in.Discovered.Secrets)
	text := strings.NewReplacer(servers...).Replace(string(data)) // where it is a Prometheus label's value, too
	text = printable.Visible(printable.MaskCredentials(text))
	if !json.Valid([]byte(text)) { // a server like "n@" is part of an escape elsewhere
		return 0, errors.New("saving the inputs: the credentials in a cluster's server URL cannot be masked, so nothing was saved: mend data.server first")
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return 0, fmt.Errorf("saving the inputs: %w", err)
	}
	return masked, nil
}

// maskedServers are the texts that replace servers with credentials in saved inputs, and the short hashes that rows
// have of them, each behind what it replaces; and how many Secrets have such a server. Servers that differ still do:
// they are compared where the inputs run again.
func maskedServers(secrets []discover.Secret) (replace []string, masked int) {
	shown, taken, count := map[string]string{}, map[string]bool{}, map[string]int{}
	for _, s := range secrets {
		if server := plan.NormalizeServer(s.Server); printable.MaskServer(server) == server {
			taken[server] = true
		}
	}
	for _, s := range secrets {
		server := plan.NormalizeServer(s.Server)
		mask := printable.MaskServer(server)
		if mask == server {
			continue
		}
		masked++
		if shown[server] != "" {
			continue
		}
		name := mask
		for taken[name] {
			count[mask]++
			name = fmt.Sprintf("%s#%d", mask, 1+count[mask])
		}
		shown[server], taken[name] = name, true
	}
	return replacing(shown), masked
}

// replacing is what a strings.Replacer is made of: the longest servers first, for another may begin like them.
func replacing(shown map[string]string) (pairs []string) {
	longestFirst := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
	for _, server := range slices.SortedFunc(maps.Keys(shown), longestFirst) {
		name := shown[server]
		pairs = append(pairs, say.WithinJSON(server), say.WithinJSON(name),
			`"srv": "`+plan.ServerHash(server)+`"`, `"srv": "`+plan.ServerHash(name)+`"`)
	}
	return pairs
}
