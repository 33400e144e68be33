package plan

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
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
func Ahead(w io.Writer, a cycle.Forecast, in input.Inputs) { writeAhead(w, a, in.Now) }
