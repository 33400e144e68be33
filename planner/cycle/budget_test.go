package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/adopt"
	"ballast/planner/cycle/discovery"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/cycle/waiting"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// shipped are the rates that ballast comes with.
func shipped() []config.Rate { return config.Default().Change.Moves.Rate }

// imbalanced makes every other cluster ten times as heavy.
func (w *liveWorld) imbalanced() {
	for i, s := range w.in.Discovered.Secrets {
		w.setLoad(s.Name, float64(10+90*(i%2)))
	}
}

// TestWithoutABudgetNothingBegins: a rollout that may move nothing would keep failovers, pins and people's wishes waiting until
// its deadline, and flush the plans that people can go back to.
func TestWithoutABudgetNothingBegins(t *testing.T) {
	for name, elect := range map[string]config.Evaluate{
		"by vote": {MostWanted: &config.MostWanted{Window: config.Duration(2 * time.Minute), MinSamples: 3}}, "at once": {None: &config.None{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			w.in.Config.Evaluate, w.in.Config.Change.Moves.Rate = elect, shipped()[:1]
			w.in.Memory.Changes.Ledger, w.waves = nil, nil
			w.imbalanced()
			begun, waited := 0, map[string]bool{}
			for range 6 * 120 {
				before := w.in.InForce.Rollout
				out := w.step(30 * time.Second)
				if after := w.in.InForce.Rollout; before == nil && after != nil {
					if begun++; out.Budget.Left < 1 {
						t.Errorf("a rollout began with a budget of %d: %s", out.Budget.Left, out.Reason)
					}
				}
				if strings.HasPrefix(out.Candidate.Verdict, "waits") {
					waited[out.Candidate.Verdict] = true
				}
			}
			if begun == 0 || len(w.waves) < begun {
				t.Errorf("%d rollouts began, and %d waves", begun, len(w.waves))
			}
			if len(waited) == 0 {
				t.Error("nobody is told what the balance waits for")
			}
			for verdict := range waited {
				if !strings.HasPrefix(verdict, "waits for the move budget: no cluster may move before 2026-11-2") {
					t.Errorf("verdict %q", verdict)
				}
			}
		})
	}
}

// TestARollbackUnderTheShippedBudget takes days, and ends in the earlier plan.
func TestARollbackUnderTheShippedBudget(t *testing.T) {
	w := undecided(t, skewed(24)...)
	earlier := w.in.InForce.Clone()
	for i, name := range slices.Sorted(maps.Keys(earlier.Clusters))[:17] {
		row := earlier.Clusters[name]
		row.Replica = (row.Replica + 1 + i%2) % 3
		earlier.Clusters[name] = row
	}
	w.in.Config.Change.Moves.Rate = shipped()
	w.in.Rollback, w.waves = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}, nil
	began, rollouts, told := w.in.Now, 0, ""
	for w.in.Now.Sub(began) < 4*24*time.Hour {
		before := w.in.InForce.Rollout
		out := w.step(time.Minute)
		if before == nil && w.in.InForce.Rollout != nil {
			rollouts++
		}
		for _, p := range out.Problems {
			if p.Kind == "BudgetWaits" && told == "" {
				told = p.Message
			}
		}
		if out.Done {
			break
		}
	}
	if took := w.in.Now.Sub(began); took < 48*time.Hour || took > 54*time.Hour {
		t.Errorf("17 clusters of 24, 2 an hour and 6 a day: it took %s, want a little more than two days", took)
	}
	if rollouts > len(w.waves) || rollouts < 9 {
		t.Errorf("%d rollouts for %d waves: one that moves nothing leaves a plan for nothing", rollouts, len(w.waves))
	}
	if !strings.HasPrefix(told, fmt.Sprintf("goes back to revision %d, as a person asked: waits for the move budget: no cluster may move before 2026-11-", earlier.Revision)) {
		t.Errorf("people are told %q", told)
	}
	want := map[string]int{}
	for name, row := range earlier.Clusters {
		want[name] = row.Replica
	}
	if diff := cmp.Diff(want, w.owners()); diff != "" {
		t.Errorf("(-earlier +now):\n%s", diff)
	}
	for name, h := range w.moved() {
		if len(h) != 2 {
			t.Errorf("%s was on %v on its way back", name, h)
		}
	}
}

// bounded is a cycle in front of a decision: so many clusters, all on replica 0 but for those that are told, and a budget.
func bounded(t *testing.T, r config.Rollout, percent, replicas int, on map[string]int) (*outcome.Draft, *adopt.Adoption) {
	t.Helper()
	w := newWorld(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	w.in.Config.Rollout, w.in.Config.Change.Moves.Rate = r, []config.Rate{{Percent: percent, Period: config.Duration(time.Hour)}}
	for i := range w.in.Discovered.Secrets {
		w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: on[w.in.Discovered.Secrets[i].Name]}
	}
	w.in.Config.Mode = plan.Hold
	w.cycle()
	w.in.InForce.Mode, w.in.Config.Mode = plan.Enforce, plan.Enforce
	w.in.InForce.Replicas = replicas
	c := &outcome.Draft{In: w.in, Out: outcome.Outcome{Memory: w.in.Memory}}
	if fleet := (discovery.Phase{Draft: c}); !fleet.Discover() {
		t.Fatal("nothing is seen")
	}
	a := adopt.Plan(w.in, c.Out.Fleet, *w.in.InForce, nil)
	ledger.Ledger{Draft: c}.Count(a.Beside)
	return c, a
}

func TestWhatTheBudgetLeavesOfAChange(t *testing.T) {
	def, x0y, live := config.Rollout{Default: &config.DefaultRollout{}}, config.Rollout{X0Y: &config.X0YRollout{}}, config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5}}
	spread := map[string]int{"c000": 0, "c001": 1, "c002": 2, "c003": 0, "c004": 1, "c005": 2, "c006": 0, "c007": 1, "c008": 2, "c009": 0}
	level := map[string]int{"c009": 1, "c008": 1, "c003": 1} // between replicas that stay, but for c008
	drain := map[string]int{"c002": 0, "c005": 1, "c008": 1, "c009": 1}
	for name, test := range map[string]struct {
		rollout  config.Rollout
		percent  int
		used     int
		replicas int // wanted, of 3
		to       map[string]int
		cause    change.Cause
		waits    string
		moves    []string
		ends     int // replicas
	}{
		"all of it fits":                               {def, 30, 0, 3, level, change.Balance, "", []string{"c003", "c008", "c009"}, 3},
		"the heaviest first":                           {def, 20, 0, 3, level, change.Balance, "", []string{"c008", "c009"}, 3},
		"nothing is left":                              {def, 20, 2, 3, level, change.Balance, "waits for the move budget: no cluster may move before 2026-11-20T10:00:00Z: made 2 of 2 within 1h (Balance 2)", nil, 3},
		"a pin waits for nothing":                      {def, 20, 2, 3, level, change.Pin, "", []string{"c003", "c008", "c009"}, 3},
		"a shrink leaves the others where they are":    {def, 30, 0, 2, drain, change.Balance, "", []string{"c002", "c005", "c008"}, 2},
		"a shrink that fits":                           {def, 40, 0, 2, drain, change.Balance, "", []string{"c002", "c005", "c008", "c009"}, 2},
		"what is on a replica that goes leaves before": {def, 20, 0, 2, drain, change.Balance, "", []string{"c005", "c008"}, 3},
		"no replica goes without a budget":             {def, 20, 2, 2, drain, change.Balance, "waits for the move budget: no cluster may move before 2026-11-20T10:00:00Z: made 2 of 2 within 1h (Balance 2)", nil, 3},
		"levelling keeps no rollback waiting":          {def, 20, 2, 2, drain, change.Rollback, "", []string{"c005", "c008"}, 3},
		"replicas come without one":                    {def, 20, 2, 4, level, change.Balance, "", nil, 4},
		"x0y: all of it fits":                          {x0y, 30, 0, 3, level, change.Balance, "", []string{"c003", "c008", "c009"}, 3},
		"x0y: it stops the fleet once":                 {x0y, 30, 1, 3, level, change.Balance, "waits until 2026-11-20T10:00:00Z for a move budget of 3 at once, since every replica stops for it: 2 more clusters may move now: made 1 of 3 within 1h (Balance 1)", nil, 3},
		"x0y: as many as ever fit":                     {x0y, 20, 0, 2, drain, change.Balance, "", []string{"c005", "c008"}, 3},
		"x0y: no fewer than that":                      {x0y, 20, 1, 2, drain, change.Balance, "waits until 2026-11-20T10:00:00Z for a move budget of 2 at once, since every replica stops for it: 1 more cluster may move now: made 1 of 2 within 1h (Balance 1)", nil, 3},
		"x0y: it never fits": {x0y, 20, 0, 2, drain, change.Rollback, "waits for a move budget of 4 at once, since every replica stops for it, and change.moves.rate never has room for them: " +
			"raise it, or set rollout.live, which moves some at a time: 2 more clusters may move now: made 0 of 2 within 1h", nil, 2},
		"live: waves look at the budget themselves": {live, 20, 1, 3, level, change.Balance, "", []string{"c003", "c008", "c009"}, 3},
		"live: nothing is left":                     {live, 20, 2, 2, drain, change.Balance, "waits for the move budget: no cluster may move before 2026-11-20T10:00:00Z: made 2 of 2 within 1h (Balance 2)", nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c, a := bounded(t, test.rollout, test.percent, 3, spread)
			if m := &c.Out.Memory.Changes; test.used > 0 {
				m.Ledger = m.Ledger.Add(c.In.Now, change.Balance, test.used)
			}
			c.Out.Budget = change.Look(c.Out.Memory.Changes.Ledger, ledger.RatesOf(c.In), 10, c.In.Now)
			s := snapshot.Of(c.Out, a.Ground)
			w := s.WantOf(test.replicas, test.to)
			got, told := waiting.Limit(s, w, test.cause, snapshot.RolloutOptions(s, test.cause))
			if got != test.waits {
				t.Errorf("waits %q, want %q", got, test.waits)
			}
			var never []problem.Problem
			if strings.Contains(test.waits, "never has room") {
				never = []problem.Problem{{Phase: problem.PhaseRollout, Kind: "BudgetTooSmall", Message: "what is to move " + test.waits}}
			}
			if diff := cmp.Diff(never, told); diff != "" {
				t.Errorf("people are told (-want +got):\n%s", diff)
			}
			if test.waits != "" {
				return
			}
			var moves []string
			for _, m := range rollout.Moves(a.Next, plan.Plan{Clusters: w.Rows}) {
				moves = append(moves, m.Cluster)
			}
			if diff := cmp.Diff(test.moves, moves); diff != "" || w.Replicas != test.ends {
				t.Errorf("%d replicas, want %d; moves (-want +got):\n%s", w.Replicas, test.ends, diff)
			}
		})
	}
}

// TestClustersOfOneServerDoNotPartForTheBudget: they are one move.
func TestClustersOfOneServerDoNotPartForTheBudget(t *testing.T) {
	c, a := bounded(t, config.Rollout{Default: &config.DefaultRollout{}}, 20, 3, nil)
	of := map[string]int{}
	for i, name := range []string{"c009", "c008", "c007", "c006"} {
		of[name] = 1
		if i < 3 { // three Secrets of one server
			k := slices.IndexFunc(a.Fleet.Clusters, func(c discover.Cluster) bool { return c.Shard.ID == name })
			a.Fleet.Clusters[k].Shard.Server = "https://same"
			a.Beside.Add(name, "https://same")
		}
	}
	of["c005"] = 1
	s := snapshot.Of(c.Out, a.Ground)
	w := s.WantOf(3, of)
	if waits, _ := waiting.Limit(s, w, change.Balance, snapshot.RolloutOptions(s, change.Balance)); waits != "" {
		t.Errorf("it waits: %s", waits)
	}
	var want []rollout.Move // the budget is 2: that server, and the heavier one of the others
	for _, name := range []string{"c006", "c007", "c008", "c009"} {
		want = append(want, rollout.Move{Cluster: name, From: 0, To: 1, Load: a.Next.Clusters[name].Load})
	}
	if diff := cmp.Diff(want, rollout.Moves(a.Next, plan.Plan{Clusters: w.Rows})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatWaitsForTheBudgetIsVotedForOnce: the votes that elected it stand until it begins, as soon as there is room.
func TestWhatWaitsForTheBudgetIsVotedForOnce(t *testing.T) {
	w := newWorld(skewed(24)...)
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 100, Period: config.Duration(time.Hour)}}
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(30 * time.Minute), MinSamples: 5}}
	w.cycle()
	w.in.Memory.Changes.Ledger = change.Ledger{{At: w.in.Now, Moves: 20, Cause: change.Pin}}
	w.run(45)
	if r := w.in.InForce.Rollout; r != nil || !strings.HasPrefix(w.last.Candidate.Verdict, "waits until 2026-11-20T10:00:00Z for a move budget of ") {
		t.Fatalf("rollout %+v, verdict %q", r, w.last.Candidate.Verdict)
	}
	w.in.Now = epoch.Add(59 * time.Minute)
	w.run(1)
	if r := w.in.InForce.Rollout; r == nil || r.Mode != plan.ModeX0Y {
		t.Errorf("rollout %+v when there is room, want x0y: %q", r, w.last.Candidate.Verdict)
	}
}
