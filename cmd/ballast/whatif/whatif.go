// Package whatif is `ballast whatif`.
package whatif

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/source"
)

type options struct {
	source source.Source
	change change
	output string
	all    bool
}

// NewCommand is `ballast whatif`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "whatif",
		Short: "Say what ballast would make of another fleet: more clusters, fewer, a replica less, another capacity",
		Long: `whatif runs the planner's own cycle on the fleet as it is and on the fleet as you suppose it, each until nothing moves any
more, and prints both: the replicas, what each carries, the clusters that move, the problems, and what it costs. It writes nothing.

What is supposed may be combined. Clusters are added as the webhook takes them in, and measured as the one that they are like; then
the fleet comes to rest; what is lost is lost then, all at the same moment, and failover moves its clusters, unless it is more than half
of the fleet. A loss alone happens to the fleet as it is.
Every replica that is not lost is taken to work, and the mode to enforce.

The last line answers: whether it fits, on how many replicas, how full the fullest would be and by how many moves. It fits where
every cluster has a replica and none carries more than it may (partition.capacity), or without that, than one is known to bear; what
is beyond that is not known to fit. The exit code is 0 whatever the answer, and 1 where there is none; -o json has it under fit.

CLUSTER is the name of its Secret, its own name, or its server.`,
		Example: `  ballast whatif --add 20 --like prod-eu --prometheus http://localhost:9090
  ballast whatif --remove prod-us --remove prod-ap
  ballast whatif --lose 2                           # would the others bear it?
  ballast whatif --capacity 1.5 --replicas auto     # how many replicas would that be?
  ballast whatif --replicas 8 --add 50 --like prod-eu -o json
  ballast whatif --lose 0 --inputs inputs.json      # of a cycle that ballast plan --save-inputs saved`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := say.CheckForm(o.output); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.source.Register(cmd)
	f := cmd.Flags()
	f.IntVar(&o.change.add, "add", 0, "suppose so many clusters more, each like the one of --like")
	f.StringVar(&o.change.like, "like", "", "the `cluster` that those of --add are like")
	f.StringSliceVar(&o.change.remove, "remove", nil, "suppose that this `cluster` is gone; may be repeated")
	f.IntSliceVar(&o.change.lose, "lose", nil, "suppose that this `replica` is lost for good; may be repeated")
	f.StringVar(&o.change.replicas, "replicas", "", "suppose partition.replicas is this `number`, or "+auto+": none")
	f.IntVar(&o.change.maxReplicas, "max-replicas", 0, "suppose partition.maxReplicas is this `number`")
	f.StringVar(&o.change.capacity, "capacity", "", "suppose partition.capacity is this `load`")
	f.StringVarP(&o.output, "output", "o", say.AsTable, "table, json or yaml")
	f.BoolVar(&o.all, "all", false, "list every move")
	return cmd
}

func (o *options) run(ctx context.Context, cmd *cobra.Command, out, progress io.Writer) error {
	if err := o.change.check(); err != nil {
		return err
	}
	in, err := o.source.Gather(ctx, cmd, progress)
	if err != nil {
		return err
	}
	var a *Answer
	if err := o.source.Runs(func() (err error) { a, err = ask(in, o.change); return err }); err != nil {
		return err
	}
	a.all = o.all
	return say.Print(o.output, out, a)
}
