package whatif

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"ballast/cmd/ballast/plan"
	"ballast/cmd/ballast/say"
)

// someMoves is how many moves the table lists unless asked for all.
const someMoves = 20

// WriteTable implements say.Result.
func (a *Answer) WriteTable(w io.Writer) error {
	say.To(w, "Supposed: %s\n\n", strings.Join(a.Supposed, "; "))
	if err := a.stands(w); err != nil {
		return err
	}
	say.To(w, "\n%s.\n", strings.Join([]string{a.count(), a.moving()}, "; "))
	a.cost(w)
	if a.Lost == nil {
		plan.MayCarry(w, a.Line)
	}
	if l := a.Lost; l != nil {
		a.loss(w, *l)
	}
	if a.Ahead != nil {
		plan.Ahead(w, *a.Ahead, a.in)
	}
	if a.Lost == nil || a.Ahead != nil {
		say.To(w, "\nAt rest: %s.\n", a.Verdict)
	}
	if !a.With.Settled {
		say.To(w, "It is not at rest after %d decisions: loads near a bound, or rules that pull both ways, keep it moving.\n", mostRounds)
	}
	if len(a.Problems) > 0 {
		say.To(w, "\nProblems that the fleet does not have now (! keeps the plan from changing)\n")
		say.Problems(w, a.Problems)
	}
	if len(a.Moves) > 0 {
		most := someMoves
		if a.all {
			most = 0
		}
		say.To(w, "\n")
		if err := say.Moves(w, a.Moves, a.loads, most); err != nil {
			return err
		}
	}
	say.To(w, "\nNothing was changed.\n\n%s\n", a.Fit)
	return nil
}

// stands is what each replica carries now, without what is supposed and with it.
func (a *Answer) stands(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	say.To(t, "REPLICA\tNOW\tWITHOUT\tWITH\n")
	for r := range max(len(a.Now.Replicas), len(a.Without.Replicas), len(a.With.Replicas)) {
		say.To(t, "%d\t%s\t%s\t%s\n", r, a.Now.cell(r), a.Without.cell(r), a.With.cell(r))
	}
	say.To(t, "makespan/mean\t%.2f\t%.2f\t%.2f\n", a.Now.Imbalance, a.Without.Imbalance, a.With.Imbalance)
	say.To(t, "moves\t\t%d\t%d\n", a.Without.Moves, a.With.Moves)
	return t.Flush()
}

// cell is a replica's load and the number of its clusters.
func (s Stand) cell(r int) string {
	if r >= len(s.Replicas) {
		return "-"
	}
	c := s.Replicas[r]
	if c.Lost {
		return fmt.Sprintf("lost (%d)", c.Clusters)
	}
	return fmt.Sprintf("%s (%d)", c.Load.Display(), c.Clusters)
}

func (a *Answer) count() string {
	now, with := len(a.Now.Replicas), len(a.With.Replicas)
	if now == with {
		return say.Plural(with, "replica") + ", as now"
	}
	return fmt.Sprintf("%s instead of %d", say.Plural(with, "replica"), now)
}

func (a *Answer) moving() string {
	moves, without := say.Plural(a.Cost.Clusters, "move"), ""
	if a.Without.Moves > 0 {
		without = fmt.Sprintf(", and %d without it", a.Without.Moves)
	}
	switch {
	case a.Lost != nil && a.Cost.Clusters == 0:
		return fmt.Sprintf("%s of what is lost", say.Plural(len(a.Moves), "move"))
	case a.Lost != nil:
		return moves + without + " before the loss"
	}
	return moves + without
}

// cost says what the moves cost: whoever has a cluster anew lists every object of it.
func (a *Answer) cost(w io.Writer) {
	if a.Cost.Clusters == 0 {
		return
	}
	objects := ""
	if a.Cost.Objects != nil {
		objects = fmt.Sprintf(", %.0f objects together", *a.Cost.Objects)
	}
	say.To(w, "It costs %.3g load hours: each of them starts from an empty cache%s.\n", a.Cost.LoadHours, objects)
}

func (a *Answer) loss(w io.Writer, l Loss) {
	if l.Held != "" {
		say.To(w, "Nothing fails over: %s.\n", l.Held)
		return
	}
	say.To(w, "After failover.after (%s) %s go at once; %d wait for the move budget",
		a.in.Config.Failover.After, say.Plural(l.AtOnce, "cluster"), l.Later)
	if l.Stay > 0 {
		say.To(w, "; %d have no replica until it is back", l.Stay)
	}
	say.To(w, ".\n")
	for _, n := range l.Notes {
		say.To(w, "  - %s\n", n.Message)
	}
}
