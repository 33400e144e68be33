package cycle

import (
	"time"

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
	closed   map[int]bool           // replicas that receive nothing
	peaks    []plan.Load            // of the replicas
	drainDue bool                   // the highest replica has not been needed for long
	patient  func(replica int) bool // nothing is done for that replica's sake now; nil: for every one there is
}

// stick asks for a partition from the plan in force.
func (d *division) stick(a *adoption, b partition.Bounds, c *config.Sticky, now terms) error {
	p := constraint.Problem{Items: d.items, Bounds: b, Now: make([]int, len(d.items)), Replicas: a.next.Replicas}
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
		p.Now[k] = a.standing(u.Clusters[0])
		if !a.movable(u) && d.items[k].Replica == partition.Free && p.Now[k] < min(stays, b.MaxReplicas) {
			d.items[k].Replica = p.Now[k]
		}
	}
	high, low := share(c.High), share(c.Low)
	answer, err := sticky.Plan(p, sticky.Options{High: high, Down: low + (high-low)/2, Low: low, Drain: share(c.Drain),
		MaxMoves: c.MaxMoves, DrainDue: now.drainDue, Patient: now.patient, Peaks: now.peaks})
	if err != nil {
		return err
	}
	d.answer, d.drain, d.line, d.low = answer.Partition, answer.Drain, answer.High, answer.Low
	d.offers = map[int]evaluate.Offer{}
	for _, m := range answer.Moves {
		d.count(m)
	}
	d.saved(answer)
	return nil
}

// share is a share of the capacity, which the configuration bounds.
func share(d config.Decimal) plan.Load {
	l, err := plan.NewLoad(d.Float())
	if err != nil {
		return 0 // the default
	}
	return l
}

// count adds what a move costs to the account of the replica for whose sake it is. One that fills a replica saves the load
// that it brings there.
func (d *division) count(m sticky.Move) {
	switch {
	case m.From == partition.Free:
	case m.Must():
		d.musts++
	case m.Why == sticky.Filled:
		o := d.offers[m.Sake]
		d.offers[m.Sake] = evaluate.Offer{Saves: o.Saves + m.Load, Costs: o.Costs + m.Load}
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
		o.Saves += max(above(was, d.line)-above(answer.Loads[replica], d.line), 0)
		d.offers[replica] = o
	}
}

func above(load, line plan.Load) plan.Load { return max(load-line, 0) }

// offer is what a partition that was made anew saves and costs: overload is what is above its fullest replica. What leaves
// others costs, too.
func (d *division) offer(a *adoption) {
	d.line, d.offers = d.peak(d.answer), map[int]evaluate.Offer{}
	before := map[int]plan.Load{}
	for k, u := range d.groups {
		from, load := a.standing(u.Clusters[0]), d.items[k].Load
		switch {
		case from < 0 || !a.movable(u):
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

// partitioned divides the fleet, and drains the highest replica once it has not been needed for long.
func (c *cycle) partitioned(s *snapshot) (division, error) {
	if c.in.Config.Partition.Sticky == nil {
		return divide(c.in, s.adoption, s.loads, terms{})
	}
	t := terms{closed: s.closed(), peaks: c.peaks()}
	d, err := divide(c.in, s.adoption, s.loads, t)
	if err != nil {
		return d, err
	}
	if !d.drain.Fits {
		c.out.Memory.Spare = memory.Spare{}
		return d, nil
	}
	spare := c.in.Memory.Spare
	if spare.Replica != d.drain.Replica || spare.Since.IsZero() {
		spare = memory.Spare{Replica: d.drain.Replica, Since: c.in.Now}
	}
	c.out.Memory.Spare = spare
	if t.drainDue = c.drainDue(); !t.drainDue {
		return d, nil
	}
	return divide(c.in, s.adoption, s.loads, t)
}

// peakPeriod is what a day is to replicas that are busy at different hours.
const peakPeriod = 24 * time.Hour

// peaks are what the replicas had at most within a day or two, at the present mean; it remembers what they have now.
func (c *cycle) peaks() []plan.Load {
	mean := meanOf(c.out.Now)
	if mean <= 0 {
		return nil
	}
	shares := make([]float64, len(c.out.Now))
	for i, r := range c.out.Now {
		shares[i] = float64(r.TotalLoad) / mean
	}
	c.out.Memory.Peaks = c.in.Memory.Peaks.Next(shares, c.in.Now, peakPeriod, 2*time.Duration(c.in.Config.Interval))
	return c.atPeak()
}

// atPeak is what was remembered of them.
func (c *cycle) atPeak() []plan.Load {
	mean, peaks := meanOf(c.out.Now), make([]plan.Load, len(c.out.Now))
	for i := range peaks {
		peaks[i] = plan.Load(c.out.Memory.Peaks.Of(i) * mean)
	}
	return peaks
}

// meanOf is the mean load of the replicas.
func meanOf(replicas []plan.Replica) (mean float64) {
	for _, r := range replicas {
		mean += float64(r.TotalLoad) / float64(len(replicas))
	}
	return mean
}

// takes are the loads that move to each replica, in mean ones.
func (s *snapshot) takes(moves []Move) map[int]float64 {
	mean, of, takes := meanOf(s.now), map[string]plan.Load{}, map[int]float64{}
	if mean <= 0 {
		return nil
	}
	for i, c := range s.fleet.Clusters {
		of[c.Shard.ID] = s.loads[i]
	}
	for _, m := range moves {
		takes[m.To] += float64(of[m.Cluster]) / mean
	}
	return takes
}

// drainDue reports whether the highest replica has not been needed for as long as it takes.
func (c *cycle) drainDue() bool {
	since := c.out.Memory.Spare.Since
	return !since.IsZero() && c.in.Now.Sub(since) >= time.Duration(c.in.Config.Partition.Sticky.DownWindow)
}
