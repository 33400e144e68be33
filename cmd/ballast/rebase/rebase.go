// Package rebase is `ballast rebase`.
package rebase

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

type options struct {
	steer.Options
	yes  bool
	off  bool
	undo bool
}

// NewCommand makes `ballast rebase`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "rebase",
		Short: "Measure loads anew, against what the fleet makes now",
		Long: `rebase has the planner take the references of all metrics anew. Each metric counts as a share of its reference, which is what
the fleet made of it when it was measured first, so that a load means the same for ever: 1 is the fleet of then, and 2 one that
makes twice as much. References that were taken while Argo CD or Prometheus had just begun to run give a metric more or less weight
than it should have. The planner takes those anew by itself, once it has measured for three hours and ten minutes. What it leaves
are old ones: of a fleet that became another one, or that a version of Argo CD counts otherwise.

Afterwards the fleet's load is 1 again. Clusters move where the weights of the metrics changed by it, and only as any other
levelling does: once the moves pay (or by votes, with evaluate.mostWanted), within the move budget. It is done once a day at most,
once the metrics were believed for three hours and ten minutes, while no rollout is under way, and not while partition.capacity or
size.weights are set, which are shares of them. The plan's reason says the old numbers and the new ones, and --undo brings the old
ones back.

It is the annotation ballast.argoproj.io/rebase: "true" on the plan ConfigMap, or "undo", which the planner takes away when it is
done.

It needs get and patch on that ConfigMap.`,
		Example: `  ballast rebase
  ballast rebase --off  # before it is done
  ballast rebase --undo # after it`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&o.off, "off", false, "take the wish back")
	cmd.Flags().BoolVar(&o.undo, "undo", false, "bring the references back that were before the last one")
	cmd.MarkFlagsMutuallyExclusive("off", "undo")
	return cmd
}

// errNoReferences is what a fleet answers whose loads are shares of nothing.
var errNoReferences = errors.New("the plan has no references: it has none before the metrics were measured, and none where the configuration's normalize is not reference")

func (o *options) run(ctx context.Context, in io.Reader, out, notes io.Writer) error {
	m, err := o.Open()
	if err != nil {
		return err
	}
	seen, err := m.Read(ctx)
	if err != nil {
		return err
	}
	if !o.off {
		if seen.Plan == nil || len(seen.Plan.References) == 0 {
			return errNoReferences
		}
		question := "Take the references of all metrics anew? A load then means another thing than before."
		if o.undo {
			question = "Bring the references back that were before the last rebase? A load then means again what it meant."
		}
		if !o.yes {
			o.Cluster.SayWhere(notes)
			if !say.Confirm(in, notes, question) {
				return errors.New("nothing was changed")
			}
		}
	}
	edits := steer.Edits{plan.AnnotationRebase: nil}
	if value := o.annotation(); value != "" {
		edits[plan.AnnotationRebase] = &value
	}
	state, written, err := m.Annotate(ctx, func(steer.State) (steer.Edits, error) { return edits, nil })
	if err != nil {
		return err
	}
	return say.Print(o.Output, out, rebasedAs(state, written))
}

// annotation is its value; empty for none.
func (o *options) annotation() string {
	switch {
	case o.off:
		return ""
	case o.undo:
		return string(configmap.RebaseBack)
	}
	return string(configmap.RebaseAnew)
}

// rebased is what is asked of the planner, and by what it measures until it has done it.
type rebased struct {
	Asked      bool              `json:"asked"`
	Undo       bool              `json:"undo,omitempty"` // and that is the references of before
	Changed    bool              `json:"changed"`        // by this command; else it was so before
	References map[string]string `json:"references,omitempty"`
}

func rebasedAs(s steer.State, changed bool) rebased {
	r := rebased{Asked: s.Rebase != "", Undo: s.Rebase == configmap.RebaseBack, Changed: changed}
	if s.Plan != nil {
		r.References = s.Plan.References
	}
	return r
}

// WriteTable writes it for people.
func (r rebased) WriteTable(w io.Writer) error {
	already := ""
	if !r.Changed {
		already = ", as before"
	}
	switch {
	case !r.Asked:
		say.To(w, "Not asked%s: the references stay as they are.\n", already)
	case r.Undo:
		say.To(w, "Asked%s: the planner brings the references of before back at its next cycle whose metrics are believed; "+
			"ballast status shows the reason.\n", already)
	default:
		say.To(w, "Asked%s: the planner takes the references anew at its next cycle whose metrics are believed; "+
			"ballast status shows the reason.\n", already)
	}
	for _, id := range slices.Sorted(maps.Keys(r.References)) {
		say.To(w, "Reference  %s %s\n", say.OneLine(id), say.OneLine(r.References[id]))
	}
	return nil
}
