// Package rollback is `ballast rollback`.
package rollback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/cycle/input"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/store"
)

type options struct {
	steer.Options
	history string
	yes     bool
	dryRun  bool
	off     bool
	all     bool
}

// NewCommand makes `ballast rollback`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "rollback [REVISION]",
		Short: "Go back to one of the last plans, a wave at a time",
		Long: `rollback takes the fleet back to a plan that was in force: every cluster to the replica it had then, and as many replicas as there
were, but never fewer than partition.minReplicas or a pin asks for; where partition.replicas is workload, people's number stays.
The planner does it like any other change: in waves, within the move budget, watched, and turned back where a wave fails; a freeze
does not keep it from that, nor does a trip. It is a new decision and gets a new revision. Then the balance is left alone
for evaluate.costBenefit.horizon (24h by default), and for half an hour where another policy evaluates; if things are to stay so,
"ballast freeze".

Where size policies hold sizes, those of then come back once the clusters are where they were, and hold for as long as the balance
is left alone, but for what is in use: no memory limit goes below it. Modes, windows and rates of change.up and change.down hold; a
freeze keeps them from coming back.

Without a revision it lists the plans that are kept, the last ten, with the moves that each would take from now. With one it shows
the difference and asks. Clusters that are pinned now stay where they are, as do those whose Secret is immutable, unmanaged
or not of discover.selector; clusters that were added since then stay, too, unless their replica goes; those that are gone do not come back. None goes back to a
replica that is unwell or cordoned when its turn comes: an event names those that stay. Where the move budget is smaller than
the difference, it takes hours or days, and the revision is kept until then.

It is the annotation ballast.argoproj.io/rollback-to: "14" on the plan ConfigMap. The planner takes it away when it is done, or when
it refuses, with an event that says why. It needs get on the history ConfigMap and get and patch on the plan's. To know which
clusters stay it needs list on secrets, and get on Argo CD's settings and on the planner's configuration (for discover.selector):
without list on secrets, clusters whose Secret is immutable, unmanaged or not selected are counted as any other.`,
		Example: `  ballast rollback                # which plans are kept
  ballast rollback 14 --dry-run   # what would change
  ballast rollback 14
  ballast rollback --off          # stop going back; what moved so far stays`,
		Args: say.AtMostOne("a revision"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd)
	o.RegisterConfig(cmd)
	f := cmd.Flags()
	f.StringVar(&o.history, "history-configmap", "ballast-history", "name of the history ConfigMap")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the difference, and change nothing")
	f.BoolVar(&o.off, "off", false, "stop a rollback that was asked for; what moved so far stays")
	f.BoolVar(&o.all, "all", false, "list also the plans from the midst of a rollout, to which there is no way back")
	return cmd
}

func (o *options) run(ctx context.Context, args []string, in io.Reader, out, notes io.Writer) error {
	var revision int64
	if len(args) > 0 {
		var err error
		if revision, err = strconv.ParseInt(args[0], 10, 64); err != nil || revision < 1 {
			return fmt.Errorf("REVISION: %q is not the number of a plan: ballast rollback lists them", args[0])
		}
	}
	switch {
	case o.off && (revision > 0 || o.dryRun || o.all):
		return errors.New("--off: it stops whatever rollback was asked for, and goes with no revision, --dry-run or --all")
	case revision == 0 && o.dryRun:
		return errors.New("--dry-run: name the revision: ballast rollback 14 --dry-run")
	}
	m, err := o.Open()
	if err != nil {
		return err
	}
	switch {
	case o.off:
		return o.cancel(ctx, m, out)
	case revision == 0:
		return o.list(ctx, m, out, notes)
	}
	return o.back(ctx, m, revision, in, out, notes)
}

// kept reads the plans that are kept, newest first.
func (o *options) kept(ctx context.Context, m *steer.PlanMap) ([]keptPlan, error) {
	h, problems, err := store.New(store.Options{Client: m, Reader: m, Namespace: m.Key.Namespace, Plan: m.Key.Name,
		History: o.history}).ReadHistory(ctx)
	if err != nil {
		if apierrors.IsForbidden(err) {
			err = fmt.Errorf("%w\nthis needs get on that ConfigMap", err)
		}
		return nil, err
	}
	var list []keptPlan
	for _, r := range h.Plans {
		k := keptPlan{Revision: r.Revision, DecidedAt: r.Meta.DecidedAt, DecidedBy: say.OneLine(r.Meta.DecidedBy),
			Reason: say.OneLine(r.Meta.Reason)}
		p, err := codec.Decode(r.Text)
		switch {
		case err != nil:
			k.Problem = say.OneLine(err.Error())
		case p.Rollout != nil:
			k.Midst = string(p.Rollout.Stage)
			k.Replicas = p.Replicas
		default:
			k.plan, k.Replicas = &p, p.Replicas
		}
		list = append(list, k)
	}
	for _, problem := range problems {
		list = append(list, keptPlan{Problem: say.OneLine(problem)})
	}
	return list, nil
}

func (o *options) list(ctx context.Context, m *steer.PlanMap, out, notes io.Writer) error {
	state, err := m.Read(ctx)
	if err != nil {
		return err
	}
	p, err := state.NeedPlan()
	if err != nil {
		return err
	}
	kept, err := o.kept(ctx, m)
	if err != nil {
		return err
	}
	secrets, err := m.Stands(ctx, state.Document, notes)
	if err != nil {
		return err
	}
	l := keptList{InForce: p.Revision, RollbackTo: say.OneLine(state.Rollback), Plans: []keptPlan{}, now: o.Now()}
	for _, k := range kept {
		if k.plan != nil {
			moves := len(wayBack(state.Document, secrets, *k.plan, o.Now()).Moves)
			k.Moves, k.InForce = &moves, k.Revision == p.Revision
		}
		if k.Midst != "" && !o.all {
			l.Hidden++
			continue
		}
		l.Plans = append(l.Plans, k)
	}
	return say.Print(o.Output, out, l)
}

// refused is why the planner would not go back to a plan that is kept; empty: it would.
func refused(k keptPlan, now plan.Plan) string {
	return (&input.Rollback{Revision: k.Revision, Plan: k.plan}).Refused(now)
}

// choose finds the plan to go back to, and refuses what cannot be with what can.
func choose(p plan.Plan, kept []keptPlan, revision int64) (plan.Plan, error) {
	var good []string
	for _, k := range kept {
		if k.plan != nil && k.Revision != p.Revision && refused(k, p) == "" {
			good = append(good, strconv.FormatInt(k.Revision, 10))
		}
	}
	instead := "no other plan is kept that one could go back to"
	if len(good) > 0 {
		instead = "choose one of " + strings.Join(good, ", ")
	}
	at := slices.IndexFunc(kept, func(k keptPlan) bool { return k.Revision == revision })
	switch {
	case revision == p.Revision:
		return plan.Plan{}, fmt.Errorf("REVISION: %d is the plan in force; %s", revision, instead)
	case at < 0:
		return plan.Plan{}, fmt.Errorf("REVISION: %d is not kept; %s", revision, instead)
	case kept[at].Midst != "":
		return plan.Plan{}, fmt.Errorf("REVISION: %d was written in the midst of a rollout (%s), which is no state to go back to; %s",
			revision, kept[at].Midst, instead)
	case kept[at].plan == nil:
		return plan.Plan{}, fmt.Errorf("REVISION: %d cannot be read: %s; %s", revision, kept[at].Problem, instead)
	}
	then := *kept[at].plan
	if why := refused(kept[at], p); why != "" {
		return plan.Plan{}, fmt.Errorf("REVISION: %s; %s", why, instead)
	}
	return then, nil
}

// back shows the way back, asks, and asks the planner for it.
func (o *options) back(ctx context.Context, m *steer.PlanMap, revision int64, in io.Reader, out, notes io.Writer) error {
	state, err := m.Read(ctx)
	if err != nil {
		return err
	}
	kept, err := o.kept(ctx, m)
	if err != nil {
		return err
	}
	d, err := o.difference(ctx, m, state, kept, revision, notes)
	if err != nil {
		return err
	}
	if d.nothing() || o.dryRun {
		return say.Print(o.Output, out, d)
	}
	if !o.yes {
		if err := d.WriteTable(notes); err != nil {
			return err
		}
		o.Cluster.SayWhere(notes)
		if !say.Confirm(in, notes, fmt.Sprintf("Go back from revision %d to %d?", d.From, d.To)) {
			return errors.New("nothing was changed")
		}
	}
	shown, asked := state.Plan.Revision, state.Rollback
	to := strconv.FormatInt(revision, 10)
	state, d.Changed, err = m.Annotate(ctx, func(now steer.State) (steer.Edits, error) {
		p, err := now.NeedEnforce()
		if err != nil {
			return nil, err
		}
		if !o.yes && p.Revision != shown {
			return nil, fmt.Errorf("the plan became revision %d while you looked at %d: look again; nothing was changed", p.Revision, shown)
		}
		changed := now.Rollback != asked && now.Rollback != to // since the look, by somebody else
		if changed && now.Rollback != "" && !o.yes {
			return nil, fmt.Errorf("somebody asked for revision %s while you looked: "+
				"run rollback again to see what would replace that; nothing was changed", say.OneLine(now.Rollback))
		}
		_, err = choose(*p, kept, revision)
		return steer.Edits{plan.AnnotationRollback: &to}, err
	})
	if err != nil {
		return err
	}
	d.Waits, d.asked, d.shown = state.Waits(), true, !o.yes
	return say.Print(o.Output, out, d)
}

func (o *options) difference(ctx context.Context, m *steer.PlanMap, state steer.State, kept []keptPlan, revision int64, notes io.Writer) (difference, error) {
	p, err := state.NeedEnforce()
	if err != nil {
		return difference{}, err
	}
	then, err := choose(*p, kept, revision)
	if err != nil {
		return difference{}, err
	}
	secrets, err := m.Stands(ctx, state.Document, notes)
	if err != nil {
		return difference{}, err
	}
	d := wayBack(state.Document, secrets, then, o.Now())
	d.Waits, d.DryRun, d.Asked = state.Waits(), o.dryRun, say.OneLine(state.Rollback)
	return d, nil
}

func (o *options) cancel(ctx context.Context, m *steer.PlanMap, out io.Writer) error {
	asked := ""
	state, written, err := m.Annotate(ctx, func(now steer.State) (steer.Edits, error) {
		asked = now.Rollback
		return steer.Edits{plan.AnnotationRollback: nil}, nil
	})
	if err != nil {
		return err
	}
	c := cancelled{Was: say.OneLine(asked), Changed: written}
	if state.Plan != nil {
		c.Revision, c.Rollout = state.Plan.Revision, state.Plan.Rollout
	}
	return say.Print(o.Output, out, c)
}

// keptPlan is one of the plans that are kept; plan is nil for one that there is no way back to, and why stands beside.
type keptPlan struct {
	Revision  int64     `json:"revision,omitempty"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	DecidedBy string    `json:"decidedBy,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Replicas  int       `json:"replicas,omitempty"`
	Moves     *int      `json:"moves,omitempty"` // from now
	InForce   bool      `json:"inForce,omitempty"`
	Midst     string    `json:"midst,omitempty"` // the stage of the rollout in whose midst it was written
	Problem   string    `json:"problem,omitempty"`

	plan *plan.Plan
}
