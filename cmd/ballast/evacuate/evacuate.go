// Package evacuate is `ballast evacuate`.
package evacuate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/steer"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

type options struct {
	steer.Options
	keep    time.Duration
	keepSet bool
	off     bool
	dryRun  bool
	wait    bool
	timeout time.Duration
	poll    time.Duration
	until   time.Time // what --for comes to
}

// NewCommand makes `ballast evacuate`.
func NewCommand() *cobra.Command {
	o := &options{poll: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "evacuate [REPLICA]",
		Short: "Empty a replica for a while, before its node is drained or its pod looked into",
		Long: `evacuate moves the clusters of one application-controller replica to the others, a wave at a time and within the move budget, and
keeps it empty until its time is over. No wave takes a cluster there meanwhile, and a rollout that levels the fleet ends with its
wave, so that this need not wait. A cluster that is created in that time goes elsewhere once the plan names the cordon, unless
every replica has one, or another Secret of its server is there. When the time is over the replica is one like any other: clusters come back by balance,
if that is worth their moves, and not because they were there.

Clusters that are pinned there stay, and so do those that ballast does not move: of a Secret that is immutable, unmanaged or not
of discover.selector, and the in-cluster that Argo CD adds by itself, without a Secret. They are named. With --wait it ends with
exit code 0 when the replica is empty, with 3 when such clusters are all that is left, and with 1 where it cannot tell or the time
is over: in "ballast evacuate 3 --wait && kubectl drain" nothing is drained that still works. First it shows which clusters would
go where, by the planner's own judgement and the loads of the last decision; the planner chooses anew, by present loads, when it
begins.

It is the annotation ballast.argoproj.io/cordon on the plan ConfigMap, like "3=2026-11-20T17:00:00Z,1=2026-11-20T18:30:00Z", and
needs get and patch on that ConfigMap. To know of clusters that stay it needs list on secrets, on statefulsets and deployments,
and get on configmaps there, the planner's configuration (for discover.selector) and Argo CD's settings among them: without list
on secrets those clusters are counted as any other, and --wait ends with 1, for it cannot tell that nothing is left.
Without a replica, it lists those that are cordoned.`,
		Example: `  ballast evacuate 3 --dry-run            # what would move
  ballast evacuate 3 --for 2h --wait && kubectl drain node-17
  ballast evacuate                        # which replicas are cordoned, and until when
  ballast evacuate 3 --off`,
		Args: say.AtMostOne("a replica"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.keepSet = cmd.Flags().Changed("for")
			if len(args) == 0 {
				return o.list(cmd.Context(), cmd.OutOrStdout())
			}
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Register(cmd)
	o.RegisterConfig(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.keep, "for", 2*time.Hour, "how long from now the replica stays empty; without it, one that is cordoned keeps its time")
	f.BoolVar(&o.off, "off", false, "end it: the replica takes clusters again")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would move, and change nothing")
	f.BoolVar(&o.wait, "wait", false, "tell of each wave until the replica is empty; exit code 3 where clusters stay by their pins or their Secret")
	f.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long --wait waits")
	return cmd
}

// The bounds of --for: less than a wave takes is a slip, and a cordon of more than a month is one that was forgotten.
const (
	shortestCordon = time.Minute
	longestCordon  = 31 * 24 * time.Hour
)

// check reads the replica and what contradicts itself.
func (o *options) check(arg string) (int, error) {
	replica, err := strconv.Atoi(arg)
	switch {
	case err != nil || replica < 0 || replica >= plan.ReplicaLimit:
		return 0, fmt.Errorf("REPLICA: %q is not the number of a replica: the pod argocd-application-controller-3 is replica 3", arg)
	case o.off && (o.wait || o.dryRun || o.keepSet):
		return 0, errors.New("--off: it ends a cordon at once, and goes with none of --for, --wait and --dry-run")
	case o.wait && o.dryRun:
		return 0, errors.New("--wait: there is nothing to wait for with --dry-run")
	case o.keep < shortestCordon || o.keep > longestCordon:
		return 0, fmt.Errorf("--for: %s is not between %s and %s", o.keep, shortestCordon, longestCordon)
	case o.timeout <= 0:
		return 0, fmt.Errorf("--timeout: %s is not above 0", o.timeout)
	}
	return replica, nil
}

func (o *options) run(ctx context.Context, arg string, out, notes io.Writer) error {
	replica, err := o.check(arg)
	if err != nil {
		return err
	}
	m, err := o.Open()
	if err != nil {
		return err
	}
	if o.off {
		return o.end(ctx, m, replica, out)
	}
	o.until = o.Now().Add(o.keep).UTC().Truncate(time.Second)
	preview, err := o.begin(ctx, m, replica, notes)
	if err != nil {
		return err
	}
	if err := say.Print(o.Output, out, preview); err != nil {
		return err
	}
	if !o.wait {
		return nil
	}
	return o.follow(ctx, m, replica, notes)
}

// begin writes the cordon, unless it is only tried, and answers what is to come of it.
func (o *options) begin(ctx context.Context, m *steer.PlanMap, replica int, notes io.Writer) (evacuation, error) {
	state, err := m.Read(ctx)
	if err != nil {
		return evacuation{}, err
	}
	if _, err := o.cordon(state, replica); err != nil { // before anything else is asked for
		return evacuation{}, err
	}
	secrets, err := m.StandsWhere(ctx, state.Document, notes)
	if err != nil {
		return evacuation{}, err
	}
	written := false
	if !o.dryRun {
		state, written, err = m.Annotate(ctx, func(now steer.State) (steer.Edits, error) {
			cordons, err := o.cordon(now, replica)
			text := people.FormatCordons(cordons)
			return steer.Edits{plan.AnnotationCordon: &text}, err
		})
		if err != nil {
			return evacuation{}, err
		}
	}
	cordons, err := o.cordon(state, replica)
	if err != nil {
		return evacuation{}, err
	}
	e := evacuating(state, secrets, cordons, replica, o.Now())
	e.DryRun, e.Changed = o.dryRun, written
	return e, nil
}

// cordon is the cordons as they will stand: those that are not over, and this replica's. It refuses what cannot be.
func (o *options) cordon(s steer.State, replica int) ([]people.Cordon, error) {
	p, err := s.NeedEnforce()
	if err != nil {
		return nil, err
	}
	n := steer.ReplicasAhead(*p)
	if replica >= n {
		return nil, fmt.Errorf("REPLICA: %d is not between 0 and %d: the plan has %s%s", replica, n-1,
			say.Plural(n, "replica"), afterRollout(*p))
	}
	cordons, err := s.Cordons(o.Now())
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(cordons, func(c people.Cordon) bool { return c.Replica == replica })
	switch {
	case at < 0:
		cordons = append(cordons, people.Cordon{Replica: replica, Until: o.until})
	case o.keepSet:
		cordons[at].Until = o.until
	}
	closed := people.Cordoned(cordons, o.Now())
	if open := n - len(slices.DeleteFunc(closed, func(r int) bool { return r >= n })); open < 1 {
		return nil, fmt.Errorf("REPLICA: %d is the last one that is not cordoned, and its clusters would have nowhere to go: "+
			"end another one's first (ballast evacuate lists them), or raise partition.minReplicas", replica)
	}
	return cordons, nil
}

// afterRollout says when what is asked for can be, where a rollout is under way.
func afterRollout(p plan.Plan) string {
	if p.Rollout != nil {
		return " when the rollout under way has ended"
	}
	return ""
}

// end takes a replica's cordon away, and the annotation with the last one.
func (o *options) end(ctx context.Context, m *steer.PlanMap, replica int, out io.Writer) error {
	state, written, err := m.Annotate(ctx, func(now steer.State) (steer.Edits, error) {
		cordons, err := now.Cordons(o.Now())
		if err != nil {
			return nil, err
		}
		kept := slices.DeleteFunc(slices.Clone(cordons), func(c people.Cordon) bool { return c.Replica == replica })
		if len(kept) == len(cordons) {
			return nil, nil
		}
		text := people.FormatCordons(kept)
		if text == "" {
			return steer.Edits{plan.AnnotationCordon: nil}, nil
		}
		return steer.Edits{plan.AnnotationCordon: &text}, nil
	})
	if err != nil {
		return err
	}
	l, err := cordonsOf(state, o.Now())
	if err != nil {
		return err
	}
	l.ended, l.Changed = &replica, written
	return say.Print(o.Output, out, l)
}

func (o *options) list(ctx context.Context, out io.Writer) error {
	if o.off || o.wait || o.dryRun || o.keepSet {
		return errors.New("REPLICA: name the replica: ballast evacuate 3")
	}
	m, err := o.Open()
	if err != nil {
		return err
	}
	state, err := m.Read(ctx)
	if err != nil {
		return err
	}
	l, err := cordonsOf(state, o.Now())
	if err != nil {
		return err
	}
	return say.Print(o.Output, out, l)
}
