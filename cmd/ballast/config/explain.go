package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/settings"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/cycle/loads"
	"ballast/planner/poll"
	"ballast/planner/size"
)

func newConfigExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain FILE",
		Short:   "Print the rules of sizes as they hold, merged of all policies; - reads standard input",
		Example: `  ballast config explain config.yaml`,
		Args:    say.One("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readConfig(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			c, err := configfile.Parse(data, settings.CheckMetrics)
			if err != nil {
				return reportMistakes(cmd.OutOrStdout(), args[0], err)
			}
			return explainSizes(cmd.OutOrStdout(), c)
		},
	}
}

// explainSizes prints each rule that holds, and the policy that it is of.
func explainSizes(w io.Writer, c config.PlannerConfig) error {
	s := c.Size
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
		for _, more := range refined(r) {
			say.To(t, "  \t\t\t\t  %s\n", more)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return explainInputs(w, c, rules)
}

// explainInputs prints what rules that hold read, and where that comes from.
func explainInputs(w io.Writer, c config.PlannerConfig, rules []size.Rule) error {
	var inputs []string
	for _, r := range rules {
		if r.Input != "" {
			inputs = append(inputs, r.Input)
		}
	}
	slices.Sort(inputs)
	if from := c.Size.NodeCap.FromNodes; from != nil {
		say.To(w, "what size.nodeCap does not write is the largest node that the pods may run on, but %s (component size-nodes)\n", from.Reserve)
	}
	if len(inputs) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say.To(t, "  input\tcomes from\n")
	for _, input := range slices.Compact(inputs) {
		say.To(t, "  %s\t%s\n", input, comesFrom(c, input))
	}
	return t.Flush()
}

func comesFrom(c config.PlannerConfig, input string) string {
	ofReplicas := slices.ContainsFunc(loads.ReplicaMetricsOf(c), func(m poll.Metric) bool { return m.ID == input })
	switch source := config.SourceOf(input); {
	case ofReplicas:
		return "a metric of replicas, by the names of their pods"
	case source == config.FromPods:
		return "what each replica's pod says of itself"
	case source == config.FromNodesInput:
		return "the allocatable of all nodes of this cluster (component size-nodes)"
	case source != config.FromFleet:
		return "the " + string(source) + " of the workload"
	case slices.Contains(config.KnownInputs(nil), input):
		return "the plan"
	}
	return "a metric of clusters"
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

// refined is what else a rule says, a line each, in the order in which it counts.
func refined(r size.Rule) (lines []string) {
	if s := r.Smoothing; s != nil {
		whole := s.WithDefaults()
		lines = append(lines, fmt.Sprintf("smooth: percentile %s of the last %d samples, and no change between percentiles %s and %s",
			percentile(whole.Target), whole.Samples, percentile(whole.Low), percentile(whole.High)))
	}
	for _, s := range r.Segments {
		lines = append(lines, fmt.Sprintf("segment: an input from %s on is rounded up to a multiple of %s",
			s.At.String(), s.Every.String()))
	}
	if q := r.Quantum; q != nil {
		said := fmt.Sprintf("quantize: rounded up to %s, and steps of %s above", q.Base.String(), q.Step.String())
		if q.Ratio != 0 && q.Ratio != 1 {
			said += ", each " + strconv.FormatFloat(q.Ratio, 'g', -1, 64) + " times the last"
		}
		if q.MaxStep.Sign() > 0 {
			said += ", of " + q.MaxStep.String() + " at most"
		}
		lines = append(lines, said)
	}
	return append(lines, slices.Concat(delayed("delayScaleUp", "grows", "less", r.DelayUp),
		delayed("delayScaleDown", "shrinks", "more", r.DelayDown))...)
}

// delayed is when a rule lets a change be, by a delay of one direction.
func delayed(name, does, by string, d size.Delay) []string {
	var when []string
	if d.Max.Sign() > 0 {
		when = append(when, fmt.Sprintf("an input of %s %s would, too", d.Max.String(), by))
	}
	if d.For > 0 {
		when = append(when, fmt.Sprintf("all samples of the last %s do", config.Duration(d.For)))
	}
	if len(when) == 0 {
		return nil
	}
	return []string{name + ": it " + does + " once " + strings.Join(when, ", or ")}
}

// percentile is a share in thousandths.
func percentile(thousandths int) string {
	return strconv.FormatFloat(float64(thousandths)/10, 'f', -1, 64)
}
