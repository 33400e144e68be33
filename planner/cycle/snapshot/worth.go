package snapshot

import (
	"ballast/planner/cycle/outcome"
	"ballast/planner/evaluate"
	"ballast/planner/plan"
)

// Worth is why what was elected pays, in words, what it costs, and what it would have saved, in load times seconds. What a
// rule or a person asks for pays whatever it restarts.
type Worth struct {
	Said   string
	Spends map[int]evaluate.Offer
	Saved  float64
	Asked  bool
}

// Of is what those moves alone cost: a replica that none of them relieves or fills goes on saving.
func (w Worth) Of(moves []outcome.Move) Worth {
	spends := make(map[int]evaluate.Offer, len(w.Spends))
	for _, m := range moves {
		for _, replica := range []int{m.From, m.To} {
			if o, offered := w.Spends[replica]; offered {
				spends[replica] = o
			}
		}
	}
	w.Spends = spends
	return w
}

// Price is what all moves have to pay together where they restart every replica: what all clusters make.
func Price(s *Snapshot) (all plan.Load) {
	if !s.In.Config.Rollout.MovesRestart() && s.In.Config.Rollout.Live != nil && s.Next.Target.Kind != plan.Deployment {
		return 0
	}
	for _, r := range s.Now {
		all += r.TotalLoad
	}
	return all
}
