package replay

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ballast/planner/replay/bill"
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
		{"REPLICAS", "at the end, and the least and the most where they differ", func(r Report) string {
			return replicasCell(r.Replicas.Last, r.Replicas.Least, r.Replicas.Most)
		}},
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

func replicasCell(last, least, most int) string {
	if least == most {
		return strconv.Itoa(last)
	}
	return fmt.Sprintf("%d (%d to %d)", last, least, most)
}

// level is a number over the ideal; there is none where no load was ever known.
func level(r Report, v float64) string {
	if r.Unmeasured == r.Cycles {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// SizeColumn is one of the figures of a way to size replicas, as people see it.
type SizeColumn struct {
	Name, Says string
	Cell       func(Report, bill.Way) string
}

// SizeColumns are those of a table in which ways to size the same replicas stand side by side.
func SizeColumns() []SizeColumn {
	count := func(n func(bill.Way) int) func(Report, bill.Way) string {
		return func(_ Report, w bill.Way) string { return strconv.Itoa(n(w)) }
	}
	return []SizeColumn{
		{"SETUP", "what was replayed", func(r Report, _ bill.Way) string { return r.Name }},
		{"SIZES", "by whom: ballast; the largest that a replica ever had, for all; what CPVPS and HVPA make of the same rules, of the largest replica",
			func(_ Report, w bill.Way) string { return w.Name }},
		{"REPLICAS", "at the end, and the least and the most where they differ: HVPA's rules make a number of their own",
			func(_ Report, w bill.Way) string {
				return replicasCell(w.Replicas.Last, w.Replicas.Least, w.Replicas.Most)
			}},
		{"CHANGES", "of sizes, while replicas run: of one replica each, or of the pod template", count(func(w bill.Way) int { return w.Changes })},
		{"RESIZES", "pods that were resized in place", count(func(w bill.Way) int { return w.Resizes })},
		{"RESTARTS", "pods that restarted for their size: each lists every object of its clusters anew",
			count(func(w bill.Way) int { return w.Restarts })},
		{"GIB-HOURS", "memory requested, over time", func(_ Report, w bill.Way) string { return hours(w.GiBHours) }},
		{"CORE-HOURS", "cpu requested, over time", func(_ Report, w bill.Way) string { return hours(w.CoreHours) }},
		{"LARGEST", "the most that one replica requested", func(_ Report, w bill.Way) string { return amount(w.Largest) }},
	}
}

func hours(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func amount(a bill.Amount) string {
	both := strings.TrimSpace(a.CPU + " " + a.Memory)
	return cmp.Or(both, "-")
}
