package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/plan"
)

// barWidth is the longest bar; a table with it still fits a terminal of 80 columns.
const barWidth = 40

// writeBars draws each replica's load against the heaviest.
func writeBars(w io.Writer, replicas []plan.Replica) error {
	var most plan.Load
	for _, r := range replicas {
		most = max(most, r.TotalLoad)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range replicas {
		say(t, "  %d\t%s\t%s\t%s\n", r.ID, bar(r.TotalLoad, most), r.TotalLoadDisplay, plural(len(r.LoadIndexes), "cluster"))
	}
	return t.Flush()
}

func bar(load, most plan.Load) string {
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

func writeMoves(w io.Writer, moves []cycle.Move, loads map[string]string, most int) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say(t, "  CLUSTER\tLOAD\tFROM\tTO\n")
	for i, m := range moves {
		if most > 0 && i == most {
			say(t, "  ... and %d more (--all shows them)\n", len(moves)-most)
			break
		}
		say(t, "  %s\t%s\t%d\t%d\n", m.Cluster, loads[m.Cluster], m.From, m.To)
	}
	return t.Flush()
}

func writeProblems(w io.Writer, problems []cycle.Problem) {
	for _, p := range problems {
		mark := "-"
		if p.Keeps {
			mark = "!"
		}
		say(w, "  %s %s: %s\n", mark, p.Phase, p.Message)
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short is a time span for people: whole seconds, of days whole minutes, and no unit that is zero: 45s, 1m20s, 2h,
// 26h5m.
func short(d time.Duration) string {
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
