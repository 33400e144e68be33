package division

import (
	"fmt"

	"ballast/planner/cycle/ground"
	"ballast/planner/evaluate"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
	"ballast/planner/plural"
)

// renew takes a plan that is made anew where the one in force leaves an overload that no few moves relieve. It comes
// about whole or not at all: all its moves must have room in the budget now, and what it saves over the horizon must
// outweigh them.
func (d *Division) renew(g *ground.Ground, p constraint.Question, stays sticky.Answer, now Terms) {
	if now.Horizon == 0 || len(stays.Over) == 0 || len(stays.Moves) > 0 {
		return
	}
	p.Now, p.Replicas, p.Bounds.Fixed = stays.Of, stays.Replicas, stays.Replicas
	anew, err := fresh.Plan(p, fresh.Options{Steps: effort})
	if err != nil || len(anew.Lost) > len(stays.Lost) {
		return // the plan in force is one that there is
	}
	if room := p.Bounds.Memory; lacks(d.Items, anew.Of, anew.Replicas, room) > lacks(d.Items, stays.Of, stays.Replicas, room) {
		return
	}
	moves, offer := 0, evaluate.Offer{Saves: overload(stays.Loads, d.line) - overload(anew.Loads, d.line)}
	for k, to := range anew.Of {
		if to != stays.Of[k] {
			moves += g.Units().Elsewhere(d.groups[k], to)
			offer.Costs += d.Items[k].Load
		}
	}
	switch {
	case offer.Saves <= 0:
		return
	case moves > now.Anew:
		d.Declined = fmt.Sprintf("; a plan made anew would relieve it by %s, of which the move budget has room for %d now", plural.Of(moves, "move"), now.Anew)
		return
	case !offer.PaysWithin(now.Horizon):
		d.Declined = fmt.Sprintf("; a plan made anew would relieve it by %s, which cost more than that is worth",
			plural.Of(moves, "move"))
		return
	}
	d.Answer, d.Over, d.anew = anew, nil, true
	d.Offers = map[int]evaluate.Offer{stays.Over[0]: offer}
}

// effort bounds how long a plan made anew is looked for, in steps of the search: a cycle has a minute for everything.
const effort = 200_000

// overload is what is above the line, of all replicas.
func overload(loads []plan.Load, line plan.Load) (sum plan.Load) {
	for _, load := range loads {
		sum += above(load, line)
	}
	return sum
}
