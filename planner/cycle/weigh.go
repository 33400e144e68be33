package cycle

import (
	"fmt"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/gate"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/loads"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/evaluate"
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

// of is what those moves alone cost: a replica that none of them relieves or fills goes on saving.
func (w worth) of(moves []outcome.Move) worth {
	spends := make(map[int]evaluate.Offer, len(w.spends))
	for _, m := range moves {
		for _, replica := range []int{m.From, m.To} {
			if o, offered := w.spends[replica]; offered {
				spends[replica] = o
			}
		}
	}
	w.spends = spends
	return w
}

// weighing finds of a division what pays.
type weighing struct{ *dividing }

// weigh elects the moves that pay, also where nothing may begin: those of which the overload that they mend has lasted. What a rule or a person asks for,
// and a replica that is not needed, waits for nothing.
func (c weighing) weigh(s *snapshot, d division.Division) (*evaluate.Candidate, worth) {
	if s.Next.Rollout != nil {
		c.Out.Candidate.Verdict = "not weighed while a rollout is under way"
		return nil, worth{}
	}
	c.held = loads.Held(c.In.Config, c.Out.Table, s.loads, s.Next.References)
	unheld(c.held, s, d.Offers)
	savings := c.In.Memory.Savings.Next(c.lookOut(s, d), c.In.Now, evaluate.Terms{
		Horizon: time.Duration(c.In.Config.Evaluate.CostBenefit.Horizon), Longest: longest(c.In), Price: price(s)})
	c.Out.Memory.Savings = savings
	if verdict := c.nothingToWeigh(s, d); verdict != "" {
		c.Out.Candidate.Verdict = verdict
		return nil, worth{}
	}
	paying, pays := c.paying(s, d, savings)
	if !pays {
		c.Out.Candidate.Verdict = "waits until it pays: it " + savings.Weigh(d.Offers).String()
		return nil, worth{}
	}
	w := worth{said: paying.Because(savings), spends: paying.Offers, saved: savings.Weigh(paying.Offers).Saved,
		asked: paying.Musts > 0 || worded(s, paying) || len(paying.Offers) == 0}
	elected := &evaluate.Candidate{Replicas: paying.Answer.Replicas, Of: paying.Of}
	if !s.may(gate.Balance) {
		c.Out.Candidate.Verdict = fmt.Sprintf("nothing begins while %s", s.verdicts[gate.Balance])
		return elected, w
	}
	show(c.Draft, s, paying)
	c.Out.Candidate.Verdict = w.said
	return elected, w
}

// nothingToWeigh is why there is nothing to decide; empty: there is something.
func (c weighing) nothingToWeigh(s *snapshot, d division.Division) string {
	switch {
	case s.Next.FreeReplicas && d.Answer.Replicas != s.Next.Replicas:
		return fmt.Sprintf("waits until the plan has the workload's %s", problem.Plural(d.Answer.Replicas, "replica"))
	case d.Changes(s.Ground):
		return ""
	case len(d.Over) > 0:
		return fmt.Sprintf("stays as it is, though %s carries more than it may: pins, caps, closed replicas or the others' load leave nothing to move%s", division.ReplicaList(d.Over), d.Declined)
	}
	return "stays as it is: no replica carries more than it may" + d.Declined
}

// unheld takes away what an offer saves where values that nobody measures now may be all of it.
func unheld(made []plan.Load, s *snapshot, offers map[int]evaluate.Offer) {
	for i, load := range made {
		replica := s.Standing(i)
		if o, offered := offers[replica]; offered && load > 0 && load >= o.Saves {
			offers[replica] = evaluate.Offer{Costs: o.Costs}
		}
	}
}

// price is what all moves have to pay together where they restart every replica: what all clusters make.
func price(s *snapshot) (all plan.Load) {
	if !s.In.Config.Rollout.MovesRestart() && s.In.Config.Rollout.Live != nil && s.Next.Target.Kind != plan.Deployment {
		return 0
	}
	for _, r := range s.now {
		all += r.TotalLoad
	}
	return all
}

// restartPays says what a change waits for that restarts every replica: until it would have saved what that costs, too.
func restartPays(s *snapshot, w *rollout.Proposal) (waits string) {
	if s.worth.said == "" || s.worth.asked || !restarts(s, w, rolloutOptions(s, change.Balance)) {
		return ""
	}
	restart := evaluate.Worth{Saved: s.worth.saved, Costs: price(s).Float() * evaluate.Cold.Seconds()}
	if restart.Saved >= restart.Costs {
		return ""
	}
	return "waits until it pays for the restart of every replica: it " + restart.String()
}

// rounds bounds how often the partition is asked to leave replicas alone whose relief does not pay: what is left of the
// others' may need another way.
const rounds = 8

// paying is of a division what pays; false: nothing does.
func (c weighing) paying(s *snapshot, d division.Division, savings evaluate.Savings) (division.Division, bool) {
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
			if !savings.Pays(replica, o) {
				waits[replica] = true
			}
		}
		if len(waits) == before {
			return d, d.Changes(s.Ground)
		}
		t.Patient = func(replica int) bool { return round == rounds-1 || waits[replica] }
		var err error
		if d, err = division.Divide(s.Ground, s.loads, t); err != nil {
			return d, false // it was said of the first one
		}
		unheld(c.held, s, d.Offers)
	}
	return d, d.Changes(s.Ground) // what rules ask for
}

// bill says what a change costs beside its load hours: whose objects are listed anew, how many where the default metric is measured,
// and how long that takes at the move budget. Empty: nothing starts from an empty cache.
func bill(s *snapshot, w *rollout.Proposal, moves []outcome.Move) string {
	lists, all := map[string]bool{}, restarts(s, w, rolloutOptions(s, change.Balance))
	for _, m := range moves {
		lists[m.Cluster] = true
	}
	if len(lists) == 0 && !all {
		return ""
	}
	objects := 0.0
	for i, n := range s.objects {
		if all || lists[s.Fleet.Clusters[i].Shard.ID] {
			objects += n
		}
	}
	text := "; their new owners list the objects anew"
	if all {
		text = "; every replica restarts and lists its objects anew"
	}
	if s.objects != nil {
		text += fmt.Sprintf(" (%.0f)", objects)
	}
	rates := ledger.RatesOf(s.In)
	if len(rates) == 0 || len(lists) == 0 {
		return text
	}
	servers := ledger.ServersOf(s.Beside, outcome.ClustersOf(moves), s.Next)
	done, ever := ledger.Soonest(s.changes.Ledger, rates, s.budget.Of, servers, s.In.Now)
	switch takes := done.Sub(s.In.Now).Round(time.Minute); {
	case !ever:
		return text + ", for some of which the move budget never has room"
	case takes > 0:
		return text + ", over " + config.Duration(takes).String() + " at the move budget"
	}
	return text + ", and the move budget has room for them now"
}
