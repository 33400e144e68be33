package election

import (
	"maps"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/counting"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/sizing"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/track"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
)

// dividing asks for divisions until what comes of it may be.
type dividing struct {
	*outcome.Draft
	allowedReplicas int         // what change.out and change.in let there be now; 0: as many as are wanted
	drainShut       bool        // they let the highest replica not go now
	held            []plan.Load // what values of earlier cycles make of each cluster's load
}

// terms are those of this cycle. Where moves restart every replica, or a person says how many there are, all of them go
// at once.
func (c *dividing) terms(s *snapshot.Snapshot) division.Terms {
	number := c.In.Config.Partition.Replicas
	asked := number != nil && number.Fixed > 0 && number.Fixed != s.Next.Replicas
	closed := s.Closed()
	maps.Copy(closed, sizing.Cramped(c.In))
	t := division.Terms{Closed: closed, Even: c.In.Memory.Even.Held(s.Next.Replicas, c.In.Now),
		All: asked || c.In.Config.Rollout.MovesRestart(), Replicas: c.allowedReplicas}
	if weighs := c.In.Config.Evaluate.CostBenefit; weighs != nil && !snapshot.GoneBack(s) {
		t.Anew, t.Horizon = snapshot.BudgetOf(s, change.Balance).Left, time.Duration(weighs.Horizon)
		t.Spare, t.MostSpare = snapshot.SpareOf(s)
	}
	return t
}

// partitioned divides the fleet: as is wanted, then among as many replicas as there may be now, and at last without the
// highest one, once it has not been needed for long.
func (c *dividing) partitioned(s *snapshot.Snapshot) (division.Division, error) {
	if c.In.Config.Partition.Sticky == nil {
		return c.byLoadAlone(s)
	}
	wanted := c.terms(s)
	d, err := division.Divide(s.Ground, s.Loads, wanted)
	if err != nil {
		return d, err
	}
	drains := d.Drain.Fits && d.Answer.Replicas == s.Next.Replicas
	if !drains && c.holdsCount(s, d, d.Answer.Replicas) { // what holds a drain is drainShut
		if d, err = c.divideHeld(s, c.terms(s), d); err != nil {
			return d, err
		}
	}
	c.Out.Memory.Even = c.In.Memory.Even.Next(d.Answer.Replicas, d.Even, c.In.Now)
	if !d.Drain.Fits {
		c.Out.Memory.Spare = track.Spare{}
		return d, nil
	}
	return c.drained(s, wanted, d, drains)
}

// byLoadAlone is the division by lpt, which knows no replica that is to be drained.
func (c *dividing) byLoadAlone(s *snapshot.Snapshot) (division.Division, error) {
	c.Out.Memory.Spare = track.Spare{}
	d, err := division.Divide(s.Ground, s.Loads, division.Terms{})
	if err != nil || !c.holdsCount(s, d, d.Answer.Replicas) {
		return d, err
	}
	return c.divideHeld(s, division.Terms{Replicas: c.allowedReplicas}, d)
}

// drained is a division without the highest replica, where that has not been needed for long and may go; else the one
// that there is.
func (c *dividing) drained(s *snapshot.Snapshot, wanted division.Terms, d division.Division, drains bool) (division.Division, error) {
	c.Out.Memory.Spare = c.In.Memory.Spare.Next(d.Drain.Replica, c.In.Now, longest(c.In))
	c.drainShut = drains && counting.Allowed(c.Draft, s.Ground, d, d.Drain.Replica, c.drainDue()) > d.Drain.Replica
	if wanted.DrainDue = c.drainDue(); !wanted.DrainDue {
		return d, nil
	}
	return division.Divide(s.Ground, s.Loads, wanted)
}

// drainDue reports whether the highest replica has not been needed for as long as it takes.
func (c *dividing) drainDue() bool {
	spare := c.Out.Memory.Spare
	return !c.drainShut && !spare.At.IsZero() && spare.For >= time.Duration(c.In.Config.Partition.Sticky.DownWindow)
}

// longest is how much of the time since the last cycle counts: nobody looked in between.
func longest(in input.Inputs) time.Duration { return 2 * time.Duration(in.Config.Interval) }

// holdsCount reports whether fewer changes of the number of replicas are let through now than are wanted.
func (c *dividing) holdsCount(s *snapshot.Snapshot, d division.Division, wanted int) bool {
	allowed := counting.Allowed(c.Draft, s.Ground, d, wanted, true)
	if allowed == wanted || s.Next.Rollout != nil {
		return false
	}
	c.allowedReplicas = allowed
	return true
}

// divideHeld divides among as many replicas as there may be now, and keeps in mind what the number that is wanted would
// save: once it may come, that counts as lasting since it was wanted.
func (c *dividing) divideHeld(s *snapshot.Snapshot, t division.Terms, wanted division.Division) (division.Division, error) {
	d, err := division.Divide(s.Ground, s.Loads, t)
	d.Outlook = wanted.Offers
	return d, err
}

// lookOut is what a division offers, with what it would by the number that is wanted.
func (c *dividing) lookOut(s *snapshot.Snapshot, d division.Division) map[int]evaluate.Offer {
	if len(d.Outlook) == 0 {
		return d.Offers
	}
	offers := maps.Clone(d.Outlook)
	unheld(c.held, s, offers)
	maps.Copy(offers, d.Offers)
	return offers
}

// unheld takes away what an offer saves where values that nobody measures now may be all of it.
func unheld(made []plan.Load, s *snapshot.Snapshot, offers map[int]evaluate.Offer) {
	for i, load := range made {
		replica := s.Standing(i)
		if o, offered := offers[replica]; offered && load > 0 && load >= o.Saves {
			offers[replica] = evaluate.Offer{Costs: o.Costs}
		}
	}
}
