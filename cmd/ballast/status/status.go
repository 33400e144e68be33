// Package status is `ballast status`.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"ballast/cmd/ballast/connect"
	"ballast/cmd/ballast/say"
	"ballast/cmd/ballast/status/overview"
)

type options struct {
	cluster connect.Options
	plan    string
	config  string
	output  string
	web     bool
	address string // of the page
	watch   bool
	now     func() time.Time

	interval time.Duration // between two looks of watch
}

// NewCommand makes `ballast status`.
func NewCommand() *cobra.Command {
	o := &options{now: time.Now}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the plan in force, what is under way, who leads, and whether what stands agrees",
		Long: `status says which plan is in force and why, what each replica carries under it, how many clusters it has by its own account, how
old the oldest value of them is, how large it is to be and is, and how its pod is; how far a rollout is and what it waits for, what
people asked for (pins, cordons, a freeze, a rollback), how much may move yet, what the leader knows of replicas that are unwell and of
clusters that nobody or several replicas have, who else has a say over the workload, and what differs from the plan. It writes
nothing.

How things are beside that is the leader's own word, which it writes into ConfigMap ballast-plan-status as soon as it changes, and
once a minute; the line "Leader" says how old it is.

It needs get and list on the Secrets, ConfigMaps, StatefulSets and Deployments of Argo CD's namespace. With list on its pods,
HorizontalPodAutoscalers and PodDisruptionBudgets, and get on its Leases, it shows more; what it may not see it names.

With --web it serves the page of the fleet that every planner has, by your own rights and on your own machine, until it is interrupted.

With --watch it looks again and again until it is interrupted, which ends it with exit code 0. On a terminal each look takes the
place of the one before; elsewhere, and as JSON or YAML, it writes one anew as soon as something but an age has changed. Where the
API server does not answer it says so and asks again, less and less often, once a minute in the end.

The exit code is 0 where all is well, 2 where something waits for a person, and 1 where the cluster could not be looked at. A person
is waited for where no plan is in force, where no leader has looked for five minutes, where the condition Planning is False (but by a
freeze or a hold-off) or Enforced is False (but by the mode) or Degraded is True, where a rollout is past its deadline, a pin cannot
be read, something differs that ballast should have put right (while a rollout is under way, that is its own), or another installation
plans for the workload. In JSON these stand under "needs". A freeze, a rollout within its time and a mode that only observes are well.`,
		Example: "  ballast status\n  ballast status --watch\n  ballast status -o json | jq '.needs, .decisions[0]'\n  ballast status --web",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.web:
				return o.serve(cmd.Context(), cmd.OutOrStdout())
			case cmd.Flags().Changed("web-address"):
				return errors.New("--web-address is of the page that --web serves: add --web")
			case cmd.Flags().Changed("interval") && !o.watch:
				return errors.New("--interval is between two looks of --watch: add --watch")
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.cluster.Register(cmd)
	cmd.Flags().StringVar(&o.plan, "plan-configmap", "ballast-plan", "name of the plan ConfigMap")
	cmd.Flags().StringVar(&o.config, "config-configmap", "ballast-config",
		"name of the ConfigMap with the planner's configuration, which says which Secrets are clusters")
	cmd.Flags().StringVarP(&o.output, "output", "o", say.AsTable, "table, json or yaml")
	cmd.Flags().BoolVar(&o.web, "web", false, "serve the page of the fleet instead, until interrupted")
	cmd.Flags().StringVar(&o.address, "web-address", "127.0.0.1:0",
		"`address` of that page, plain HTTP; port 0 is any that is free")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "look again and again, until interrupted")
	cmd.Flags().DurationVar(&o.interval, "interval", 5*time.Second, "how long to wait between two looks of --watch")
	cmd.MarkFlagsMutuallyExclusive("web", "output")
	cmd.MarkFlagsMutuallyExclusive("web", "watch")
	return cmd
}

func (o *options) run(ctx context.Context, out, notes io.Writer) error {
	if err := say.CheckForm(o.output); err != nil {
		return err
	}
	if o.interval < time.Second {
		return fmt.Errorf("--interval: %s is less than a second: each look lists the cluster Secrets", o.interval)
	}
	c, err := o.cluster.Client()
	if err != nil {
		return err
	}
	look := func(ctx context.Context) (overview.Overview, error) {
		seen, err := o.read(ctx, c)
		if err != nil {
			return overview.Overview{}, err
		}
		return seen.overview(), nil
	}
	if o.watch {
		f := follower{look: look, clock: clock.RealClock{}, interval: o.interval, form: o.output,
			out: out, notes: notes, screen: say.ScreenOf(out)}
		return f.follow(ctx)
	}
	s, err := look(ctx)
	if err != nil {
		return err
	}
	if err := say.Print(o.output, out, &s); err != nil {
		return err
	}
	return s.Needed()
}
