package plan

import (
	"io"

	"ballast/cmd/ballast/say"
	"ballast/planner/cycle"
	"ballast/planner/cycle/resize"
)

// writeCounts says how many replicas the weights ask for, and what keeps their number from changing.
func writeCounts(w io.Writer, c *cycle.Counts) {
	if c == nil || c.Weights == nil && len(c.Blocked) == 0 {
		return
	}
	say.To(w, "\nThe number of replicas\n")
	if of := c.Weights; of != nil {
		say.To(w, "  size.weights ask for %d: %s; from this load on, %d %% of the growth makes replicas larger\n", of.Replicas, of.Why, of.Weight)
		if of.OverNode {
			say.To(w, "  even so one of them asks for more than size.nodeCap\n")
		}
	}
	for _, b := range c.Blocked {
		say.To(w, "  %s\n", b)
	}
}

// writeMoves says which moves that level wait for a rule of change.
func writeMoves(w io.Writer, blocked []resize.Blocked) {
	if len(blocked) == 0 {
		return
	}
	say.To(w, "\nMoves that wait\n")
	for _, b := range blocked {
		say.To(w, "  %s\n", b)
	}
}
