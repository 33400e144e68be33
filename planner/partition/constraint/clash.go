package constraint

import (
	"fmt"
	"strings"

	"ballast/planner/partition"
)

// Constraint is one rule of a clash. Pin has Item and Replica, Apart a Group, Closed a Replica, SameServer an Item,
// MaxReplicas and FixedReplicas a Count.
type Constraint struct {
	Rule    partition.Rule
	Item    string
	Group   string
	Replica int
	Count   int
}

// String is a clause for people.
func (c Constraint) String() string {
	switch c.Rule {
	case partition.Pin:
		return fmt.Sprintf("%q is pinned to replica %d", c.Item, c.Replica)
	case partition.Apart:
		return fmt.Sprintf("group %q is kept apart", c.Group)
	case partition.Closed:
		return fmt.Sprintf("replica %d is closed", c.Replica)
	case partition.SameServer:
		return fmt.Sprintf("two clusters of %q stay together", c.Item)
	case partition.FixedReplicas:
		return fmt.Sprintf("there are exactly %d replicas", c.Count)
	default:
		return fmt.Sprintf("there are at most %d replicas", c.Count)
	}
}

// Error is rules that cannot all be kept; without any one of Set the others can, unless Unproven says that the search
// for it was cut short.
type Error struct {
	Set      []Constraint
	Unproven bool
}

// Error names the rules that clash, and the mend.
func (e *Error) Error() string {
	clauses := make([]string, len(e.Set))
	for i, c := range e.Set {
		clauses[i] = c.String()
	}
	return fmt.Sprintf("partitioning within rules that clash: %s: drop one of them", strings.Join(clauses, "; "))
}
