package page

import (
	"fmt"
	"slices"
	"strconv"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/preview"
	"ballast/planner/page/chart"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
	"ballast/planner/size"
	"ballast/planner/status"
)

// OfCycle makes the content of a page that says what a cycle would do: replicas as they are and as they would be, what
// moves, and what keeps it. Names are what people call the alternatives.
func OfCycle(in input.Inputs, out cycle.Outcome, names map[string]string) View {
	w := in.Workload
	v := View{Title: wording.Name(w.Namespace+"/"+w.Name) + ": what ballast would do", Mode: wording.Name(string(in.Config.Mode)), AsOf: wording.Moment(in.Now),
		Facts: cycleFacts(out), Waits: cycleWaits(in, out), Clusters: cycleClusters(out),
		Foot: []string{"Nothing was changed.", "Of a cluster Secret this page has its name, the cluster's name and its server, and nothing else."}}
	var capacity plan.Load
	says := ""
	if l := out.Line; l != nil {
		capacity, says = l.Load, lineText(status.Line{Load: l.Load, Configured: l.Configured, Since: l.Since})
	}
	moves := movesOf(out)
	v.Stacks = []chart.Stack{chart.DrawStack("now", "What each replica carries now", cycleColumns(out.Now, out, moves, false), capacity, says)}
	if c := out.Candidate; c != nil {
		v.Stacks = append(v.Stacks, chart.DrawStack("then", "What each would carry", cycleColumns(c.Replicas, out, moves, true), capacity, says))
	} else {
		v.Notes = []Note{{Warn, "No evidence, no move", "Without believable metrics everything stays as it is."}}
	}
	v.Tables = append(alternatives(in, out, names), sizeTables(out)...)
	return v
}

func movesOf(out cycle.Outcome) map[string]cycle.Move {
	moves := map[string]cycle.Move{}
	if out.Candidate != nil {
		for _, m := range out.Candidate.Moves {
			moves[m.Cluster] = m
		}
	}
	return moves
}

// cycleColumns are replicas' clusters, before the moves or after them.
func cycleColumns(replicas []plan.Replica, out cycle.Outcome, moves map[string]cycle.Move, after bool) [][]chart.Item {
	columns, values := make([][]chart.Item, min(len(replicas), most)), valuesOf(out.Memory.LastGood)
	for i := range columns {
		for _, l := range replicas[i].LoadIndexes {
			it := chart.Item{Name: l.Shard.ID, Load: max(l.Value, 0), Says: fmt.Sprintf("%s: load %s", wording.Name(l.Shard.ID), l.Value.Display())}
			m, moves := moves[l.Shard.ID]
			_, pinned := out.Pins[l.Shard.ID]
			switch {
			case moves && after:
				it.Kind, it.Says = chart.BoxCame, it.Says+", moves ("+moved(m)+")"
			case moves:
				it.Kind, it.Says = chart.BoxLeaving, it.Says+", moves ("+moved(m)+")"
			case pinned:
				it.Kind, it.Says = chart.BoxPinned, it.Says+", pinned"
			}
			it.Says += values(l.Shard.ID)
			columns[i] = append(columns[i], it)
		}
	}
	return columns
}

func cycleFacts(out cycle.Outcome) []Fact {
	list := []Fact{{"Clusters", wording.Count(len(out.Fleet.Clusters)), ""}}
	replicas, level, moves := wording.Count(len(out.Now)), ratio(out.Now), 0
	if c := out.Candidate; c != nil {
		if len(c.Replicas) != len(out.Now) {
			replicas += " → " + wording.Count(len(c.Replicas))
		}
		level += " → " + ratio(c.Replicas)
		moves = len(c.Moves)
	}
	list = append(list, Fact{"Replicas", replicas, ""}, Fact{"Fullest over mean", level, "1 is level"}, Fact{"Would move", wording.Count(moves), "clusters"})
	if l := out.Line; l != nil {
		list = append(list, Fact{"Capacity", l.Load.Display(), lineText(status.Line{Load: l.Load, Configured: l.Configured, Since: l.Since})})
	}
	return list
}

func ratio(replicas []plan.Replica) string {
	return strconv.FormatFloat(outcome.Imbalance(replicas), 'f', 2, 64)
}

// cycleWaits are what keeps it from happening, and what the partition could not do.
func cycleWaits(in input.Inputs, out cycle.Outcome) []Wait {
	var list []Wait
	add := func(l Level, what, why, times string) {
		list = append(list, Wait{l, wording.Line(what), wording.Line(why), times})
	}
	said := status.Status{Problems: out.Problems}
	if out.Sizing != nil {
		said.Blocked = out.Sizing.Blocked
	}
	faults(said, in.Now, add)
	blocked(said, nil, in.Now, add)
	if c := out.Candidate; c != nil {
		if c.Verdict != "" {
			add(Neutral, "Evaluation", c.Verdict, "")
		}
		if gains := c.Gains(); gains != "" {
			add(Neutral, "Gains and costs", gains, "")
		}
		for _, lost := range c.Lost {
			add(Info, "A wish that is not met", lost, "")
		}
	}
	if ahead := preview.Foresee(in, out); ahead != nil {
		for _, missing := range ahead.Missing {
			add(Warn, "Rollout "+ahead.Mode+" waits", missing, "")
		}
	}
	bySeverity(list)
	return list
}

// bySeverity puts the worst first.
func bySeverity(list []Wait) {
	order := []Level{Bad, Warn, Info, Neutral, Good}
	slices.SortStableFunc(list, func(a, b Wait) int { return slices.Index(order, a.Level) - slices.Index(order, b.Level) })
}

func cycleClusters(out cycle.Outcome) Clusters {
	at, totals, moves := map[string]int{}, map[string]plan.Load{}, movesOf(out)
	for _, r := range out.Now {
		for _, l := range r.LoadIndexes {
			at[l.Shard.ID], totals[l.Shard.ID] = r.ID, r.TotalLoad
		}
	}
	t := Clusters{Shown: len(out.Fleet.Clusters) > shownRows}
	found := map[Kind]bool{}
	for i, c := range out.Fleet.Clusters[:t.bound(len(out.Fleet.Clusters))] {
		id := c.Shard.ID
		row := ClusterRow{Name: wording.Name(id), Called: wording.Name(c.Shard.Name), Server: serverOf(c.Shard), At: "-", Load: "-", Share: "-", Later: i >= shownRows}
		if replica, ok := at[id]; ok && replica != plan.NoReplica {
			row.At = strconv.Itoa(replica)
		}
		if i < len(out.Loads) {
			row.Load, row.Share = out.Loads[i].Display(), percent(out.Loads[i], totals[id])
		}
		if pin, pinned := out.Pins[id]; pinned {
			row.Marks = append(row.Marks, Mark{Pinned, fmt.Sprintf("to replica %d", pin)})
		}
		if m, moves := moves[id]; moves {
			row.Marks = append(row.Marks, Mark{Moving, moved(m)})
		}
		for _, m := range row.Marks {
			found[m.Kind] = true
		}
		t.Rows = append(t.Rows, row)
	}
	for i := range min(len(out.Now), most) {
		t.At = append(t.At, strconv.Itoa(i))
	}
	for _, k := range kinds() {
		if found[k] {
			t.Marks = append(t.Marks, string(k))
		}
	}
	return t
}

// alternatives are what else could be, by the same loads.
func alternatives(in input.Inputs, out cycle.Outcome, names map[string]string) []Table {
	t := Table{ID: "alternatives", Title: "By the same loads", Caption: "What else could be, by the same loads", Head: []string{"Who deals", "Replicas", "Fullest over mean", "Moves"}}
	for _, a := range cycle.Alternatives(in, out) {
		called := a.Name
		if n, ok := names[a.Name]; ok {
			called = n
		}
		t.Rows = append(t.Rows, []string{wording.Line(called), wording.Count(a.Replicas), strconv.FormatFloat(a.Imbalance, 'f', 2, 64), wording.Count(a.Moves)})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []Table{t}
}

// sizeTables are the replicas' sizes, where any policy says how large they are.
func sizeTables(out cycle.Outcome) []Table {
	if out.Sizing == nil || len(out.Sizing.Replicas) == 0 {
		return nil
	}
	t := Table{ID: "sizes", Title: "Sizes", Caption: "How large replicas are, and are to be", Head: []string{"Replica", "Held at", "Wanted"}}
	for _, r := range out.Sizing.Replicas {
		which := strconv.Itoa(r.Replica)
		if r.Replica == size.All {
			which = "every one"
		}
		t.Rows = append(t.Rows, []string{which, sizeText(r.InForce), sizeText(r.Wanted)})
	}
	return []Table{t}
}
