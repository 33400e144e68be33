package page

import (
	"strconv"

	"ballast/planner/page/chart"
	"ballast/planner/page/view"
	"ballast/planner/page/wording"
	"ballast/planner/plan"
)

// Of makes a page's content.
func Of(f Fleet) view.View {
	s := sceneOf(f)
	v := view.View{Title: "No plan", Mode: "No plan", AsOf: wording.Moment(f.Now), Standing: standing(f),
		Notes: notes(f), Conditions: conditions(f), Waits: waits(s), Decisions: decided(f),
		Clusters: clusterTable(s), Foot: foot(f)}
	if p := f.Document.Plan; p != nil {
		v.Title = wording.Name(p.Target.Namespace + "/" + p.Target.Name)
		v.Mode = wording.Name(string(p.Mode))
		v.Stacks = []chart.Stack{chart.DrawStack("replicas", "What each replica carries", columnsOf(s), s.capacity,
			s.line)}
		v.Replicas = replicaTable(s)
	}
	v.Facts, v.Tables = facts(s), byUser(f)
	if v.Over = chart.Over(f.Kept, f.Trend, f.Now); v.Over == nil {
		v.OverNone = "Nothing to draw yet: it takes two decisions that the history has, or half an hour in which the leader knew loads."
	}
	return v
}

// columnsOf are the clusters by replica. One that moves is in the column that it has, and an outline in the one it goes
// to.
func columnsOf(s scene) [][]chart.Item {
	columns, values := make([][]chart.Item, s.replicas), valuesOf(s.Values)
	for _, c := range s.clusters {
		if c.at < 0 || c.at >= s.replicas {
			continue
		}
		it := chart.Item{Name: c.ID, Load: c.load, Says: c.says(s.Pins) + values(c.ID)}
		switch {
		case c.move != nil && c.move.To != c.at:
			it.Kind = chart.BoxLeaving
			if to := c.move.To; to >= 0 && to < s.replicas {
				ghost := it
				ghost.Kind = chart.BoxArriving
				columns[to] = append(columns[to], ghost)
			}
		case c.pinned:
			it.Kind = chart.BoxPinned
		}
		columns[c.at] = append(columns[c.at], it)
	}
	return columns
}

func clusterTable(s scene) view.Clusters {
	totals := make([]plan.Load, s.replicas)
	for _, c := range s.clusters {
		if c.at >= 0 && c.at < s.replicas {
			totals[c.at] = totals[c.at].Plus(c.load)
		}
	}
	return view.ClustersOf(len(s.clusters), s.replicas, func(i int) view.ClusterRow {
		c := s.clusters[i]
		row := view.ClusterRow{Name: wording.Name(c.ID), Called: wording.Name(c.Name), Server: serverOf(c.Shard),
			At: "-", Load: c.load.Display(), Share: "-", Marks: c.marks(s.Pins)}
		if c.at >= 0 && c.at < s.replicas {
			row.At, row.Share = strconv.Itoa(c.at), percent(c.load, totals[c.at])
		}
		return row
	})
}
