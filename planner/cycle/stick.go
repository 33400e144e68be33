package cycle

import (
	"errors"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/evaluate"
	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// terms are what a division is asked for, beside the fleet and its rules.
type terms struct {
	all      bool                   // all that is worth it at once, however much that is
	even     plan.Load              // an even share of before
	closed   map[int]bool           // replicas that receive nothing
	drainDue bool                   // the highest replica has not been needed for long
	patient  func(replica int) bool // nothing is done for that replica's sake now; nil: for every one there is
	anew     int                    // moves that a plan made anew may take
	horizon  time.Duration          // over which that has to pay; 0: none is made
}

// stick asks for a partition from the plan in force.
func (d *division) stick(a *adoption, b partition.Bounds, loads []plan.Load, c *config.Sticky, now terms) error {
	p := constraint.Problem{Items: d.items, Bounds: b, Now: make([]int, len(d.items)), Replicas: a.next.Replicas,
		Apart: a.apartOf(d.groups, a.groups)}
	for replica := range now.closed {
		for len(p.Closed) <= replica {
			p.Closed = append(p.Closed, false)
		}
		p.Closed[replica] = true
	}
	stays := b.Fixed // what nobody may move stays where the number of replicas lets it
	if stays == 0 {
		stays = a.next.Replicas - 1
	}
	for k, u := range d.groups {
		p.Now[k] = a.home(u, loads)
		if !a.movable(u) && d.items[k].Replica == partition.Free && p.Now[k] < min(stays, b.MaxReplicas) {
			d.items[k].Replica = p.Now[k]
		}
	}
	high, low, most := share(c.High), share(c.Low), c.MaxMoves
	if now.all {
		most = 0
	}
	o := sticky.Options{High: high, Down: low + (high-low)/2, Low: low, Drain: share(c.Drain),
		MaxMoves: most, DrainDue: now.drainDue, Patient: now.patient, Even: now.even}
	answer, err := sticky.Plan(p, o)
	for err != nil && d.wantsMore(a, err) {
		d.bounds.Fixed++
		p.Bounds.Fixed = d.bounds.Fixed
		answer, err = sticky.Plan(p, o)
	}
	if err != nil {
		return a.explained(err, p, d.groups)
	}
	if answer, err = d.roomier(a, &p, o, answer); err != nil {
		return a.explained(err, p, d.groups)
	}
	d.answer, d.drain, d.line, d.low, d.even = answer.Partition, answer.Drain, answer.High, answer.Low, answer.Even
	d.offers, d.over = map[int]evaluate.Offer{}, answer.Over
	has := map[int]int{}
	for _, replica := range p.Now {
		has[replica]++
	}
	for _, m := range answer.Moves {
		d.count(m, has[m.Sake] == 0)
	}
	d.saved(answer)
	for k, u := range d.groups {
		d.musts += a.scattered(u, p.Now[k], d.answer.Of[k])
	}
	d.renew(a, p, answer, now)
	return nil
}

// wantsMore reports whether one replica more may keep groups apart: nobody said how many there are, and none is closed.
func (d *division) wantsMore(a *adoption, err error) bool {
	var found *constraint.Error
	if !errors.As(err, &found) || d.bounds.Fixed >= d.bounds.MaxReplicas {
		return false
	}
	closed := func(c constraint.Constraint) bool { return c.Rule == partition.Closed }
	limited := func(c constraint.Constraint) bool { return c.Rule == partition.FixedReplicas }
	return !a.counted() && slices.ContainsFunc(found.Set, limited) && !slices.ContainsFunc(found.Set, closed)
}

// counted reports whether the number of replicas is people's, or follows a capacity.
func (a *adoption) counted() bool {
	of := a.in.Config.Partition
	return of.Replicas != nil || a.in.Workload.Unmanaged || of.Capacity != nil
}

// roomier is with as many replicas more as the memory asks for, where nobody said how many there are.
func (d *division) roomier(a *adoption, p *constraint.Problem, o sticky.Options, answer sticky.Answer) (sticky.Answer, error) {
	lack := func(of sticky.Answer) plan.Bytes { return lacks(d.items, of.Of, of.Replicas, a.memoryRoom()) }
	for a.inUse != nil && lack(answer) > 0 && d.bounds.Fixed > 0 && d.bounds.Fixed < d.bounds.MaxReplicas && !a.counted() {
		p.Bounds.Fixed++
		more, err := sticky.Plan(*p, o)
		if err != nil {
			return answer, err
		}
		if lack(more) >= lack(answer) {
			p.Bounds.Fixed--
			return answer, nil
		}
		d.bounds.Fixed, answer = p.Bounds.Fixed, more
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

// count adds what a move costs to the account of the replica for whose sake it is. One that fills a replica which has
// nothing saves the load that it brings there.
func (d *division) count(m sticky.Move, empty bool) {
	switch {
	case m.From == partition.Free:
	case m.Must():
		d.musts++
		if m.Why == sticky.Starved {
			d.starved++
		}
	case m.Why == sticky.Filled:
		o, saves := d.offers[m.Sake], m.Load
		if !empty {
			saves /= dipped
		}
		d.offers[m.Sake] = evaluate.Offer{Saves: o.Saves + saves, Costs: o.Costs + m.Load}
	case m.Why != sticky.Drained:
		o := d.offers[m.Sake]
		o.Costs += m.Load
		d.offers[m.Sake] = o
	}
}

// saved adds what each replica has less above what it may carry.
func (d *division) saved(answer sticky.Answer) {
	before := map[int]plan.Load{}
	for replica := range d.offers {
		if replica < len(answer.Loads) {
			before[replica] = answer.Loads[replica]
		}
	}
	for _, m := range answer.Moves {
		if m.From == partition.Free {
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
		o := d.offers[replica]
		o.Saves += max(above(was, d.line)-above(answer.Loads[replica], d.line), d.savedMemory(answer, replica), 0)
		d.offers[replica] = o
	}
}

// savedMemory is by how much less memory a replica has in use above the line, as a load that is the same share of its line: the
// fullest dimension counts.
func (d *division) savedMemory(answer sticky.Answer, replica int) plan.Load {
	if answer.Memory == nil || answer.HighMemory == 0 {
		return 0
	}
	was := answer.Memory[replica]
	for _, m := range answer.Moves {
		if m.From == replica {
			was += d.items[m.Item].Memory
		}
		if m.To == replica && m.From != partition.Free {
			was -= d.items[m.Item].Memory
		}
	}
	less := max(was-answer.HighMemory, 0) - max(answer.Memory[replica]-answer.HighMemory, 0)
	return plan.Load(float64(less) / float64(answer.HighMemory) * float64(d.line))
}

func above(load, line plan.Load) plan.Load { return max(load-line, 0) }

// offer is what a partition that was made anew saves and costs: overload is what is above its fullest replica. What leaves
// others costs, too.
func (d *division) offer(a *adoption) {
	d.line, d.offers = d.peak(d.answer), map[int]evaluate.Offer{}
	before := map[int]plan.Load{}
	for k, u := range d.groups {
		from, load := a.standing(u.Clusters[0]), d.items[k].Load
		if !a.movable(u) {
			before[from] += load
			continue
		}
		switch {
		case from < 0:
			continue
		case from >= d.answer.Replicas:
			d.musts++
			continue
		}
		before[from] += load
		if from != d.answer.Of[k] {
			o := d.offers[from]
			o.Costs += load
			d.offers[from] = o
		}
	}
	for replica, o := range d.offers {
		o.Saves = above(before[replica], d.line)
		d.offers[replica] = o
	}
}

// changes reports whether it is another plan than the one in force.
func (d *division) changes(s *snapshot) bool {
	return len(s.moves(d.of)) > 0 || d.answer.Replicas != s.next.Replicas
}

// longest is how much of the time since the last cycle counts: nobody looked in between.
func (c *cycle) longest() time.Duration { return 2 * time.Duration(c.in.Config.Interval) }

// terms are those of this cycle. Where moves restart every replica, or a person says how many there are, all of them go at once.
func (c *cycle) terms(s *snapshot) terms {
	number := c.in.Config.Partition.Replicas
	asked := number != nil && number.Fixed > 0 && number.Fixed != s.next.Replicas
	t := terms{closed: s.closed(), even: c.in.Memory.Even.Held(s.next.Replicas, c.in.Now), all: asked || movesRestart(c.in.Config.Rollout)}
	if weighs := c.in.Config.Evaluate.CostBenefit; weighs != nil {
		t.anew, t.horizon = s.budgetOf(change.Balance).Left, time.Duration(weighs.Horizon)
	}
	return t
}

// movesRestart reports whether moves alone restart every replica in that mode.
func movesRestart(r config.Rollout) bool {
	return r.X0Y != nil || r.Default != nil && r.Default.RolloutRestart
}

// partitioned divides the fleet, and drains the highest replica once it has not been needed for long.
func (c *cycle) partitioned(s *snapshot) (division, error) {
	if c.in.Config.Partition.Sticky == nil {
		c.out.Memory.Spare = memory.Spare{}
		return divide(c.in, s.adoption, s.loads, terms{})
	}
	t := c.terms(s)
	d, err := divide(c.in, s.adoption, s.loads, t)
	if err != nil {
		return d, err
	}
	c.out.Memory.Even = c.in.Memory.Even.Next(d.answer.Replicas, d.even, c.in.Now)
	if !d.drain.Fits {
		c.out.Memory.Spare = memory.Spare{}
		return d, nil
	}
	c.out.Memory.Spare = c.in.Memory.Spare.Next(d.drain.Replica, c.in.Now, c.longest())
	if t.drainDue = c.drainDue(); !t.drainDue {
		return d, nil
	}
	return divide(c.in, s.adoption, s.loads, t)
}

// drainDue reports whether the highest replica has not been needed for as long as it takes.
func (c *cycle) drainDue() bool {
	spare := c.out.Memory.Spare
	return !spare.At.IsZero() && spare.For >= time.Duration(c.in.Config.Partition.Sticky.DownWindow)
}
