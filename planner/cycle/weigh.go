package cycle

import (
	"fmt"
	"time"

	"ballast/planner/cycle/problem"
	"ballast/planner/evaluate"
)

// worth is why what was elected pays, in words, and what it costs.
type worth struct {
	said   string
	spends map[int]evaluate.Offer
	takes  map[int]float64 // what moves to each replica, in mean loads
}

// weigh elects the moves that pay: those of which the overload that they mend has lasted. What a rule or a person asks for,
// and a replica that is not needed, waits for nothing.
func (c *cycle) weigh(s *snapshot, d division) (*evaluate.Candidate, worth) {
	if s.next.Rollout != nil {
		c.out.Candidate.Verdict = "not weighed while a rollout is under way"
		return nil, worth{}
	}
	horizon := time.Duration(c.in.Config.Evaluate.CostBenefit.Horizon)
	savings := c.in.Memory.Savings.Next(d.offers, c.in.Now, horizon, 2*time.Duration(c.in.Config.Interval))
	c.out.Memory.Savings = savings
	if s.next.FreeReplicas && d.answer.Replicas != s.next.Replicas {
		c.out.Candidate.Verdict = fmt.Sprintf("waits until the plan has the workload's %s", problem.Plural(d.answer.Replicas, "replica"))
		return nil, worth{}
	}
	if !d.changes(s) {
		c.out.Candidate.Verdict = "stays as it is: no move is worth what it costs"
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
	if waits := s.restartPays(paying, savings); waits != "" {
		c.out.Candidate.Verdict = waits
		return nil, worth{}
	}
	c.show(s, paying)
	w := worth{said: paying.because(savings), spends: paying.offers, takes: s.takes(c.out.Candidate.Moves)}
	c.out.Candidate.Verdict = w.said
	return &evaluate.Candidate{Replicas: paying.answer.Replicas, Of: paying.of}, w
}

// restartPays says what moves wait for that restart every replica: until they would have saved what that costs, too.
func (s *snapshot) restartPays(d division, savings evaluate.Savings) (waits string) {
	r := s.in.Config.Rollout
	restarts := r.X0Y != nil || r.Default != nil && r.Default.RolloutRestart
	if !restarts || len(d.offers) == 0 || d.musts > 0 || s.worded(d) {
		return ""
	}
	everything := map[int]evaluate.Offer{}
	for _, replica := range s.now {
		everything[replica.ID] = evaluate.Offer{Costs: replica.TotalLoad}
	}
	saved, restart := savings.Weigh(d.offers), savings.Weigh(everything)
	if saved.Saved >= restart.Costs {
		return ""
	}
	return "waits until it pays for the restart of every replica: it " + evaluate.Worth{Saved: saved.Saved, Costs: restart.Costs}.String()
}

// rounds bounds how often the partition is asked to leave replicas alone whose relief does not pay: what is left of the
// others' may need another way.
const rounds = 8

// paying is of a division what pays; false: nothing does.
func (c *cycle) paying(s *snapshot, d division, savings evaluate.Savings) (division, bool) {
	if c.in.Config.Partition.Sticky == nil {
		return d, s.worded(d) || d.musts > 0 || savings.PayTogether(d.offers)
	}
	waits, peaks := map[int]bool{}, c.atPeak()
	for range rounds {
		before := len(waits)
		for replica, o := range d.offers {
			if !savings.Pays(replica, o) {
				waits[replica] = true
			}
		}
		if len(waits) == before {
			return d, d.changes(s)
		}
		t := terms{closed: s.closed(), peaks: peaks, drainDue: c.drainDue(), patient: func(replica int) bool { return waits[replica] }}
		var err error
		if d, err = divide(c.in, s.adoption, s.loads, t); err != nil {
			return d, false // it was said of the first one
		}
	}
	return d, false
}

// because is why a division is taken.
func (d division) because(savings evaluate.Savings) string {
	switch {
	case len(d.offers) > 0:
		return savings.Weigh(d.offers).String()
	case d.musts > 0:
		return "a rule asks for " + problem.Plural(d.musts, "move")
	case d.drain.Fits:
		return fmt.Sprintf("replica %d has not been needed for as long as partition.sticky.downWindow", d.drain.Replica)
	}
	return "as many replicas as are asked for"
}
