package proposal

import (
	"fmt"
	"time"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/evaluate"
	"ballast/planner/rollout"
)

// restartPays says what a change waits for that restarts every replica: until it would have saved what that costs, too.
func restartPays(s *snapshot.Snapshot, w *rollout.Proposal) (waits string) {
	if s.Worth.Said == "" || s.Worth.Asked || !snapshot.Restarts(s, w, snapshot.RolloutOptions(s, change.Balance)) {
		return ""
	}
	restart := evaluate.Worth{Saved: s.Worth.Saved, Costs: snapshot.Price(s).Float() * evaluate.Cold.Seconds()}
	if restart.Saved >= restart.Costs {
		return ""
	}
	return "waits until it pays for the restart of every replica: it " + restart.String()
}

// Bill says what a change costs beside its load hours: whose objects are listed anew, how many where the default metric
// is measured, and how long that takes at the move budget. Empty: nothing starts from an empty cache.
func Bill(s *snapshot.Snapshot, w *rollout.Proposal, moves []outcome.Move) string {
	lists, all := map[string]bool{}, snapshot.Restarts(s, w, snapshot.RolloutOptions(s, change.Balance))
	for _, m := range moves {
		lists[m.Cluster] = true
	}
	if len(lists) == 0 && !all {
		return ""
	}
	objects := 0.0
	for i, n := range s.Objects {
		if all || lists[s.Fleet.Clusters[i].Shard.ID] {
			objects += n
		}
	}
	text := "; their new owners list the objects anew"
	if all {
		text = "; every replica restarts and lists its objects anew"
	}
	if s.Objects != nil {
		text += fmt.Sprintf(" (%.0f)", objects)
	}
	rates := ledger.RatesOf(s.In)
	if len(rates) == 0 || len(lists) == 0 {
		return text
	}
	servers := ledger.ServersOf(s.Beside, outcome.ClustersOf(moves), s.Next)
	done, ever := ledger.Soonest(s.Changes.Ledger, rates, s.Budget.Of, servers, s.In.Now)
	switch takes := done.Sub(s.In.Now).Round(time.Minute); {
	case !ever:
		return text + ", for some of which the move budget never has room"
	case takes > 0:
		return text + ", over " + config.Duration(takes).String() + " at the move budget"
	}
	return text + ", and the move budget has room for them now"
}
