package cycle

import (
	"testing"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/proposal"
	"ballast/planner/cycle/snapshot"
)

// TestWhatAChangeCosts: of ten clusters, each with a hundred objects, three move.
func TestWhatAChangeCosts(t *testing.T) {
	def := config.Rollout{Default: &config.DefaultRollout{}}
	x0y, live := config.Rollout{X0Y: &config.X0YRollout{}}, config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5}}
	const moved, all = "; their new owners list the objects anew", "; every replica restarts and lists its objects anew"
	level := map[string]int{"c009": 1, "c008": 1, "c003": 1}
	for name, test := range map[string]struct {
		rollout  config.Rollout
		percent  int // of the clusters an hour; 0: any number
		measured bool
		to       map[string]int
		replicas int
		want     string
	}{
		"without a budget":      {live, 0, true, level, 3, moved + " (300)"},
		"all at once":           {live, 30, true, level, 3, moved + " (300), and the move budget has room for them now"},
		"within two hours":      {live, 10, true, level, 3, moved + " (300), over 2h at the move budget"},
		"never":                 {live, -1, true, level, 3, moved + " (300), for some of which the move budget never has room"},
		"nothing measures them": {live, 30, false, level, 3, moved + ", and the move budget has room for them now"},
		"all stop":              {x0y, 30, true, level, 3, all + " (1000), and the move budget has room for them now"},
		"all restart for one":   {def, 30, true, nil, 4, all + " (1000)"},
		"nothing":               {live, 30, true, nil, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, a := bounded(t, test.rollout, max(test.percent, 0), 3, nil)
			if test.percent == 0 {
				a.In.Config.Change.Moves.Rate = nil
			}
			c.Out.Budget = change.Look(c.Out.Memory.Changes.Ledger, ledger.RatesOf(a.In), 10, c.In.Now)
			if a.Next.ControllerReplicas = 3; test.rollout.Live != nil {
				a.Next.ControllerReplicas = a.Env().Constant() // it restarted for that once
			}
			s := snapshot.Of(c.Out, a.Ground)
			for range s.Fleet.Clusters {
				if test.measured {
					s.Objects = append(s.Objects, 100)
				}
			}
			if got := proposal.Bill(s, s.WantOf(test.replicas, test.to), s.Moves(test.to)); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}
