package division

import (
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/partition/sticky/draft"
)

// reasons are what sticky's reasons are called to people. What arrives has no replica that it leaves, and is no move.
var reasons = map[draft.Why]outcome.MoveReason{
	draft.Gone: outcome.MoveGone, draft.Pinned: outcome.MovePinned, draft.Apart: outcome.MoveApart,
	draft.Capped:  outcome.MoveCapped,
	draft.Starved: outcome.MoveStarved, draft.Overload: outcome.MoveOverload, draft.MadeRoom: outcome.MoveMadeRoom,
	draft.Filled: outcome.MoveFilled, draft.Drained: outcome.MoveDrained,
}

// Moves are the clusters whose replica differs from their rows, each with its reason.
func (d Division) Moves(g *ground.Ground) []outcome.Move {
	moves := g.Moves(d.Of)
	if len(moves) == 0 {
		return nil
	}
	at := make(map[string]int, len(moves)) // where in moves
	for m := range moves {
		at[moves[m].Cluster] = m
	}
	for k, u := range d.groups {
		for _, i := range u.Clusters {
			if m, is := at[g.Fleet.Clusters[i].Shard.ID]; is {
				moves[m].Reason = d.reason(g, k, i)
			}
		}
	}
	return moves
}

// reason is why cluster i, which is of item k, moves. One that leads its item moves for what the item does, the others
// go with it; but whichever is itself pinned does not do so for another's sake.
func (d Division) reason(g *ground.Ground, k, i int) outcome.MoveReason {
	name, leads := g.Fleet.Clusters[i].Shard.ID, d.groups[k].Clusters[0] == i
	if firm := g.Fixed().To(i); firm.At >= 0 && firm.At == d.Of[name] {
		return outcome.MovePinned
	}
	from := g.Next.Clusters[name].Replica
	why, known := d.whys[k]
	switch {
	case from >= d.Answer.Replicas:
		return outcome.MoveGone
	case !leads || known && why == outcome.MovePinned:
		return outcome.MoveTogether
	case known:
		return why
	case d.Items[k].Replica >= 0, d.whys != nil && !d.anew: // the item cannot be elsewhere, or stays, and this one joins it
		return outcome.MoveTogether
	}
	return outcome.MoveLevelled
}
