package cycle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/change"
	"ballast/planner/cycle/problem"
	"ballast/planner/evaluate"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// worth is why what was elected pays, in words, what it costs, and what it would have saved, in load times seconds. What a
// rule or a person asks for pays whatever it restarts.
type worth struct {
	said   string
	spends map[int]evaluate.Offer
	saved  float64
	asked  bool
}

// weigh elects the moves that pay: those of which the overload that they mend has lasted. What a rule or a person asks for,
// and a replica that is not needed, waits for nothing.
func (c *cycle) weigh(s *snapshot, d division) (*evaluate.Candidate, worth) {
	if s.next.Rollout != nil {
		c.out.Candidate.Verdict = "not weighed while a rollout is under way"
		return nil, worth{}
	}
	c.unheld(s, d.offers)
	savings := c.in.Memory.Savings.Next(d.offers, c.in.Now, evaluate.Terms{
		Horizon: time.Duration(c.in.Config.Evaluate.CostBenefit.Horizon), Longest: c.longest(), Price: s.price()})
	c.out.Memory.Savings = savings
	if verdict := c.nothingToWeigh(s, d); verdict != "" {
		c.out.Candidate.Verdict = verdict
		return nil, worth{}
	}
	paying, pays := c.paying(s, d, savings)
	switch {
	case !pays:
		c.out.Candidate.Verdict = "waits until it pays: it " + savings.Weigh(d.offers).String()
		return nil, worth{}
	case !s.may(balance):
		c.out.Candidate.Verdict = fmt.Sprintf("nothing begins while %s", s.verdicts[balance])
		return nil, worth{}
	}
	c.show(s, paying)
	w := worth{said: paying.because(savings), spends: paying.offers, saved: savings.Weigh(paying.offers).Saved,
		asked: paying.musts > 0 || s.worded(paying) || len(paying.offers) == 0}
	c.out.Candidate.Verdict = w.said
	return &evaluate.Candidate{Replicas: paying.answer.Replicas, Of: paying.of}, w
}

// nothingToWeigh is why there is nothing to decide; empty: there is something.
func (c *cycle) nothingToWeigh(s *snapshot, d division) string {
	switch {
	case s.next.FreeReplicas && d.answer.Replicas != s.next.Replicas:
		return fmt.Sprintf("waits until the plan has the workload's %s", problem.Plural(d.answer.Replicas, "replica"))
	case d.changes(s):
		return ""
	case len(d.over) > 0:
		return fmt.Sprintf("stays as it is, though %s carries more than it may: pins, caps, closed replicas or the others' load leave nothing to move%s", replicaList(d.over), d.declined)
	}
	return "stays as it is: no replica carries more than it may"
}

// unheld takes away what an offer saves where values that nobody measures now may be all of it.
func (c *cycle) unheld(s *snapshot, offers map[int]evaluate.Offer) {
	for i := range c.out.Fleet.Clusters {
		replica := s.standing(i)
		if o, offered := offers[replica]; offered && c.held(i) && s.loads[i] >= o.Saves {
			offers[replica] = evaluate.Offer{Costs: o.Costs}
		}
	}
}

// held reports whether one of a cluster's values is not of this cycle.
func (c *cycle) held(i int) bool {
	for _, column := range c.out.Table.Columns {
		if column.Flags[i] == measure.Held {
			return true
		}
	}
	return false
}

// price is what all moves have to pay together where they restart every replica: what all clusters make.
func (s *snapshot) price() (all plan.Load) {
	if !movesRestart(s.in.Config.Rollout) && s.in.Config.Rollout.Live != nil && s.next.Target.Kind != plan.Deployment {
		return 0
	}
	for _, r := range s.now {
		all += r.TotalLoad
	}
	return all
}

// restartPays says what a change waits for that restarts every replica: until it would have saved what that costs, too.
func (s *snapshot) restartPays(w *rollout.Proposal) (waits string) {
	if s.worth.said == "" || s.worth.asked || !s.restarts(w, s.rolloutOptions(change.Balance)) {
		return ""
	}
	restart := evaluate.Worth{Saved: s.worth.saved, Costs: s.price().Float() * evaluate.Cold.Seconds()}
	if restart.Saved >= restart.Costs {
		return ""
	}
	return "waits until it pays for the restart of every replica: it " + restart.String()
}

// rounds bounds how often the partition is asked to leave replicas alone whose relief does not pay: what is left of the
// others' may need another way.
const rounds = 8

// paying is of a division what pays; false: nothing does.
func (c *cycle) paying(s *snapshot, d division, savings evaluate.Savings) (division, bool) {
	switch {
	case s.worded(d):
		return d, true
	case c.in.Config.Partition.Sticky == nil:
		return d, d.musts > 0 || savings.PayTogether(d.offers)
	}
	waits, t := map[int]bool{}, c.terms(s)
	t.drainDue = c.drainDue()
	for round := range rounds {
		before := len(waits)
		for replica, o := range d.offers {
			if !savings.Pays(replica, o) {
				waits[replica] = true
			}
		}
		if len(waits) == before {
			return d, d.changes(s)
		}
		t.patient = func(replica int) bool { return round == rounds-1 || waits[replica] }
		var err error
		if d, err = divide(c.in, s.adoption, s.loads, t); err != nil {
			return d, false // it was said of the first one
		}
		c.unheld(s, d.offers)
	}
	return d, d.changes(s) // what rules ask for
}

// because is why a division is taken.
func (d division) because(savings evaluate.Savings) string {
	switch {
	case d.anew:
		return "made anew, for no few moves relieve " + replicaList(slices.Collect(maps.Keys(d.offers))) + ": " + savings.Weigh(d.offers).String()
	case len(d.offers) > 0:
		return savings.Weigh(d.offers).String()
	case d.starved > 0:
		return fmt.Sprintf("%s for replicas that have not enough memory", problem.Plural(d.starved, "move"))
	case d.musts > 0:
		return "a rule asks for " + problem.Plural(d.musts, "move")
	case d.drain.Fits:
		return fmt.Sprintf("replica %d has not been needed for as long as partition.sticky.downWindow", d.drain.Replica)
	}
	return "as many replicas as are asked for"
}
