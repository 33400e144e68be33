package say

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/cycle/problem"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// OrDash is a cell of a table that is not empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Listed names some of many.
func Listed(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Rollout says in one line what is under way.
func Rollout(r *plan.Rollout) string {
	s := fmt.Sprintf("%s, %s", r.Mode, r.Stage)
	if r.Replicas != r.From.Replicas {
		s += fmt.Sprintf(", %d -> %s", r.From.Replicas, Plural(r.Replicas, "replica"))
	}
	if r.Wave > 0 {
		s += fmt.Sprintf(", wave %d", r.Wave)
		if r.Waves >= r.Wave {
			s += fmt.Sprintf(" of %d", r.Waves)
		}
	}
	if len(r.Moves) > 0 {
		s += ", " + Plural(len(r.Moves), "move")
	}
	return s
}

// barWidth is the longest bar; a table with it still fits a terminal of 80 columns.
const barWidth = 40

// Bars draws each replica's load against the heaviest.
func Bars(w io.Writer, replicas []plan.Replica) error {
	var most plan.Load
	for _, r := range replicas {
		most = max(most, r.TotalLoad)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range replicas {
		To(t, "  %d\t%s\t%s\t%s\n", r.ID, Bar(r.TotalLoad, most), r.TotalLoadDisplay,
			Plural(len(r.LoadIndexes), "cluster"))
	}
	return t.Flush()
}

// Bar is a load against the heaviest.
func Bar(load, most plan.Load) string {
	if most == 0 {
		return "·"
	}
	const eighths = "▏▎▍▌▋▊▉█"
	n := int(float64(load) / float64(most) * barWidth * 8)
	s := strings.Repeat("█", n/8)
	if rest := n % 8; rest > 0 {
		s += string([]rune(eighths)[rest-1])
	}
	if s == "" {
		s = "·"
	}
	return s
}

// Moves is a table of what changes its replica; of more than so many it shows those, unless that is 0.
func Moves(w io.Writer, moves []cycle.Move, loads map[string]string, most int) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	reasons := slices.ContainsFunc(moves, func(m cycle.Move) bool { return m.Reason != "" })
	if reasons {
		To(t, "  CLUSTER\tLOAD\tFROM\tTO\tREASON\n")
	} else {
		To(t, "  CLUSTER\tLOAD\tFROM\tTO\n")
	}
	for i, m := range moves {
		if most > 0 && i == most {
			To(t, "  ... and %d more (--all shows them)\n", len(moves)-most)
			break
		}
		To(t, "  %s\t%s\t%d\t%d", m.Cluster, loads[m.Cluster], m.From, m.To)
		if reasons {
			To(t, "\t%s", OrDash(string(m.Reason)))
		}
		To(t, "\n")
	}
	return t.Flush()
}

// Problems are a line each; ! marks those that keep loads from moving anything.
func Problems(w io.Writer, problems []problem.Problem) {
	for _, p := range problems {
		mark := "-"
		if p.Keeps {
			mark = "!"
		}
		To(w, "  %s %s: %s\n", mark, p.Phase, p.Message)
	}
}

// Plural is so many of a thing.
func Plural(n int, noun string) string { return plural.Of(n, noun) }

// Span is a time span for people: whole seconds, of days whole minutes, and no unit that is zero: 45s, 1m20s, 2h,
// 26h5m.
func Span(d time.Duration) string {
	const lifetimes = 100 * 365 * 24 * time.Hour
	d = max(d, 0).Round(time.Second)
	if d > lifetimes { // times that somebody made up
		return "over 100 years"
	}
	if d >= 24*time.Hour {
		d = d.Round(time.Minute)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size is a container's requests and limits in a few words.
func Size(r plan.Resources) string {
	var words []string
	for _, list := range []struct {
		name string
		of   map[string]string
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, resource := range slices.Sorted(maps.Keys(list.of)) {
			words = append(words, fmt.Sprintf("%s.%s %s", list.name, resource, list.of[resource]))
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
