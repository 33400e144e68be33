package adopt

import (
	"slices"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// mostListed is how many replicas one list of the plan has.
const mostListed = 1000

// cordonedNow are the replicas that people want empty, as far as there may be such.
func cordonedNow(in input.Inputs, most int) []int {
	cordons, _ := people.ParseCordons(in.Cordon)
	cordoned := slices.DeleteFunc(people.Cordoned(cordons, in.Now), func(replica int) bool { return replica >= most })
	return cordoned[:min(len(cordoned), mostListed)]
}

// SetArrivals writes into the plan what decides where a new cluster goes. While a discovery is refused all but the
// cordons stays as it is: what is not seen may be there all the same.
func SetArrivals(g *ground.Ground) {
	g.Next.Cordoned = cordonedNow(g.In, max(g.Next.MaxReplicas, g.Next.Replicas))
	if g.Partial {
		return
	}
	g.Next.MaxClusters = min(g.MostClusters(), plan.ClusterLimit)
	g.Next.Groups = nil
	for _, by := range g.Groups {
		if g.Next.Groups == nil {
			g.Next.Groups = make(map[string]plan.ClusterGroup, len(g.Groups))
		}
		said := plan.ClusterGroup{Together: by.Selector.String()}
		if by.Apart {
			said = plan.ClusterGroup{Apart: by.Selector.String()}
		}
		there := by.Members
		if by.Apart {
			there = by.Selected // what is left out has its replica all the same
		}
		for _, i := range there {
			c := g.Fleet.Clusters[i]
			_, row := g.Next.Clusters[c.Shard.ID]
			placed := row || !standing.Managed(c) // else the question is where it goes
			if at := g.Standing(i); at >= 0 && placed {
				said.At = append(said.At, at)
			}
		}
		slices.Sort(said.At)
		said.At = slices.Compact(said.At)
		said.At = said.At[:min(len(said.At), mostListed)]
		g.Next.Groups[by.Name] = said
	}
}
