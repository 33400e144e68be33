package people

import (
	"fmt"

	"ballast/planner/plan"
)

// PinProblem is a pin that cannot be, with its line in data.pins and the mend.
type PinProblem struct {
	Line    int    `json:"line"`
	Name    string `json:"name,omitempty"`
	Message string `json:"message"`
}

// Error makes the problem an error that names its line.
func (p PinProblem) Error() string {
	if p.Name == "" {
		return fmt.Sprintf("pins line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("pins line %d: %s: %s", p.Line, p.Name, p.Message)
}

// BadPin says why no cluster can be pinned to a replica; empty where one can. A maxReplicas of 0 judges no upper bound.
func BadPin(replica, maxReplicas int) string {
	switch {
	case replica < 0:
		return fmt.Sprintf("replica %d is below 0: a negative shard leaves the cluster without an owner", replica)
	case maxReplicas > 0 && replica >= maxReplicas:
		return fmt.Sprintf("replica %d is not below maxReplicas %d: choose 0 to %d, or raise maxReplicas", replica,
			maxReplicas, maxReplicas-1)
	case replica >= plan.ReplicaLimit:
		return fmt.Sprintf("replica %d is not below %d", replica, plan.ReplicaLimit)
	}
	return ""
}
