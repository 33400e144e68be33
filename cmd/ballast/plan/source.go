package plan

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/connect"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/preview"
	"ballast/planner/discover"
)

// Source is where other commands have a cycle's inputs from, as plan has: a live cluster, or a file that it saved.
type Source struct{ options }

// Register adds the flags that say which.
func (s *Source) Register(cmd *cobra.Command) { s.register(cmd) }

// Gather is what a cycle sees now, or saw when it was saved.
func (s *Source) Gather(ctx context.Context, cmd *cobra.Command, progress io.Writer) (input.Inputs, error) {
	return s.gather(ctx, progress, cmd.Flags().Changed("namespace"))
}

// Runs reports what a function of these inputs answers. What a file says that no cluster ever did is an error, and no crash.
func (s *Source) Runs(answer func() error) error { return s.guarded(answer) }

// Ahead says in a line or two how a forecast would come about.
func Ahead(w io.Writer, a preview.Forecast, in input.Inputs) { writeAhead(w, a, in.Now) }

// MayCarry says what a replica may carry, or is known to.
func MayCarry(w io.Writer, l *cycle.Line) { writeLine(w, l) }

// RegisterLive adds the flags of a live cluster alone.
func (s *Source) RegisterLive(cmd *cobra.Command) { s.live(cmd) }

// Client is a person's way to the API server, by the flags.
func (s *Source) Client() (client.Client, error) { return s.cluster.Client() }

// Config is the configuration by which the planner goes, or would.
func (s *Source) Config(ctx context.Context, cmd *cobra.Command, c client.Client, progress io.Writer) (config.PlannerConfig, error) {
	return s.loadConfig(ctx, c, progress, cmd.Flags().Changed("namespace"))
}

// Observe is what a cycle by that configuration sees now.
func (s *Source) Observe(ctx context.Context, c client.Client, cfg config.PlannerConfig, progress io.Writer) (input.Inputs, error) {
	return observe(ctx, c, s.cluster.Resizes, cfg, progress)
}

// REST is a person's way to the API server as a configuration, by the flags.
func (s *Source) REST() (*rest.Config, error) { return s.cluster.REST() }

// Prepare is the configuration, by which the planner goes too, and the fleet and the workload as they stand, without what is
// measured of them.
func (s *Source) Prepare(ctx context.Context, cmd *cobra.Command, c client.Client, progress io.Writer) (input.Inputs, error) {
	cfg, err := s.loadConfig(ctx, c, progress, cmd.Flags().Changed("namespace"))
	if err != nil {
		return input.Inputs{}, err
	}
	in := input.Inputs{Now: time.Now().UTC().Truncate(time.Second), Config: cfg}
	doc, err := connect.ReadDocument(ctx, c, cfg)
	if err != nil {
		return in, err
	}
	if in.InForce = doc.Plan; in.InForce != nil {
		in.PlannerUser = in.InForce.PlannerUser
	}
	if in.Discovered, in.Workload, err = gather.Look(ctx, c, cfg, discover.Known{}, doc.Plan); err != nil {
		return in, connect.ExplainDenied(err, cfg.Target.Namespace)
	}
	return in, nil
}
