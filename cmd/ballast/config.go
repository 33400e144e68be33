package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print and check the planner's configuration file",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newConfigDefaultCommand(), newConfigCheckCommand())
	return cmd
}

func newConfigDefaultCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "default",
		Short: "Print the default configuration, with what each field means",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), config.DefaultYAML())
			return err
		},
	}
}

func newConfigCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "List every mistake of a configuration file with its path, line and mend; - reads standard input",
		Example: `  ballast config default > config.yaml
  ballast config check config.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readConfig(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			c, err := config.Parse(data, checkMetrics)
			if err != nil {
				return reportMistakes(cmd.OutOrStdout(), args[0], err)
			}
			return reportConfig(cmd.OutOrStdout(), args[0], c)
		},
	}
}

func readConfig(stdin io.Reader, name string) ([]byte, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return data, nil
}

// reportMistakes puts each mistake on a line and makes the error that ends the command.
func reportMistakes(w io.Writer, name string, err error) error {
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return err
	}
	for _, mistake := range all.Errors() {
		say(w, "%s\n", mistake)
	}
	return fmt.Errorf("checking %q: %s", name, plural(len(all.Errors()), "mistake"))
}

// reportConfig says that a file is good, and what it says.
func reportConfig(w io.Writer, name string, c config.PlannerConfig) error {
	p, ids := c.Poll.Prometheus, []string{}
	for _, m := range p.Metrics {
		ids = append(ids, m.ID)
	}
	if p.Metrics == nil {
		for _, m := range poll.DefaultMetrics() {
			ids = append(ids, m.ID)
		}
	}
	target := c.Target.Name
	if target == "" {
		target = "(found by its labels)"
	}
	say(w, "ok: %s\n", name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say(t, "  mode\t%s, every %s\n", c.Mode, c.Interval)
	say(t, "  target\t%s in namespace %s\n", target, c.Target.Namespace)
	say(t, "  metrics\t%s from %s\n", strings.Join(ids, ", "), p.URL)
	say(t, "  replicas\t%s\n", replicasSummary(c.Partition))
	return t.Flush()
}

func replicasSummary(p config.Partition) string {
	bound := func(n *int, otherwise string) string {
		if n == nil {
			return otherwise
		}
		return fmt.Sprint(*n)
	}
	switch {
	case p.Replicas == nil:
		return bound(p.MinReplicas, "min(2, found)") + " to " + bound(p.MaxReplicas, "max(16, found)")
	case p.Replicas.Workload:
		return "the workload's own"
	default:
		return fmt.Sprintf("always %d", p.Replicas.Fixed)
	}
}

// checkMetrics judges what the poll phase knows: whether queries are templates that it can fill, and, where a file
// leaves the metrics out, whether its weights are the default metrics'.
func checkMetrics(c config.PlannerConfig) field.ErrorList {
	var errs field.ErrorList
	if c.Poll.Prometheus != nil {
		at := field.NewPath("poll", "prometheus", "metrics")
		for i, m := range c.Poll.Prometheus.Metrics {
			errs = append(errs, checkQueries(m, at.Index(i))...)
		}
		if c.Poll.Prometheus.Metrics == nil && c.Index.PNorm != nil && c.Index.PNorm.Weights != nil {
			errs = append(errs, checkDefaultWeights(c.Index.PNorm.Weights)...)
		}
	}
	return errs
}

// checkQueries fills a metric's queries as for a cluster of Argo CD's own.
func checkQueries(m config.Metric, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	judge := func(name, query string, render func(string) (string, error)) {
		if query == "" {
			return
		}
		if _, err := render(query); err != nil {
			errs = append(errs, field.Invalid(p.Child(name), field.OmitValueType{}, err.Error()))
		}
	}
	fleet := func(query string) (string, error) {
		return poll.RenderFleet(query, poll.FleetVars{Pods: poll.PodsMatcher("pod", plan.Target{Kind: plan.StatefulSet, Name: "a"})})
	}
	judge("query", m.Query, fleet)
	judge("ageQuery", m.AgeQuery, fleet)
	judge("queryPerCluster", m.QueryPerCluster, func(query string) (string, error) {
		return poll.Render(query, plan.Shard{UID: "1", ID: "in-cluster", Namespace: "argocd", Name: "in-cluster", Server: plan.InClusterServer})
	})
	return errs
}

func checkDefaultWeights(weights map[string]config.Decimal) field.ErrorList {
	var errs field.ErrorList
	at, defaults := field.NewPath("index", "pNorm", "weights"), poll.DefaultWeights()
	known := slices.Sorted(maps.Keys(defaults))
	for _, id := range known {
		if _, ok := weights[id]; !ok {
			errs = append(errs, field.Required(at.Key(id), "the default metric has no weight: give it one, 0 to leave it out of the load"))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		if _, ok := defaults[id]; !ok {
			errs = append(errs, field.Invalid(at.Key(id), field.OmitValueType{}, "is none of the default metrics "+strings.Join(known, ", ")))
		}
	}
	return errs
}
