// Package explain says why a cluster is where it is, and what each other replica would be to it.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/member"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
)

// Cluster says it of a cycle and its outcome. The cluster is named by its Secret, its own name or its server.
func Cluster(in input.Inputs, out outcome.Outcome, name string) (Explanation, error) {
	i, err := Named(out, name)
	if err != nil {
		return Explanation{}, err
	}
	cl := out.Fleet.Clusters[i]
	e := Explanation{Cluster: cl.Shard.ID, Server: cl.Shard.Server, Replica: -1, To: -1, At: in.Now,
		Verdict: "no evidence, no move: without believable metrics everything stays as it is"}
	unit, g := []int{i}, explaining(in, out)
	for _, u := range g.Units().All() {
		if slices.Contains(u.Clusters, i) {
			unit = u.Clusters
		}
	}
	for _, k := range unit {
		if k != i {
			e.Together = append(e.Together, out.Fleet.Clusters[k].Shard.ID)
		}
		if out.Loads != nil {
			e.Load += out.Loads[k]
		}
		e.Takes = e.Takes.Plus(g.InUse.Takes(k))
	}
	e.Room = g.InUse.Most()
	if row, ok := out.Next.Clusters[e.Cluster]; ok {
		e.Replica = row.Replica
	}
	e.Because = because(g, out, i)
	for _, c := range out.Table.Columns {
		v := ValueOf{Metric: c.ID, Value: c.Values[i], Flag: c.Flags[i]}
		if c.SampledAt[i] != 0 {
			v.Sampled = time.UnixMilli(c.SampledAt[i]).UTC()
		}
		e.Values = append(e.Values, v)
	}
	if c := out.Candidate; c != nil {
		e.Verdict = c.Verdict
		if at := slices.IndexFunc(c.Moves, func(m outcome.Move) bool { return m.Cluster == e.Cluster }); at >= 0 {
			e.To = c.Moves[at].To
		}
	}
	e.choices(g, out, i, unit)
	e.Moving = e.moving(in, out, unit)
	e.Fleet = yardstick(g, out)
	return e, nil
}

// explaining is the ground as far as an outcome shows it.
func explaining(in input.Inputs, out outcome.Outcome) *ground.Ground {
	g := &ground.Ground{In: in, Fleet: out.Fleet, Owners: standing.Owners(in, out.Fleet), Pins: out.Pins,
		Next: out.Next, InUse: out.InUse}
	member.Choose(g)
	return g
}

// partedFrom is which group speaks against a replica for a unit; empty: none does.
func partedFrom(g *ground.Ground, unit []int, replica int) string {
	for _, by := range g.Groups {
		ours := slices.ContainsFunc(by.Members, func(i int) bool { return slices.Contains(unit, i) })
		other := slices.IndexFunc(by.Members, func(i int) bool { return !slices.Contains(unit, i) && g.Standing(i) == replica })
		if by.Apart && ours && other >= 0 {
			return fmt.Sprintf("group %q keeps it apart from %q, which is there", by.Name,
				g.Fleet.Clusters[by.Members[other]].Shard.ID)
		}
	}
	return ""
}

// pinnedBeside is what a group keeps a unit with that cannot leave its replica; empty: nothing.
func pinnedBeside(g *ground.Ground, i int, unit []int) string {
	server := g.Fleet.Clusters[i].Shard.Server
	for _, k := range unit {
		if other := g.Fleet.Clusters[k]; other.Shard.Server != server && g.Fixed().To(k).At >= 0 {
			return fmt.Sprintf("a group has it stay together with %q, which cannot leave replica %d", other.Shard.ID,
				g.Fixed().To(k).At)
		}
	}
	return ""
}

// Named finds a cluster by what people call it.
func Named(out outcome.Outcome, name string) (int, error) {
	found := -1
	for i, cl := range out.Fleet.Clusters {
		switch {
		case cl.Shard.ID == name:
			return i, nil
		case cl.Shard.Name != name && cl.Shard.Server != plan.NormalizeServer(name):
		case found >= 0:
			return 0, fmt.Errorf("cluster %q: Secrets %q and %q have that name or server: name the Secret", name,
				out.Fleet.Clusters[found].Shard.ID, cl.Shard.ID)
		default:
			found = i
		}
	}
	if found < 0 {
		return 0, fmt.Errorf("cluster %q: none of %d is called that, by Secret, name or server; kubectl get secrets -l argocd.argoproj.io/secret-type=cluster lists them", name, len(out.Fleet.Clusters))
	}
	return found, nil
}

func (e *Explanation) choices(g *ground.Ground, out outcome.Outcome, i int, unit []int) {
	var total plan.Load
	for _, r := range out.Now {
		total += r.TotalLoad
	}
	if out.Loads == nil || total == 0 {
		return
	}
	e.OfFleet = float64(e.Load) / float64(total)
	e.total, e.table, e.fixed = total, out.Table, cmp.Or(stays(g, out, i), pinnedBeside(g, i, unit))
	for _, r := range out.Now {
		own := r.ID == e.Replica
		c := ChoiceOf{Replica: r.ID, Clusters: len(r.LoadIndexes), Carries: r.TotalLoad, With: r.TotalLoad}
		if own && r.TotalLoad > 0 {
			e.OfOwn = float64(e.Load) / float64(r.TotalLoad)
		}
		if !own {
			c.With += e.Load
			c.Against = cmp.Or(e.fixed, against(g, out, r, e.Load, unit))
		}
		if out.InUse != nil && r.ID < len(out.InUse.Now) {
			if c.InUse = out.InUse.Now[r.ID]; !own {
				c.InUse = c.InUse.Plus(e.Takes)
			}
		}
		c.Imbalance = e.with(out, r.ID)
		e.Choices = append(e.Choices, c)
	}
}

// tooLittle says that a replica has not the memory for clusters; empty: it has.
func tooLittle(g *ground.Ground, unit []int, r plan.Replica) string {
	if g.InUse == nil || r.ID >= len(g.InUse.Now) {
		return ""
	}
	var takes plan.Bytes
	for _, i := range unit {
		takes = takes.Plus(g.InUse.Takes(i))
	}
	with, empty := g.InUse.Now[r.ID].Plus(takes), len(r.LoadIndexes) == 0
	if takes == 0 || empty || with <= g.InUse.Room {
		return ""
	}
	return fmt.Sprintf("it would have %s of memory in use, of %s", with, g.InUse.Room)
}

// against is what speaks against a replica for clusters of that load.
func against(g *ground.Ground, out outcome.Outcome, r plan.Replica, load plan.Load, unit []int) string {
	var says []string
	if slices.Contains(out.Cordoned, r.ID) {
		says = append(says, "a person wants it empty")
	}
	for _, sick := range out.Replicas.Sick {
		if sick.Replica == r.ID {
			says = append(says, "it is unwell")
		}
	}
	if why := partedFrom(g, unit, r.ID); why != "" {
		says = append(says, why)
	}
	if most := g.In.Config.Partition.MaxClustersPerReplica; most > 0 && len(r.LoadIndexes)+len(unit) > most {
		says = append(says, fmt.Sprintf("it has %d clusters, and maxClustersPerReplica is %d", len(r.LoadIndexes),
			most))
	}
	if why := tooLittle(g, unit, r); why != "" {
		says = append(says, why)
	}
	if c := out.Candidate; c != nil && c.Low > 0 && r.TotalLoad+load > c.Low {
		says = append(says, fmt.Sprintf("it would carry more than it takes on (%s)", c.Low.Display()))
	}
	return strings.Join(says, "; ")
}
