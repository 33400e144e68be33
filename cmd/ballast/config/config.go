// Package config is `ballast config`.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/settings"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/cycle/loads"
)

// NewCommand makes `ballast config`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print and check the planner's configuration file",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newConfigDefaultCommand(), newConfigCheckCommand(), newConfigExplainCommand(),
		newConfigConvertCommand())
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
		Args: say.One("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readConfig(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			c, err := configfile.Parse(data, settings.CheckMetrics)
			if err != nil {
				return reportMistakes(cmd.OutOrStdout(), args[0], err)
			}
			return reportConfig(cmd.OutOrStdout(), args[0], c)
		},
	}
}

// mostRead is more than any configuration or manifest may have: what is longer is refused by its reader.
const mostRead = 4 << 20

func readConfig(stdin io.Reader, name string) ([]byte, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(stdin, mostRead))
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
		say.To(w, "%s\n", mistake)
	}
	return fmt.Errorf("checking %q: %s", name, say.Plural(len(all.Errors()), "mistake"))
}

// reportConfig says that a file is good, and what it says.
func reportConfig(w io.Writer, name string, c config.PlannerConfig) error {
	ids, from := []string{}, "the application-controllers' own pods"
	for _, m := range loads.MetricsOf(c) {
		ids = append(ids, m.ID)
	}
	if c.Poll.Prometheus != nil {
		from = c.Poll.Prometheus.URL
	}
	target := c.Target.Name
	if target == "" {
		target = "(found by its labels)"
	}
	say.To(w, "ok: %s\n", name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say.To(t, "  mode\t%s, every %s\n", c.Mode, c.Interval)
	say.To(t, "  target\t%s in namespace %s\n", target, c.Target.Namespace)
	say.To(t, "  metrics\t%s from %s\n", strings.Join(ids, ", "), from)
	say.To(t, "  replicas\t%s\n", replicasSummary(c.Partition))
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
