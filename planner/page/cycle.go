package page

import (
	"fmt"
	"strconv"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/preview"
	"ballast/planner/page/chart"
	"ballast/planner/page/view"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
	"ballast/planner/size"
	"ballast/planner/status"
)

// OfCycle makes the content of a page that says what a cycle would do: replicas as they are and as they would be, what
// moves, and what keeps it. Names are what people call the alternatives.
func OfCycle(in input.Inputs, out cycle.Outcome, names map[string]string) view.View {
	w := in.Workload
	v := view.View{Title: wording.Name(w.Namespace+"/"+w.Name) + ": what ballast would do",
		Mode: wording.Name(string(in.Config.Mode)), AsOf: wording.Moment(in.Now),
		Facts: cycleFacts(out), Waits: cycleWaits(in, out), Clusters: cycleClusters(out),
		Foot: []string{"Nothing was changed.", "Of a cluster Secret this page has its name, the cluster's name and its server, and nothing else."}}
	var capacity plan.Load
	says := ""
	if l := out.Line; l != nil {
		capacity, says = l.Load, lineText(status.Line{Load: l.Load, Configured: l.Configured, Since: l.Since})
	}
	moves := movesOf(out)
	v.Stacks = []chart.Stack{chart.DrawStack("now", "What each replica carries now",
		cycleColumns(out.Now, out, moves, false), capacity, says)}
	if c := out.Candidate; c != nil {
		v.Stacks = append(v.Stacks, chart.DrawStack("then", "What each would carry",
			cycleColumns(c.Replicas, out, moves, true), capacity, says))
	} else {
		v.Notes = []view.Note{{Level: view.Warn, Title: "No evidence, no move",
			Text: "Without believable metrics everything stays as it is."}}
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
			it := chart.Item{Name: l.Shard.ID, Load: max(l.Value, 0),
				Says: fmt.Sprintf("%s: load %s", wording.Name(l.Shard.ID), l.Value.Display())}
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

func cycleFacts(out cycle.Outcome) []view.Fact {
	list := []view.Fact{{Label: "Clusters", Value: wording.Count(len(out.Fleet.Clusters)), Says: ""}}
	replicas, level, moves := wording.Count(len(out.Now)), ratio(out.Now), 0
	if c := out.Candidate; c != nil {
		if len(c.Replicas) != len(out.Now) {
			replicas += " → " + wording.Count(len(c.Replicas))
		}
		level += " → " + ratio(c.Replicas)
		moves = len(c.Moves)
	}
	list = append(list, view.Fact{Label: "Replicas", Value: replicas},
		view.Fact{Label: "Fullest over mean", Value: level, Says: "1 is level"},
		view.Fact{Label: "Would move", Value: wording.Count(moves), Says: "clusters"})
	if l := out.Line; l != nil {
		list = append(list, view.Fact{Label: "Capacity", Value: l.Load.Display(),
			Says: lineText(status.Line{Load: l.Load, Configured: l.Configured, Since: l.Since})})
	}
	return list
}

func ratio(replicas []plan.Replica) string {
	return strconv.FormatFloat(outcome.Imbalance(replicas), 'f', 2, 64)
}

// cycleWaits are what keeps it from happening, and what the partition could not do.
func cycleWaits(in input.Inputs, out cycle.Outcome) []view.Wait {
	var list []view.Wait
	add := func(l view.Level, what, why, times string) {
		list = append(list, view.Wait{Level: l, What: wording.Line(what), Why: wording.Line(why), Times: times})
	}
	said := status.Status{Problems: out.Problems}
	if out.Sizing != nil {
		said.Blocked = out.Sizing.Blocked
	}
	faults(said, in.Now, add)
	blocked(said, nil, in.Now, add)
	if c := out.Candidate; c != nil {
		if c.Verdict != "" {
			add(view.Neutral, "Evaluation", c.Verdict, "")
		}
		if gains := c.Gains(); gains != "" {
			add(view.Neutral, "Gains and costs", gains, "")
		}
		for _, lost := range c.Lost {
			add(view.Info, "A wish that is not met", lost, "")
		}
	}
	if ahead := preview.Foresee(in, out); ahead != nil {
		for _, missing := range ahead.Missing {
			add(view.Warn, "Rollout "+ahead.Mode+" waits", missing, "")
		}
	}
	bySeverity(list)
	return list
}

func cycleClusters(out cycle.Outcome) view.Clusters {
	at, totals, moves := map[string]int{}, map[string]plan.Load{}, movesOf(out)
	for _, r := range out.Now {
		for _, l := range r.LoadIndexes {
			at[l.Shard.ID], totals[l.Shard.ID] = r.ID, r.TotalLoad
		}
	}
	return view.ClustersOf(len(out.Fleet.Clusters), min(len(out.Now), most), func(i int) view.ClusterRow {
		c, id := out.Fleet.Clusters[i], out.Fleet.Clusters[i].Shard.ID
		row := view.ClusterRow{Name: wording.Name(id), Called: wording.Name(c.Shard.Name), Server: serverOf(c.Shard),
			At: "-", Load: "-", Share: "-"}
		if replica, ok := at[id]; ok && replica != plan.NoReplica {
			row.At = strconv.Itoa(replica)
		}
		if i < len(out.Loads) {
			row.Load, row.Share = out.Loads[i].Display(), percent(out.Loads[i], totals[id])
		}
		if pin, pinned := out.Pins[id]; pinned {
			row.Marks = append(row.Marks, view.Mark{Kind: view.Pinned, Says: fmt.Sprintf("to replica %d", pin)})
		}
		if m, moves := moves[id]; moves {
			row.Marks = append(row.Marks, view.Mark{Kind: view.Moving, Says: moved(m)})
		}
		return row
	})
}

// alternatives are what else could be, by the same loads.
func alternatives(in input.Inputs, out cycle.Outcome, names map[string]string) []view.Table {
	t := view.Table{ID: "alternatives", Title: "By the same loads", Caption: "What else could be, by the same loads",
		Head: []string{"Who deals", "Replicas", "Fullest over mean", "Moves"}}
	for _, a := range cycle.Alternatives(in, out) {
		called := a.Name
		if n, ok := names[a.Name]; ok {
			called = n
		}
		t.Rows = append(t.Rows, []string{wording.Line(called), wording.Count(a.Replicas),
			strconv.FormatFloat(a.Imbalance, 'f', 2, 64), wording.Count(a.Moves)})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []view.Table{t}
}

// sizeTables are the replicas' sizes, where any policy says how large they are.
func sizeTables(out cycle.Outcome) []view.Table {
	if out.Sizing == nil || len(out.Sizing.Replicas) == 0 {
		return nil
	}
	t := view.Table{ID: "sizes", Title: "Sizes", Caption: "How large replicas are, and are to be",
		Head: []string{"Replica", "Held at", "Wanted"}}
	for _, r := range out.Sizing.Replicas {
		which := strconv.Itoa(r.Replica)
		if r.Replica == size.All {
			which = "every one"
		}
		t.Rows = append(t.Rows, []string{which, sizeText(r.InForce), sizeText(r.Wanted)})
	}
	return []view.Table{t}
}
