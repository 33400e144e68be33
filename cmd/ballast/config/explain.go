package config

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/settings"
	"ballast/planner/config"
	"ballast/planner/size"
)

func newConfigExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain FILE",
		Short:   "Print the rules of sizes as they hold, merged of all policies; - reads standard input",
		Example: `  ballast config explain config.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readConfig(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			c, err := config.Parse(data, settings.CheckMetrics)
			if err != nil {
				return reportMistakes(cmd.OutOrStdout(), args[0], err)
			}
			return explainSizes(cmd.OutOrStdout(), c.Size)
		},
	}
}

// explainSizes prints each rule that holds, and the policy that it is of.
func explainSizes(w io.Writer, s config.Size) error {
	rules := s.Merged()
	if len(rules) == 0 {
		say.To(w, "No policy says how large replicas are: their requests and limits are yours.\n")
		return nil
	}
	say.To(w, "size.apply is %s; rules of one list and resource add up\n", s.Apply)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say.To(t, "  list\tresource\trule\tof policy\tvalue\n")
	for _, r := range rules {
		say.To(t, "  %s\t%s\t%s\t%s\t%s\n", r.List, r.Resource, cmp.Or(r.Name, "-"), s.PolicyOf(r), formula(r))
	}
	return t.Flush()
}

// formula is what a rule computes, in one line.
func formula(r size.Rule) string {
	said := r.Base.String()
	if r.Input != "" {
		said += fmt.Sprintf(" + %s * %s of %s", r.Slope.String(), r.Input, r.Scope)
		if r.Per.Sign() > 0 {
			said += " / " + r.Per.String()
		}
	}
	if r.Min != nil {
		said += ", at least " + r.Min.String()
	}
	if r.Max != nil {
		said += ", at most " + r.Max.String()
	}
	return said
}
