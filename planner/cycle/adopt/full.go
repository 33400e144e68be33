package adopt

import (
	"slices"

	"ballast/planner/cycle/ground"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// SayFull writes into the plan which replicas take no new cluster while another one does: those that have as many clusters as they
// may, and those without the memory for one more. Target is where a rollout takes clusters: they count there already. While a
// discovery is refused the list stays as it is.
func SayFull(g *ground.Ground, target map[string]int) {
	if g.Partial {
		return
	}
	g.Next.Full = nil
	most, memory := g.MostClusters(), memoryOf(g)
	if most == 0 && g.InUse == nil {
		return
	}
	for replica, b := range binsOf(g, target) {
		full := most > 0 && b.Clusters >= most || memory.full(b, slices.Contains(memory.before, replica))
		if full && len(g.Next.Full) < mostListed {
			g.Next.Full = append(g.Next.Full, replica)
		}
	}
}

// binsOf are the replicas that new clusters may come to, with all that they have, and what a rollout or a pin brings them.
func binsOf(g *ground.Ground, target map[string]int) []placement.Bin {
	bins := make([]placement.Bin, plan.NewView(plan.Plan{Replicas: g.Next.Replicas, Rollout: g.Next.Rollout}, nil).Stable())
	for i, c := range g.Fleet.Clusters {
		at := g.Standing(i)
		on := []int{at, comesTo(g.Next.Rollout, target, c.Shard.ID, at), g.Firm(i).At}
		slices.Sort(on)
		for _, replica := range slices.Compact(on) {
			if replica >= 0 && replica < len(bins) {
				bins[replica].Clusters++
				bins[replica].Memory = bins[replica].Memory.Plus(g.InUse.Takes(i))
			}
		}
	}
	return bins
}

// comesTo is where a rollout takes a cluster that is on a replica.
func comesTo(r *plan.Rollout, target map[string]int, name string, at int) int {
	if r == nil {
		return at
	}
	if to, moves := r.Moves[name]; moves {
		return to
	}
	if to, moves := target[name]; moves {
		return to
	}
	return at
}

// memory says which replicas have none for one more cluster. What a new one takes nobody knows: it counts as one of the mean.
type memory struct {
	mean, high, low plan.Bytes // of all that take any, and what is too much of a replica, and little enough again
	before          []int      // replicas that were full
}

// memoryOf goes by the shares above which clusters leave a replica, and up to which it takes on others': what jitters between the
// two is not written anew.
func memoryOf(g *ground.Ground) (m memory) {
	if g.InUse == nil {
		return m
	}
	if g.In.InForce != nil {
		m.before = g.In.InForce.Full
	}
	m.high, m.low = g.InUse.Room, g.InUse.Room
	if s := g.In.Config.Partition.Sticky; s != nil {
		m.high, m.low = m.high.Share(loadOf(s.High.Float())), m.low.Share(loadOf(s.Low.Float()))
	}
	var n plan.Bytes
	for _, bytes := range g.InUse.Of {
		if bytes > 0 {
			m.mean, n = m.mean.Plus(bytes), n+1
		}
	}
	m.mean /= max(n, 1)
	return m
}

// loadOf is a share, which the configuration bounds.
func loadOf(share float64) plan.Load {
	l, err := plan.NewLoad(share)
	if err != nil {
		return plan.LoadUnit
	}
	return l
}

// full reports whether a replica has no memory for one more. One that has nothing takes any: no other would do better.
func (m memory) full(b placement.Bin, before bool) bool {
	most := m.high
	if before {
		most = m.low
	}
	return b.Memory > 0 && b.Memory.Plus(m.mean) > most
}
