package memory

import (
	"fmt"
	"slices"
	"strings"

	"ballast/planner/change/harm"
	"ballast/planner/plural"
)

// Stay is what no failover moves during a trip for memory: what is on a replica that was killed for it, and the
// clusters that the waves moved behind which that happened. The next replica would be killed by what killed that one.
// The zero value holds nothing.
type Stay struct {
	Replicas []int
	Clusters []string
}

// Stay is what the trip holds that stands, where it says so.
func (c Changes) Stay() Stay {
	if c.Trip == nil || c.Trip.Reason != harm.OOMKilled || !c.Trip.Bounds(c.TripMoved) {
		return Stay{}
	}
	return Stay{c.Trip.Replicas, c.TripMoved}
}

// Holds reports whether a cluster on that replica stays there.
func (s Stay) Holds(cluster string, replica int) bool {
	_, moved := slices.BinarySearch(s.Clusters, cluster)
	return moved || s.Killed(replica)
}

// Killed reports whether a replica is one of those that were killed.
func (s Stay) Killed(replica int) bool { return slices.Contains(s.Replicas, replica) }

// String is the end of a sentence for people; empty where nothing is held.
func (s Stay) String() string {
	if len(s.Replicas) == 0 {
		return ""
	}
	words := fmt.Sprintf(", and of those neither off %s nor the %s that moved before that",
		named(s.Replicas), plural.Of(len(s.Clusters), "cluster"))
	for _, name := range s.Clusters {
		if !isMark(name) {
			return words + fmt.Sprintf(", the first is %q", name)
		}
	}
	return words
}

// mostNamed replicas are named to people.
const mostNamed = 10

func named(replicas []int) string {
	text := make([]string, 0, mostNamed)
	for _, replica := range replicas[:min(len(replicas), mostNamed)] {
		text = append(text, fmt.Sprint(replica))
	}
	all := "replica " + strings.Join(text, ", ")
	if more := len(replicas) - mostNamed; more > 0 {
		all += fmt.Sprintf(" and %d more", more)
	}
	return all
}
