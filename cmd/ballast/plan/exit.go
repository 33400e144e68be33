package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ballast/cmd/ballast/say"
	"ballast/planner/change"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/preview"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
)

// exitChanges is the exit code where the plan would differ from what is.
const exitChanges = 2

// exitCode is what the command ends with, nil where nothing would change. What would has been printed.
func exitCode(in input.Inputs, out cycle.Outcome) error {
	changes := changesOf(in, out)
	if len(changes) == 0 {
		return nil
	}
	return say.ExitQuietly(exitChanges, errors.New("would change: "+strings.Join(changes, ", ")))
}

// changesOf is what differs, whatever keeps it from happening now.
func changesOf(in input.Inputs, out cycle.Outcome) []string {
	var list []string
	if c := out.Candidate; c != nil {
		if len(c.Moves) > 0 {
			list = append(list, say.Plural(len(c.Moves), "move"))
		}
		if len(c.Replicas) != len(out.Now) {
			list = append(list, fmt.Sprintf("%d -> %s", len(out.Now), say.Plural(len(c.Replicas), "replica")))
		}
	}
	if resizes(out.Sizing) {
		list = append(list, "sizes")
	}
	if ahead := preview.Foresee(in, out); ahead != nil && ahead.Once {
		list = append(list, fmt.Sprintf("%s becomes %d by one restart", plan.EnvReplicas, ahead.To.ControllerReplicas))
	}
	if n := unstamped(out); n > 0 {
		list = append(list, say.Plural(n, "Secret")+" without a shard")
	}
	return list
}

// resizes reports whether this cycle would change a size, or wants to and may not now. What is too small a change is
// none, nor is one of which nobody knows what it would be.
func resizes(s *resize.Sizing) bool {
	none := []change.BlockReason{change.TooSmall, change.StaleInput}
	return s != nil && (s.Resized > 0 || slices.ContainsFunc(s.Blocked, func(b resize.Blocked) bool {
		return b.Resource != "" && b.Resource != resize.ResourceReplicas && !slices.Contains(none, b.Reason)
	}))
}
