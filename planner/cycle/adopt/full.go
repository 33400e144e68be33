package adopt

import (
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/discover"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

// SayFull writes into the plan which replicas take no new cluster while another one does: those that have as many
// clusters as they may, and those without the memory, or the capacity, for one more. Capacity is what people say that a
// replica may carry, 0 for nothing; loads are of the fleet's clusters, nil while nothing is known. Target is where a
// rollout takes clusters: they count there already. While a discovery is refused the list stays as it is.
func SayFull(g *ground.Ground, target map[string]int, capacity plan.Load, loads []plan.Load) {
	if g.Partial {
		return
	}
	var before []int
	if g.In.InForce != nil {
		before = g.In.InForce.Full
	}
	g.Next.Full = nil
	most, memory, load := g.MostClusters(), memoryOf(g), loadOf(g, capacity, loads)
	if most == 0 && memory == nil && load == nil {
		return
	}
	for replica, b := range binsOf(g, target, assumed(g, loads, load), assumedMemory(g, memory)) {
		was := slices.Contains(before, replica)
		many := most > 0 && b.Clusters >= most
		full := many || memory.full(int64(b.Memory), was) || load.full(int64(b.Load), was)
		if full && len(g.Next.Full) < mostListed {
			g.Next.Full = append(g.Next.Full, replica)
		}
	}
}

// Unmeasured reports whether a cluster came within the last hour and carries something of its own: the metrics say
// nothing of it yet, or less than they will. A second Secret of its server brings nothing more.
func Unmeasured(g *ground.Ground, i int) bool {
	c := &g.Fleet.Clusters[i]
	return !c.Created.IsZero() && g.In.Now.Sub(c.Created) < discover.KnownAfter && !c.Follows && !c.Skip
}

// assumed are the loads, and of an arrival the mean at least: else hundreds would all come to the one replica with
// room, until they are measured.
func assumed(g *ground.Ground, loads []plan.Load, b *brim) []plan.Load {
	if b == nil || loads == nil {
		return loads
	}
	return atLeast(g, loads, plan.Load(b.mean))
}

// assumedMemory is the same of what clusters take.
func assumedMemory(g *ground.Ground, b *brim) []plan.Bytes {
	if b == nil {
		return make([]plan.Bytes, len(g.Fleet.Clusters))
	}
	return atLeast(g, g.InUse.Of, plan.Bytes(b.mean))
}

// atLeast has arrivals bring as much.
func atLeast[T plan.Load | plan.Bytes](g *ground.Ground, amounts []T, mean T) []T {
	amounts = slices.Clone(amounts)
	for i := range amounts {
		if Unmeasured(g, i) {
			amounts[i] = max(amounts[i], mean)
		}
	}
	return amounts
}

// binsOf are the replicas that new clusters may come to, with all that they have, and what a rollout or a pin brings
// them.
func binsOf(g *ground.Ground, target map[string]int, loads []plan.Load, memory []plan.Bytes) []placement.Bin {
	bins := make([]placement.Bin, plan.NewView(plan.Plan{Replicas: g.Next.Replicas, Rollout: g.Next.Rollout},
		nil).Stable())
	for i, c := range g.Fleet.Clusters {
		at := g.Standing(i)
		on := []int{at, comesTo(g.Next.Rollout, target, c.Shard.ID, at), g.Fixed().To(i).At}
		slices.Sort(on)
		load := plan.Load(0)
		if loads != nil {
			load = loads[i]
		}
		for _, replica := range slices.Compact(on) {
			if replica >= 0 && replica < len(bins) {
				bins[replica] = bins[replica].With(load, 1)
				bins[replica].Memory = bins[replica].Memory.Plus(memory[i])
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

// brim is how far a replica may be filled, with load or with memory: from high on it is full, until it is at low again,
// so that what jitters between the two is not written anew. What a new cluster brings nobody knows: it counts as one of
// the mean of all that bring any, and as that at least for an hour. Nil bounds nothing.
type brim struct {
	mean, high, low int64
	unknown         bool // what replicas have: what was full stays so
}

// memoryOf goes by the shares above which clusters leave a replica, and up to which it takes on others'.
func memoryOf(g *ground.Ground) *brim {
	if g.InUse == nil {
		return nil
	}
	b := &brim{mean: meanOf(g, g.InUse.Of), high: int64(g.InUse.Room), low: int64(g.InUse.Room)}
	if s := g.In.Config.Partition.Sticky; s != nil {
		b.high, b.low = int64(g.InUse.Room.Share(shareOf(s.High))), int64(g.InUse.Room.Share(shareOf(s.Low)))
	}
	return b
}

// loadOf goes by the same shares, of the capacity. LPT knows none of them, and deals the fleet anew in any case.
func loadOf(g *ground.Ground, capacity plan.Load, loads []plan.Load) *brim {
	s := g.In.Config.Partition.Sticky
	if s == nil || capacity == 0 {
		return nil
	}
	room := plan.Bytes(capacity) // of which a share is taken in the same way
	high, low := room.Share(shareOf(s.High)), room.Share(shareOf(s.Low))
	return &brim{mean: meanOf(g, loads), high: int64(high), low: int64(low), unknown: loads == nil}
}

// shareOf is a share, which the configuration bounds.
func shareOf(d config.Decimal) plan.Load {
	l, err := plan.NewLoad(d.Float())
	if err != nil {
		return plan.LoadUnit
	}
	return l
}

// meanOf is the mean of those above 0, arrivals left out where there are others.
func meanOf[T plan.Load | plan.Bytes](g *ground.Ground, amounts []T) int64 {
	for _, counts := range []func(int) bool{func(i int) bool { return !Unmeasured(g, i) }, func(int) bool { return true }} {
		sum, n := plan.Load(0), plan.Load(0)
		for i, amount := range amounts {
			if amount > 0 && counts(i) {
				sum, n = sum.Plus(plan.Load(amount)), n+1
			}
		}
		if n > 0 {
			return int64(sum / n)
		}
	}
	return 0
}

// full reports whether a replica has no room for one more. One that has nothing takes any: no other would do better.
func (b *brim) full(has int64, before bool) bool {
	switch {
	case b == nil:
		return false
	case b.unknown:
		return before
	case before:
		return has > 0 && int64(plan.Load(has).Plus(plan.Load(b.mean))) > b.low
	}
	return has > 0 && int64(plan.Load(has).Plus(plan.Load(b.mean))) > b.high
}
