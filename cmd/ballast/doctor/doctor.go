// Package doctor is `ballast doctor`.
package doctor

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/doctor/finding"
	"ballast/cmd/ballast/doctor/look"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
)

// faults is what the command ends with where something has to be mended first.
const faults = 2

type options struct {
	source source.Source
	output string
	all    bool
}

// NewCommand is `ballast doctor`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that ballast relies on, and say how to mend what is missing",
		Long: `doctor looks at what ballast needs and at what stands in its way: the Kubernetes and Argo CD versions, the workload and its
sharding, the cluster Secrets, the metrics and how often they are scraped, autoscalers and budgets, GitOps tools that write the same
fields, and, where ballast is installed, its webhook, its rights and what its leader says. Each is a line, with what mends it.

It only reads, and needs nothing installed. A fault has to be mended before ballast enforces anything; a warning is worth knowing.
The exit code is 0 without faults, 2 with some, and 1 where the cluster could not be looked at.`,
		Example: `  ballast doctor --prometheus http://localhost:9090
  ballast doctor --all             # every Secret, not three of each kind
  ballast doctor -o json | jq '.findings[] | select(.result != "OK")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := say.CheckForm(o.output); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd)
		},
	}
	o.source.RegisterLive(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", say.AsTable, "table, json or yaml")
	cmd.Flags().BoolVar(&o.all, "all", false, "name every object, where otherwise three of each kind stand for the rest")
	return cmd
}

func (o *options) run(ctx context.Context, cmd *cobra.Command) error {
	s, err := look.At(ctx, cmd, &o.source)
	if err != nil {
		return err
	}
	r := report{Findings: examine(s), all: o.all}
	if err := say.Print(o.output, cmd.OutOrStdout(), r); err != nil {
		return err
	}
	if n := r.count(finding.Fault); n > 0 {
		return say.ExitWith(faults, fmt.Errorf("%s to mend", say.Plural(n, "fault")))
	}
	return nil
}

type report struct {
	Findings []finding.Finding `json:"findings"`
	all      bool
}

func (r report) count(of finding.Result) (n int) {
	for _, f := range r.Findings {
		if f.Result == of {
			n++
		}
	}
	return n
}

// WriteTable writes a line for each finding, and below it what mends it.
func (r report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		say.To(t, "%s\t%s\t%s%s\n", f.Result, f.Check, f.Message, r.names(f))
		if f.Mend != "" {
			say.To(t, "\t\t-> %s\n", f.Mend)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	say.To(w, "\n%s, %s, %d not known\n",
		say.Plural(r.count(finding.Fault), "fault"), say.Plural(r.count(finding.Warning), "warning"),
		r.count(finding.Unknown))
	return nil
}

func (r report) names(f finding.Finding) string {
	switch {
	case len(f.Subjects) == 0:
		return ""
	case r.all:
		return ": " + joined(f.Subjects)
	}
	return ": " + say.Listed(f.Subjects)
}
