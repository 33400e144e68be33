// Package freeze is `ballast freeze` and `ballast resume`.
package freeze

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/plan"
)

type options struct {
	steer.Options
	reason string
	off    bool
	yes    bool
}

// NewCommand makes `ballast freeze`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Let the planner decide nothing by itself, and keep everything as it is",
		Long: `freeze stops decisions, not enforcement. From here on the planner begins nothing by itself: it levels nothing out, scales
nothing, and fails nothing over. What is decided stays: every write is still made to agree with the plan, what drifts is repaired,
and a cluster that is added gets a replica. What people ask for is still done: "ballast evacuate", "ballast rollback", and a pin,
but for one to a replica that there is not yet: it waits, since replicas that come restart the others in some modes. So is what
follows an autoscaler (partition.replicas: workload): the clusters of replicas that it took away get others, and those that it
adds are taken into the plan.

A live rollout that the planner began ends with the wave that is under way, so that no cluster is left between two replicas, and
no replica goes that was to; what is left of it is decided anew after the freeze. In the other modes it goes on to its end, for
half of one is no state to stay in.

It is the annotation ballast.argoproj.io/paused: "true" on the plan ConfigMap; kubectl annotate does the same, and so does a GitOps
tool. To let every write pass as well but one to data.plan, and what the API server's policies refuse, which is another thing:
ballast.argoproj.io/enforcement: "off".

It needs get and patch on that ConfigMap.`,
		Example: `  ballast freeze --reason "Black Friday, ask @alice"
  ballast freeze --off`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.Register(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for those who find it frozen")
	cmd.Flags().BoolVar(&o.off, "off", false, "end it: the planner decides again")
	return cmd
}

// NewResumeCommand makes `ballast resume`.
func NewResumeCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Let the planner decide again, after it was frozen or stopped itself",
		Long: `resume clears both things that keep the planner from deciding: a freeze, and that it stopped itself.

ballast stops itself when a wave of moves is followed within 15 minutes by a cluster without an owner, a replica killed for its
memory, or one that reconciles much slower; and when the same rollout fails for the third time in a day. Then it begins nothing by
itself any more until a person has looked, but for failovers, sizes that grow in place and what follows an autoscaler. After a kill
for memory, clusters on the killed replicas, and those that the wave moved, stay; other failovers go on, unless nobody knows which
clusters those are. The annotation ballast.argoproj.io/tripped on the plan ConfigMap says what happened. resume shows it, or whose
freeze it ends, or both, asks (not about your own freeze), and takes them away. The moves of that wave stay; "ballast rollback"
takes them back, before as well as after.

It needs get and patch on that ConfigMap.`,
		Example: "  ballast resume",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.resume(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	o.Register(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

// longestReason in characters: a sentence or two, which every list shows on one line.
const longestReason = 250

func (o *options) check() error {
	switch {
	case o.off && o.reason != "":
		return errors.New("--reason: it goes with a freeze, and --off ends one")
	case strings.ContainsAny(o.reason, "\r\n"):
		return errors.New("--reason: it has a line break; one line is what people see")
	case !utf8.ValidString(o.reason):
		return errors.New("--reason: it is not UTF-8")
	case utf8.RuneCountInString(o.reason) > longestReason:
		return fmt.Errorf("--reason: it has %d characters, and at most %d are shown", utf8.RuneCountInString(o.reason),
			longestReason)
	}
	return nil
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	m, err := o.Open()
	if err != nil {
		return err
	}
	change := steer.Edits{plan.AnnotationPaused: nil, plan.AnnotationPausedReason: nil, plan.AnnotationPausedBy: nil}
	if !o.off {
		change = o.freezing(m.User(ctx))
	}
	state, written, err := m.Annotate(ctx, func(now steer.State) (steer.Edits, error) {
		passing := now.Annotations[plan.AnnotationPausedReason] == steer.FrozenByUninstall // and a person's is to stay
		frozen, saysNothing := now.Paused && !passing, !o.off && o.reason == ""
		if frozen && saysNothing {
			return nil, nil // as whoever froze it left it
		}
		return change, nil
	})
	if err != nil {
		return err
	}
	return say.Print(o.Output, out, frozenAs(state, written))
}

func (o *options) freezing(user string) steer.Edits {
	yes, change := "true", steer.Edits{plan.AnnotationPausedReason: nil, plan.AnnotationPausedBy: nil}
	change[plan.AnnotationPaused] = &yes
	if o.reason != "" {
		change[plan.AnnotationPausedReason] = &o.reason
	}
	if user != "" {
		change[plan.AnnotationPausedBy] = &user
	}
	return change
}

// These keep a person from clearing what nobody has looked at.
var (
	errTrippedAnew = errors.New("ballast stopped itself for another reason meanwhile: run resume again to see it")
	errFrozenAnew  = errors.New("somebody froze it meanwhile: run resume again to see who")
)

func (o *options) resume(ctx context.Context, in io.Reader, out io.Writer) error {
	m, err := o.Open()
	if err != nil {
		return err
	}
	seen, err := m.Read(ctx)
	if err != nil {
		return err
	}
	ask := seen.Tripped != "" || seen.Paused && !owns(m.User(ctx), seen)
	if ask && !o.yes && !o.agrees(in, out, seen) {
		return errors.New("nothing was changed")
	}
	state, written, err := m.Annotate(ctx, func(now steer.State) (steer.Edits, error) {
		switch {
		case now.Tripped != "" && now.Tripped != seen.Tripped:
			return nil, errTrippedAnew
		case now.Paused && !o.yes && now.FrozenBy() != seen.FrozenBy():
			return nil, errFrozenAnew
		}
		return steer.Edits{plan.AnnotationTripped: nil, plan.AnnotationPaused: nil, plan.AnnotationPausedReason: nil,
			plan.AnnotationPausedBy: nil}, nil
	})
	if err != nil {
		return err
	}
	return say.Print(o.Output, out, frozenAs(state, written))
}

// owns reports whether it is a person's own freeze, which they end unasked.
func owns(user string, seen steer.State) bool {
	return user != "" && seen.Annotations[plan.AnnotationPausedBy] == user
}

// agrees shows what a resume clears, and whose it is, and asks.
func (o *options) agrees(in io.Reader, out io.Writer, seen steer.State) bool {
	o.Cluster.SayWhere(out)
	if seen.Tripped == "" {
		say.To(out, "%s\n", seen.FrozenBy())
		return say.Confirm(in, out, "End the freeze and let it decide again?")
	}
	say.To(out, "ballast stopped itself: %s\n", say.OneLine(seen.Tripped))
	question := "Clear that and let it decide again?"
	if seen.Paused {
		say.To(out, "%s\n", seen.FrozenBy())
		question = "Clear that, end the freeze, too, and let it decide again?"
	}
	return say.Confirm(in, out, question)
}

// frozen is whether the planner decides, and what holds beside.
type frozen struct {
	Frozen     bool          `json:"frozen"`
	By         string        `json:"by,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Tripped    string        `json:"tripped,omitempty"`
	BreakGlass bool          `json:"enforcementOff,omitempty"`
	Asked      bool          `json:"asked,omitempty"` // people asked for a rollback or an evacuation, which goes on
	Revision   int64         `json:"revision,omitempty"`
	Mode       plan.Mode     `json:"mode,omitempty"`
	Rollout    *plan.Rollout `json:"rollout,omitempty"`
	Changed    bool          `json:"changed"` // by this command; else it was so before
}

func frozenAs(s steer.State, changed bool) frozen {
	f := frozen{Frozen: s.Paused, By: say.OneLine(s.Annotations[plan.AnnotationPausedBy]),
		Reason:  say.OneLine(s.Annotations[plan.AnnotationPausedReason]),
		Tripped: say.OneLine(s.Tripped), BreakGlass: s.BreakGlass, Asked: s.Rollback != "" || s.Cordon != "",
		Changed: changed}
	if s.Plan != nil {
		f.Revision, f.Mode, f.Rollout = s.Plan.Revision, s.Plan.Mode, s.Plan.Rollout
	}
	return f
}

func (f frozen) WriteTable(w io.Writer) error {
	already := ""
	if !f.Changed {
		already = ", as before"
	}
	if !f.Frozen {
		say.To(w, "Not frozen%s: the planner decides at each of its cycles.\n", already)
		if f.Tripped != "" {
			say.To(w, "Tripped    ballast stopped itself all the same: %s\n           look into it, then: ballast resume\n", f.Tripped)
		}
		f.writePlan(w)
		return nil
	}
	say.To(w, "Frozen%s: the planner decides nothing by itself until ballast freeze --off.\n", already)
	if f.By != "" {
		say.To(w, "By         %s\n", f.By)
	}
	if f.Reason != "" {
		say.To(w, "Reason     %s\n", f.Reason)
	}
	if f.Tripped != "" {
		say.To(w, "Tripped    ballast stopped itself before: %s\n", f.Tripped)
	}
	f.writePlan(w)
	return nil
}

func (f frozen) writePlan(w io.Writer) {
	switch {
	case f.Revision == 0:
		say.To(w, "Plan       none is in force\n")
	case f.BreakGlass:
		say.To(w, "Plan       revision %d, and enforcement is off: every write passes but one to data.plan, and what the API server's policies refuse\n", f.Revision)
	case f.Mode.Enforced():
		say.To(w, "Plan       revision %d goes on being enforced (%s)\n", f.Revision, f.Mode)
	default:
		say.To(w, "Plan       revision %d, of which nothing is enforced (%s)\n", f.Revision, f.Mode)
	}
	if f.Rollout == nil {
		return
	}
	then := ""
	switch {
	case f.Frozen && f.Rollout.Mode == plan.ModeLive && f.Asked:
		then = ": what a person asked for goes on, anything else ends with this wave"
	case f.Frozen && f.Rollout.Mode == plan.ModeLive:
		then = ": it ends with this wave"
	case f.Frozen:
		then = ": it goes on to its end"
	}
	say.To(w, "Rollout    %s%s\n", say.Rollout(f.Rollout), then)
}
