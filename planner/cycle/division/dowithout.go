package division

import (
	"fmt"

	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/evaluate"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/partition/sticky"
	"ballast/planner/plural"
)

// doWithout finds out whether the highest replica could go if others' clusters moved, too, where what it has does not
// fit on them as they are. Only a capacity says that, and only for a fleet at rest. It is held to what a drain is held
// to, downWindow among it; and it comes about whole or not at all: all its moves must have room in half of the budget
// now, so that levelling has the other half when the load is back, and the replica must be worth them over the horizon.
func (d *Division) doWithout(g *ground.Ground, p constraint.Question, stays sticky.Answer, now Terms) {
	if !d.countsByCapacity() || now.Horizon == 0 || !rests(g, stays) {
		return
	}
	p.Now, p.Replicas, p.Bounds.Capacity = stays.Of, stays.Replicas, stays.DrainTo
	without, found := fresh.Without(p, fresh.Options{Steps: effort})
	if !found {
		return
	}
	moves, whys := 0, map[int]outcome.MoveReason{}
	offer := evaluate.Offer{Saves: stays.Full / idle}
	for k, to := range without.Of {
		from := stays.Of[k]
		if to == from {
			continue
		}
		moves += g.Units().Elsewhere(d.groups[k], to)
		offer.Costs += d.Items[k].Load
		if whys[k] = outcome.MoveMadeRoom; from == without.Replicas {
			whys[k] = outcome.MoveDrained
		}
	}
	d.Drain = sticky.Drain{Fits: true, Replica: without.Replicas}
	goes := fmt.Sprintf("; replica %d could go by %s", without.Replicas, plural.Of(moves, "move"))
	switch {
	case !now.DrainDue:
		return
	case moves > now.MostSpare:
		d.Declined = fmt.Sprintf("%s, and half of the move budget never has room for more than %d (change.moves.rate)",
			goes, now.MostSpare)
		return
	case moves > now.Spare:
		d.Declined = fmt.Sprintf("%s, of which half of the move budget has room for %d now", goes, now.Spare)
		return
	case !offer.PaysWithin(now.Horizon):
		d.Declined = goes + ", which cost more than a replica is worth"
		return
	}
	d.Answer, d.Drain.Done, d.whys, d.spared = without, true, whys, moves
}

// idle is the part of the capacity that a replica is worth by itself, whatever it carries: what it takes without any
// cluster.
const idle = 20

// countsByCapacity reports whether a capacity that people wrote says how many replicas there are, and nothing else does
// now.
func (d *Division) countsByCapacity() bool {
	return d.Bounds.Capacity > 0 && d.Bounds.Fixed == 0 && !d.limited
}

// rests reports whether nothing is to be done about the plan in force, and its highest replica cannot go as the others
// are.
func rests(g *ground.Ground, stays sticky.Answer) bool {
	moved := len(stays.Moves) > 0 || len(stays.Over) > 0 || stays.Cut
	return !moved && !stays.Drain.Fits && stays.Replicas == g.Next.Replicas
}
