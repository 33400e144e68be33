package division

import (
	"errors"
	"slices"

	"ballast/planner/config"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/division/clash"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/partition/sticky/draft"
	"ballast/planner/plan"
)

// stick asks for a partition from the plan in force.
func (d *Division) stick(g *ground.Ground, b partition.Bounds, loads []plan.Load, c *config.Sticky, now Terms) error {
	p := constraint.Question{Items: d.Items, Bounds: b, Now: make([]int, len(d.Items)), Replicas: g.Next.Replicas,
		Apart: g.Units().Apart(d.groups, g.Groups)}
	for replica := range now.Closed {
		for len(p.Closed) <= replica {
			p.Closed = append(p.Closed, false)
		}
		p.Closed[replica] = true
	}
	stays := b.Fixed // what nobody may move stays where the number of replicas lets it
	if stays == 0 {
		stays = g.Next.Replicas - 1
	}
	for k, u := range d.groups {
		p.Now[k] = g.Units().Home(u, loads)
		if !g.Movable(u) && d.Items[k].Replica == partition.Free && p.Now[k] < min(stays, b.MaxReplicas) {
			d.Items[k].Replica = p.Now[k]
		}
	}
	high, low, most := share(c.High), share(c.Low), c.MaxMoves
	if now.All {
		most = 0
	}
	o := sticky.Options{High: high, Down: sticky.Midway(high, low), Low: low, Drain: share(c.Drain),
		MaxMoves: most, DrainDue: now.DrainDue, Patient: now.Patient, Even: now.Even}
	answer, err := sticky.Plan(p, o)
	for err != nil && d.wantsMore(g, err) {
		d.Bounds.Fixed++
		p.Bounds.Fixed = d.Bounds.Fixed
		answer, err = sticky.Plan(p, o)
	}
	if err != nil {
		return clash.Explained(g, err, p, d.groups)
	}
	if answer, err = d.roomier(g, &p, o, answer); err != nil {
		return clash.Explained(g, err, p, d.groups)
	}
	d.Answer, d.Drain, d.line, d.Low, d.Even = answer.Partition, answer.Drain, answer.High, answer.Low, answer.Even
	d.Offers, d.Over = map[int]evaluate.Offer{}, answer.Over
	d.countAll(answer.Moves, p.Now)
	d.whys = make(map[int]outcome.MoveReason, len(answer.Moves))
	for _, m := range answer.Moves {
		if why, known := reasons[m.Why]; known {
			d.whys[m.Item] = why
		}
	}
	d.saved(answer)
	for k, u := range d.groups {
		d.Musts += g.Units().Scattered(u, p.Now[k], d.Answer.Of[k])
	}
	d.renew(g, p, answer, now)
	d.doWithout(g, p, answer, now)
	return nil
}

// wantsMore reports whether one replica more may keep groups apart: nobody said how many there are, and none is closed.
func (d *Division) wantsMore(g *ground.Ground, err error) bool {
	var found *constraint.Error
	if !errors.As(err, &found) || d.Bounds.Fixed >= d.Bounds.MaxReplicas {
		return false
	}
	closed := func(c constraint.Constraint) bool { return c.Rule == partition.Closed }
	limited := func(c constraint.Constraint) bool { return c.Rule == partition.FixedReplicas }
	return !bounds.Counted(g, true) && slices.ContainsFunc(found.Set, limited) &&
		!slices.ContainsFunc(found.Set, closed)
}

// roomier is with as many replicas more as the memory asks for, where nobody said how many there are.
func (d *Division) roomier(g *ground.Ground, p *constraint.Question, o sticky.Options, answer sticky.Answer) (sticky.Answer, error) {
	if g.InUse == nil || d.limited || bounds.Counted(g, true) {
		return answer, nil
	}
	lack := func(of sticky.Answer) plan.Bytes { return lacks(d.Items, of.Of, of.Replicas, g.InUse.Most()) }
	mayGrow := func() bool { return d.Bounds.Fixed > 0 && d.Bounds.Fixed < d.Bounds.MaxReplicas }
	for lack(answer) > 0 && mayGrow() {
		p.Bounds.Fixed++
		more, err := sticky.Plan(*p, o)
		if err != nil {
			return answer, err
		}
		if lack(more) >= lack(answer) {
			p.Bounds.Fixed--
			return answer, nil
		}
		d.Bounds.Fixed, answer = p.Bounds.Fixed, more
	}
	return answer, nil
}

// share is a share of the capacity, which the configuration bounds.
func share(d config.Decimal) plan.Load {
	l, err := plan.NewLoad(d.Float())
	if err != nil {
		return 0 // the default
	}
	return l
}

// dipped is by how much less a replica is worth filling that has clusters: it may have little for an hour only.
const dipped = 8

// countAll adds what the moves cost.
func (d *Division) countAll(moves []sticky.Move, now []int) {
	if len(moves) == 0 {
		return // as nearly always
	}
	has := map[int]bool{}
	for _, replica := range now {
		has[replica] = true
	}
	for _, m := range moves {
		d.count(m, !has[m.Sake])
	}
}

// count adds what a move costs to the account of the replica for whose sake it is. One that fills a replica which has
// nothing saves the load that it brings there.
func (d *Division) count(m sticky.Move, empty bool) {
	switch {
	case m.From == plan.NoReplica:
	case m.Must():
		d.Musts++
		if m.Why == draft.Starved {
			d.Starved++
		}
	case m.Why == draft.Filled:
		o, saves := d.Offers[m.Sake], m.Load
		if !empty {
			saves /= dipped
		}
		d.Offers[m.Sake] = evaluate.Offer{Saves: o.Saves + saves, Costs: o.Costs + m.Load}
	case m.Why != draft.Drained:
		o := d.Offers[m.Sake]
		o.Costs += m.Load
		d.Offers[m.Sake] = o
	}
}

// saved adds what each replica has less above what it may carry.
func (d *Division) saved(answer sticky.Answer) {
	before := map[int]plan.Load{}
	for replica := range d.Offers {
		if replica < len(answer.Loads) {
			before[replica] = answer.Loads[replica]
		}
	}
	for _, m := range answer.Moves {
		if m.From == plan.NoReplica {
			continue
		}
		if _, has := before[m.From]; has {
			before[m.From] += m.Load
		}
		if _, has := before[m.To]; has {
			before[m.To] -= m.Load
		}
	}
	for replica, was := range before {
		o := d.Offers[replica]
		o.Saves += max(above(was, d.line)-above(answer.Loads[replica], d.line), d.savedMemory(answer, replica), 0)
		d.Offers[replica] = o
	}
}

// savedMemory is by how much less memory a replica has in use above the line, as a load that is the same share of its
// line: the fullest dimension counts.
func (d *Division) savedMemory(answer sticky.Answer, replica int) plan.Load {
	if answer.Memory == nil || answer.HighMemory == 0 {
		return 0
	}
	was := answer.Memory[replica]
	for _, m := range answer.Moves {
		if m.From == replica {
			was += d.Items[m.Item].Memory
		}
		if m.To == replica && m.From != plan.NoReplica {
			was -= d.Items[m.Item].Memory
		}
	}
	less := max(was-answer.HighMemory, 0) - max(answer.Memory[replica]-answer.HighMemory, 0)
	return plan.Load(float64(less) / float64(answer.HighMemory) * float64(d.line))
}
