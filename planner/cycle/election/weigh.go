package election

import (
	"fmt"
	"time"

	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/evaluate"
	"ballast/planner/plural"
)

// weighing finds of a division what pays.
type weighing struct{ *dividing }

// weigh elects the moves that pay, also where nothing may begin: those of which the overload that they mend has lasted.
// What a rule or a person asks for, and a replica that is not needed, waits for nothing.
func (c weighing) weigh(s *snapshot.Snapshot, d division.Division) (*evaluate.Candidate, snapshot.Worth) {
	if s.Next.Rollout != nil {
		c.Out.Candidate.Verdict = "not weighed while a rollout is under way"
		return nil, snapshot.Worth{}
	}
	c.held = loads.Held(c.In.Config, c.Out.Table, s.Loads, s.Next.References)
	unheld(c.held, s, d.Offers)
	savings := c.In.Memory.Savings.Next(c.lookOut(s, d), c.In.Now, evaluate.Terms{
		Horizon: time.Duration(c.In.Config.Evaluate.CostBenefit.Horizon), Longest: longest(c.In),
		Price: snapshot.Price(s), Full: aboveCapacity(s, d)})
	c.Out.Memory.Savings = savings
	c.Out.Candidate.Worth = worthOf(d, savings)
	if verdict := c.nothingToWeigh(s, d); verdict != "" {
		c.Out.Candidate.Verdict = verdict
		return nil, snapshot.Worth{}
	}
	paying, pays := c.paying(s, d, savings)
	if !pays {
		c.Out.Candidate.Verdict = "waits until it pays: it " + savings.Weigh(d.Offers).String()
		return nil, snapshot.Worth{}
	}
	w := snapshot.Worth{Said: c.hurries(s, paying, savings) + paying.Because(savings), Spends: paying.Offers,
		Saved: savings.Weigh(paying.Offers).Saved,
		Asked: paying.Musts > 0 || worded(s, paying) || len(paying.Offers) == 0}
	elected := &evaluate.Candidate{Replicas: paying.Answer.Replicas, Of: paying.Of}
	if !s.May(gate.Balance) {
		c.Out.Candidate.Verdict = fmt.Sprintf("nothing begins while %s", s.Verdicts[gate.Balance])
		return elected, w
	}
	show(c.Draft, s, paying)
	c.Out.Candidate.Verdict, c.Out.Candidate.Worth = w.Said, worthOf(paying, savings)
	return elected, w
}

// worthOf is what people are told of both sides of a division; nil: it mends no overload.
func worthOf(d division.Division, savings evaluate.Savings) *outcome.Worth {
	var w outcome.Worth
	for _, o := range d.Offers {
		w.Mends += o.Saves
	}
	if len(d.Offers) == 0 {
		return nil
	}
	w.Saved, w.Costs = savings.Weigh(d.Offers).Hours()
	return &w
}

// nothingToWeigh is why there is nothing to decide; empty: there is something.
func (c weighing) nothingToWeigh(s *snapshot.Snapshot, d division.Division) string {
	switch {
	case s.Next.FreeReplicas && d.Answer.Replicas != s.Next.Replicas:
		return fmt.Sprintf("waits until the plan has the workload's %s", plural.Of(d.Answer.Replicas, "replica"))
	case d.Changes(s.Ground):
		return ""
	case len(d.Over) > 0:
		return fmt.Sprintf("stays as it is, though %s carries more than it may: pins, caps, closed replicas or the others' load leave nothing to move%s", division.ReplicaList(d.Over), d.Declined)
	}
	return "stays as it is: no replica carries more than it may" + d.Declined
}

// aboveCapacity are the replicas that carry more than a person said that one may.
func aboveCapacity(s *snapshot.Snapshot, d division.Division) (full []int) {
	for _, r := range s.Now {
		if d.Bounds.Capacity > 0 && r.TotalLoad > d.Bounds.Capacity {
			full = append(full, r.ID)
		}
	}
	return full
}

// few is the part of the capacity that moves of a replica may make which waits for nothing and stays above the capacity
// all the same: where one cluster is more than that by itself, for a moment perhaps, not all others leave it at once.
const few = 4

// tooFull reports whether a replica waits for nothing: it was above the capacity at two looks, half an interval apart
// at least. One more replica, and what restarts others, has to pay all the same.
func (c weighing) tooFull(s *snapshot.Snapshot, d division.Division, savings evaluate.Savings, replica int) bool {
	capacity, o := d.Bounds.Capacity, d.Offers[replica]
	byCapacity := capacity > 0 && d.Low <= capacity && d.Answer.Replicas <= s.Next.Replicas
	if !byCapacity || o.Saves == 0 || replica >= len(d.Answer.Loads) {
		return false
	}
	mends := d.Answer.Loads[replica] <= capacity || o.Costs <= capacity/few
	return mends && snapshot.Price(s) == 0 && savings.FullFor(replica, time.Duration(c.In.Config.Interval)/2)
}

// hurries names the replicas that wait for nothing, though their moves have not paid for themselves.
func (c weighing) hurries(s *snapshot.Snapshot, d division.Division, savings evaluate.Savings) string {
	var full []int
	for replica, o := range d.Offers {
		if !savings.Pays(replica, o) && c.tooFull(s, d, savings, replica) {
			full = append(full, replica)
		}
	}
	if len(full) == 0 {
		return ""
	}
	return division.ReplicaList(full) + " above partition.capacity waits for nothing: "
}

// rounds bounds how often the partition is asked to leave replicas alone whose relief does not pay: what is left of the
// others' may need another way.
const rounds = 8

// paying is of a division what pays; false: nothing does.
func (c weighing) paying(s *snapshot.Snapshot, d division.Division, savings evaluate.Savings) (division.Division, bool) {
	switch {
	case worded(s, d):
		return d, true
	case c.In.Config.Partition.Sticky == nil:
		return d, d.Musts > 0 || savings.PayTogether(d.Offers)
	}
	waits, t := map[int]bool{}, c.terms(s)
	t.DrainDue = c.drainDue()
	for round := range rounds {
		before := len(waits)
		for replica, o := range d.Offers {
			if !savings.Pays(replica, o) && !c.tooFull(s, d, savings, replica) {
				waits[replica] = true
			}
		}
		if len(waits) == before {
			return d, d.Changes(s.Ground)
		}
		t.Patient = func(replica int) bool { return round == rounds-1 || waits[replica] }
		var err error
		if d, err = division.Divide(s.Ground, s.Loads, t); err != nil {
			return d, false // it was said of the first one
		}
		unheld(c.held, s, d.Offers)
	}
	return d, d.Changes(s.Ground) // what rules ask for
}
