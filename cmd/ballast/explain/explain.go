// Package explain is `ballast explain`.
package explain

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
	"ballast/planner/cycle/explain"
)

// NewCommand is `ballast explain`.
func NewCommand() *cobra.Command {
	var o source.Source
	var output string
	cmd := &cobra.Command{
		Use:   "explain CLUSTER",
		Short: "Say why a cluster is on its replica, and what each other one would be to it",
		Long: `explain runs one cycle, as plan does, and prints what it means to one cluster: its values and its load, what share of the fleet
and of its replica that is, why it is where it is, and for each replica what it would carry with the cluster on it, how level the
fleet would be then, and what speaks against it; what a move to the best of them would gain and cost, and whether to leave the cluster
where it is; then how few replicas, how low a makespan and how few moves would be possible for the fleet by load alone, as far as that
can be proved in a moment. It writes nothing.

CLUSTER is the name of its Secret, its own name, or its server.`,
		Example: `  ballast explain prod-eu --prometheus http://localhost:9090
  ballast explain https://10.0.0.1 -o yaml
  ballast explain prod-eu --inputs inputs.json   # of a bug report`,
		Args: say.One("a cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := say.CheckForm(output); err != nil {
				return err
			}
			return explainCluster(cmd, &o, args[0], output)
		},
	}
	o.Register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	return cmd
}

func explainCluster(cmd *cobra.Command, from *source.Source, name, output string) error {
	in, err := from.Gather(cmd.Context(), cmd, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	result, err := from.Outcome(in)
	if err != nil {
		return err
	}
	e, err := explain.Cluster(in, result, name)
	if err != nil {
		return err
	}
	return say.Print(output, cmd.OutOrStdout(), explained{e})
}

// explained prints an explanation.
type explained struct{ explain.Explanation }

// WriteTable implements say.Result.
func (e explained) WriteTable(w io.Writer) error {
	at := "on no replica"
	if e.Replica >= 0 {
		at = fmt.Sprintf("on replica %d", e.Replica)
	}
	say.To(w, "%s (%s) is %s: %s.\n", e.Cluster, say.OrDash(e.Server), at, e.Because)
	if len(e.Together) > 0 {
		say.To(w, "One server, or one group, with %s: they go together.\n", say.Listed(e.Together))
	}
	if err := e.values(w); err != nil {
		return err
	}
	if len(e.Choices) > 0 {
		say.To(w, "\nLoad %s: %.1f %% of the fleet, %.1f %% of its replica.\n\n", e.Load.Display(), 100*e.OfFleet,
			100*e.OfOwn)
		if e.Room > 0 {
			say.To(w, "It takes %s of memory, of which a replica has %s for its clusters.\n\n", e.Takes, e.Room)
		}
		if err := e.table(w); err != nil {
			return err
		}
	}
	to := "it stays where it is"
	if e.To >= 0 {
		to = fmt.Sprintf("it would go to replica %d", e.To)
	}
	say.To(w, "\nBy the partition %s. The plan: %s.\n", to, e.Verdict)
	if e.Moving != nil {
		e.moving(w, *e.Moving)
	}
	if e.Fleet == nil {
		return nil
	}
	return fleet{*e.Fleet}.write(w)
}

// moving prints what a move would gain and cost, and whether to leave the cluster where it is.
func (e explained) moving(w io.Writer, m explain.Moving) {
	if m.To >= 0 {
		say.To(w, "\nOn replica %d, the best other one, the fullest would carry %s, and %s now (makespan/mean %.2f); "+
			"of overload it would mend %s.\n",
			m.To, m.After.Display(), m.Makespan.Display(), m.Level, m.Saves.Display())
		say.To(w, "It would cost %.3g load hours: %s from an empty cache%s%s.\n", m.LoadHours, starting(m), listed(m),
			e.budget(m))
	}
	say.To(w, "%s\n", m.Answer)
}

// starting is who starts from an empty cache.
func starting(m explain.Moving) string {
	switch {
	case m.Restarts:
		return "every replica restarts, and starts"
	case m.Clusters == 1:
		return "its new owner starts"
	}
	return fmt.Sprintf("%s go, and their new owner starts", say.Plural(m.Clusters, "cluster"))
}

func listed(m explain.Moving) string {
	if m.Objects == nil {
		return ""
	}
	return fmt.Sprintf(", and lists %.0f objects anew", *m.Objects)
}

// budget is when the move budget lets it come about.
func (e explained) budget(m explain.Moving) string {
	switch {
	case !m.Limited:
		return ""
	case m.Done.IsZero():
		return "; the move budget never has room for it"
	case m.Done.After(e.At):
		return fmt.Sprintf("; by the move budget in %s at the earliest", say.Span(m.Done.Sub(e.At)))
	}
	return "; the move budget has room for it now"
}

// fleet prints how all clusters are divided.
type fleet struct{ explain.Yardstick }

func (f fleet) write(w io.Writer) error {
	say.To(w, "\nThe fleet, beside what is possible by load alone:\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if f.Fewest != nil {
		say.To(t, "  replicas\t%d\tthe fewest that carry no more than %s each: %s\n", f.Replicas, f.Capacity.Display(),
			count(*f.Fewest))
	}
	least := f.Level.Best.Display() + " (proved)"
	if !f.Level.Proved {
		least = fmt.Sprintf("between %s and %s", f.Level.Least.Display(), f.Level.Best.Display())
	}
	say.To(t, "  makespan\t%s\tthe least of %s: %s; %.2f of the lower bound\n", f.Makespan.Display(),
		say.Plural(f.Replicas, "replica"), least,
		float64(f.Makespan)/float64(max(f.Level.Least, 1)))
	switch {
	case f.Stuck:
		say.To(t, "  moves\t-\tnone bring every replica to %s or below (proved)\n", f.MovesUntil.Display())
	case f.Moves != nil:
		say.To(t, "  moves\t-\tthe fewest until no replica carries more than %s: %s\n", f.MovesUntil.Display(),
			count(*f.Moves))
	}
	return t.Flush()
}

// count says what is known of a least number.
func count(l explain.Least) string {
	switch {
	case l.Proved:
		return fmt.Sprintf("%d (proved)", l.Least)
	case l.Best == nil:
		return fmt.Sprintf("%d or more", l.Least)
	}
	return fmt.Sprintf("between %d and %d", l.Least, *l.Best)
}

func (e explained) values(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, v := range e.Values {
		when := ""
		if !v.Sampled.IsZero() {
			when = say.Span(e.At.Sub(v.Sampled)) + " ago"
		}
		say.To(t, "  %s\t%.4g\t%s\t%s\n", v.Metric, v.Value, v.Flag, when)
	}
	return t.Flush()
}

func (e explained) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	memory := e.Room > 0
	if memory {
		say.To(t, "REPLICA\tCLUSTERS\tCARRIES\tWITH IT\tMAKESPAN/MEAN\tMEMORY WITH IT\tAGAINST IT\n")
	} else {
		say.To(t, "REPLICA\tCLUSTERS\tCARRIES\tWITH IT\tMAKESPAN/MEAN\tAGAINST IT\n")
	}
	for _, c := range e.Choices {
		says := say.OrDash(c.Against)
		if c.Replica == e.Replica {
			says = "it is here"
		}
		say.To(t, "%d\t%d\t%s\t%s\t%.2f\t", c.Replica, c.Clusters, c.Carries.Display(), c.With.Display(), c.Imbalance)
		if memory {
			say.To(t, "%s\t", c.InUse)
		}
		say.To(t, "%s\n", says)
	}
	return t.Flush()
}
