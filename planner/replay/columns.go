package replay

import (
	"fmt"
	"strconv"
)

// Column is one of a report's figures as people see it.
type Column struct {
	Name, Says string
	Cell       func(Report) string
}

// Columns are those of a table in which setups stand side by side.
func Columns() []Column {
	return []Column{
		{"SETUP", "what was replayed", func(r Report) string { return r.Name }},
		{"REBALANCES", "rollouts that level or change the number of replicas", func(r Report) string { return strconv.Itoa(r.Rebalances) }},
		{"MOVES", "clusters that changed their replica: each lists every object anew", func(r Report) string { return strconv.Itoa(r.Moves) }},
		{"REPLICAS", "at the end, and the least and the most where they differ", replicasCell},
		{"MAX/IDEAL", "what the fullest replica carried over what it would in an ideal plan (an even share, or the heaviest cluster), " +
			"on average", func(r Report) string {
			return level(r, r.MaxOverIdeal.Mean)
		}},
		{"WORST", "the most that was", func(r Report) string { return level(r, r.MaxOverIdeal.Most) }},
		{"AT END", "what it was at the end", func(r Report) string { return level(r, r.MaxOverIdeal.Last) }},
		{fmt.Sprintf("ABOVE %v", TooFull), fmt.Sprintf("how much of the time it was above %v", TooFull), func(r Report) string {
			return percent(r.AboveTooFull)
		}},
		{"ABOVE CAPACITY", "how much of the time a replica carried more than partition.capacity; - without one", func(r Report) string {
			if r.AboveCapacity == nil {
				return "-"
			}
			return percent(*r.AboveCapacity)
		}},
	}
}

func replicasCell(r Report) string {
	if r.Replicas.Least == r.Replicas.Most {
		return strconv.Itoa(r.Replicas.Last)
	}
	return fmt.Sprintf("%d (%d to %d)", r.Replicas.Last, r.Replicas.Least, r.Replicas.Most)
}

// level is a number over the ideal; there is none where no load was ever known.
func level(r Report, v float64) string {
	if r.Unmeasured == r.Cycles {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }
