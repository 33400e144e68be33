// Package plan is `ballast plan`.
package plan

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/printable"
)

type options struct {
	source.Source
	output     string
	saveInputs string
	all        bool
	exitCode   bool
}

// NewCommand makes `ballast plan`.
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

The exit code is 1 where there is no answer. In every form of output it is 2 where anything would change, whatever it waits for: clusters
that move, the number of replicas, sizes, the one restart that sets the env, cluster Secrets that are without a shard yet. With
--exit-code=false it is 0 there, as where nothing would change.`,
		Example: `  ballast plan --prometheus http://localhost:9090
  ballast plan --config ballast.yaml -o json
  ballast plan --prometheus http://localhost:9090 -o patch --exit-code=false > patch.yaml   # in a script under set -e
  ballast plan --prometheus http://localhost:9090 -o html > plan.html   # the page, as one file that loads nothing
  # for a bug report: names, servers and loads, no credential known by its place
  ballast plan --prometheus http://localhost:9090 --save-inputs inputs.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table",
		"table, wide (every move), json, yaml (the plan document), "+
			"html (a page that stands alone), or the answer alone: patch, external-secrets or helm-values")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", true, "end with exit code 2 where anything would change: "+
		"clusters that move, the number of replicas, sizes, the one restart, Secrets without a shard; with =false it is 0")
	cmd.Flags().StringVar(&o.saveInputs, "save-inputs", "",
		"also write the cycle's inputs to this `file`, as JSON: what a bug report needs to be understood; "+
			"names and servers, no credential that is known by its place")
	cmd.Flags().BoolVar(&o.all, "all", false, "list every move")
	cmd.MarkFlagsMutuallyExclusive("inputs", "save-inputs")
	return cmd
}

func (o *options) run(ctx context.Context, cmd *cobra.Command, out, progress io.Writer) error {
	if _, alone := answers[o.output]; !alone && !slices.Contains([]string{"table", "wide", "json", "yaml", "html"}, o.output) {
		return fmt.Errorf("--output: %q is not table, wide, json, yaml, html, patch, external-secrets or helm-values",
			o.output)
	}
	in, err := o.Gather(ctx, cmd, progress)
	if err != nil {
		return err
	}
	if o.saveInputs != "" {
		masked, err := source.Save(o.saveInputs, in)
		if err != nil {
			return err
		}
		if masked > 0 {
			say.To(progress, "note: the server URL of %s holds credentials, which stand in %s as %s\n",
				say.Plural(masked, "cluster Secret"), o.saveInputs, printable.Mark)
		}
	}
	result, err := o.Outcome(in)
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
