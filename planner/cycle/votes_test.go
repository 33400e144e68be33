package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
)

// TestNobodysSecretKeepsAVoteFromItsEnd: one that is pinned to and fro, comes and goes or turns its shard every nine minutes began each
// vote anew, which takes ten, and nothing was ever levelled.
func TestNobodysSecretKeepsAVoteFromItsEnd(t *testing.T) {
	for name, turn := range map[string]func(w *liveWorld, on bool){
		"nobody": func(*liveWorld, bool) {},
		"a pin": func(w *liveWorld, on bool) {
			w.secret("own").Pin = map[bool]string{true: "0", false: "1"}[on]
		},
		"a Secret that comes and goes": func(w *liveWorld, on bool) {
			if !on {
				w.remove("own")
			} else if w.secret("own") == nil {
				w.add("own", 0)
			}
		},
		"many Secrets that come and go": func(w *liveWorld, on bool) {
			for i := range 12 {
				if name := fmt.Sprintf("other%02d", i); on {
					w.add(name, 0)
					w.idle[name] = true
				} else {
					w.remove(name)
				}
			}
		},
		"the shard of one that opted out": func(w *liveWorld, on bool) {
			w.secret("own").Unmanaged = true
			w.secret("own").Shard.N = map[bool]int{true: 0, false: 1}[on]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, make([]float64, 40)...)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(9 * time.Minute), MinSamples: 10}}
			for _, s := range w.in.Discovered.Secrets {
				w.setLoad(s.Name, 10)
			}
			w.add("own", 0)
			w.idle = map[string]bool{"own": true}
			for range 180 {
				w.step(time.Minute)
			}
			for _, s := range w.in.Discovered.Secrets {
				if s.Name != "own" && s.Shard.N == 0 {
					w.setLoad(s.Name, 40)
				}
			}
			waves := len(w.waves)
			for minute := range 3 * 60 {
				if minute%9 == 0 {
					turn(w, minute/9%2 == 0)
				}
				w.step(time.Minute)
			}
			if len(w.waves) == waves {
				t.Errorf("nothing was levelled within three hours: %+v", w.last.Candidate.Verdict)
			}
		})
	}
}

// TestAnElectionKeepsToWhatStands: what was voted for before others' Secrets changed moves nothing by what they changed.
func TestAnElectionKeepsToWhatStands(t *testing.T) {
	own := []string{"aaa0", "aaa1", "aaa2"}
	voting := func(t *testing.T) *liveWorld {
		w := adopted(t, slices.Repeat([]float64{10}, 40)...)
		w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(9 * time.Minute), MinSamples: 10}}
		w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
		w.idle = map[string]bool{}
		for _, name := range own {
			w.add(name, 0)
			w.idle[name], w.secret(name).Pin, w.secret(name).Created = true, "2", w.in.Now
		}
		for range 200 {
			w.step(time.Minute)
		}
		w.until(t, "nine votes", time.Hour, func(out outcome.Outcome) bool { return len(out.Memory.Votes.Ballots) == 9 })
		return w
	}
	t.Run("a server that is another's now", func(t *testing.T) {
		w := voting(t)
		victims := w.on(0)[:3]
		for i, name := range own {
			w.secret(name).Server, w.secret(name).Pin = w.secret(victims[i]).Server, ""
		}
		for range 60 {
			w.step(time.Minute)
		}
		for _, name := range victims {
			if at := w.row(t, name); at != 0 {
				t.Errorf("%s is on replica %d, want 0 as before: %v", name, at, messages(w.last))
			}
		}
	})
	t.Run("a pin beyond the replicas", func(t *testing.T) {
		w := voting(t)
		w.in.Config.Partition.Replicas = nil
		w.in.Memory.Votes.Basis = "" // of these bounds
		for range 8 {
			w.step(time.Minute)
		}
		w.secret("aaa0").Pin = "7"
		for range 40 {
			if w.step(time.Minute); w.last.Decided && w.in.InForce.Rollout != nil && w.in.InForce.Rollout.Replicas < 8 {
				t.Fatalf("%s: begins a rollout to %d replicas against the pin", w.last.Reason, w.in.InForce.Rollout.Replicas)
			}
		}
		if got := w.in.InForce.Replicas; got < 8 {
			t.Errorf("%d replicas, want 8 for the pin", got)
		}
	})
}

// TestAVoteGoesOnWhileWhatItElectedWaits: its ballots of meanwhile were dropped, so that it was short of samples for nine of eleven
// minutes: people were told of the vote and not of the budget, and what it elected began up to nine minutes late.
func TestAVoteGoesOnWhileWhatItElectedWaits(t *testing.T) {
	w := adopted(t, skewed(24)...)
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(10 * time.Minute), MinSamples: 10}}
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}}
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 2}
	var moved time.Time // by a wave
	waits := 0
	for range 12 * 60 {
		w.waves = nil
		w.step(time.Minute)
		due := !moved.IsZero() && w.in.InForce.Rollout == nil && w.in.Now.Sub(moved) > 21*time.Minute // ten ballots after the rollout's ten minutes
		if len(w.waves) > 0 {
			if since := w.in.Now.Sub(moved); !moved.IsZero() && since > time.Hour+2*time.Minute {
				t.Errorf("a wave after %s, want within two minutes of the budget's hour", since)
			}
			moved = w.in.Now
			continue
		}
		if !due || w.last.Candidate == nil || w.in.InForce.Replicas == 2 {
			continue
		}
		if waits++; !strings.HasPrefix(w.last.Candidate.Verdict, "waits for the move budget: ") {
			t.Fatalf("%s after a wave people are told %q, want what it waits for", w.in.Now.Sub(moved), w.last.Candidate.Verdict)
		}
	}
	if waits < 60 {
		t.Errorf("what was elected waited in %d cycles, want an hour at least", waits)
	}
}

// TestWhatCannotBeMovedLevelsNothing: one opted-out Secret that no replica has, or one that it cannot stay on, had a level fleet dealt anew
// at each election, for some per mille.
func TestWhatCannotBeMovedLevelsNothing(t *testing.T) {
	for name, spoil := range map[string]func(s *discover.Secret){
		"nobody's": func(s *discover.Secret) {},
		"opted out, and nowhere": func(s *discover.Secret) {
			s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardNegative}
		},
		"opted out, without shard": func(s *discover.Secret) { s.Unmanaged, s.SkipReconcile, s.Shard = true, true, discover.ShardValue{} },
		"immutable, beyond":        func(s *discover.Secret) { s.Immutable, s.Shard.N = true, 9 },
		"opted out, pinned away":   func(s *discover.Secret) { s.Unmanaged, s.Pin = true, "3" },
	} {
		t.Run(name, func(t *testing.T) {
			w := adopted(t, slices.Repeat([]float64{100}, 40)...)
			w.in.Config.Partition.Replicas, w.in.Config.Partition.Capacity = &config.Replicas{Fixed: 4}, nil
			w.in.Config.Change.Moves.Rate = nil
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(2 * time.Minute), MinSamples: 3}}
			w.add("own", 0)
			w.idle = map[string]bool{"own": true}
			for range 180 {
				w.step(time.Minute)
			}
			if on := []int{len(w.on(0)), len(w.on(1)), len(w.on(2)), len(w.on(3))}; slices.Min(on) < 10 {
				t.Fatalf("the fleet is not level: %v", on)
			}
			spoil(w.secret("own"))
			w.history = map[string][]int{}
			for minute := range 6 * 60 {
				for i := range 40 {
					w.setLoad(fmt.Sprintf("c%03d", i), 100+0.2*float64((i*7+minute/60)%5))
				}
				w.step(time.Minute)
			}
			moved := w.moved()
			delete(moved, "own")
			if len(moved) > 0 {
				t.Errorf("%d of others' clusters moved: %s", len(moved), w.last.Reason)
			}
		})
	}
}

// TestAnOverloadBeyondEvidenceWaitsForNoWholeWindow: where nobody said what a replica may carry, far more than it was seen to bear is
// voted on for a few cycles, by either partition, unless it has grown everywhere: then no plan takes it back.
func TestAnOverloadBeyondEvidenceWaitsForNoWholeWindow(t *testing.T) {
	sticky := config.Default().Partition
	lpt := sticky
	lpt.Sticky, lpt.LPT = nil, &config.LPT{}
	for name, test := range map[string]struct {
		partition config.Partition
		load      float64 // of each cluster of replica 0, ten before
		others    float64
		moves     bool // within an hour
	}{
		"1.3 of it":                {sticky, 13, 10, true},
		"1.2 of it":                {sticky, 12, 10, false},
		"more than it, everywhere": {sticky, 20, 15, false},
		"lpt, 1.3 of it":           {lpt, 13, 10, true},
		"lpt, 1.2 of it":           {lpt, 12, 10, false},
		"lpt, more, everywhere":    {lpt, 20, 15, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := takenOver(t, 60)
			w.in.Config.Partition = test.partition
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(24 * time.Hour), MinSamples: 5}}
			w.cycles(30, func(int) {})
			first := w.on(0)
			for cluster := range w.in.InForce.Clusters {
				w.setLoad(cluster, test.others)
			}
			for _, of := range first {
				w.setLoad(of, test.load)
			}
			if at := w.cycles(60, func(int) {}); at >= 0 != test.moves {
				t.Errorf("the first cluster moved after %d min, which is wanted: %t; %+v, %s", at, test.moves, w.last.Line, w.last.Candidate.Verdict)
			}
		})
	}
}

// TestAnOverloadWaitsForNoWholeWindow: what a replica carries beyond what a person said that it may is voted on for a few cycles, and
// what is only above high for a whole window.
func TestAnOverloadWaitsForNoWholeWindow(t *testing.T) {
	for name, test := range map[string]struct {
		load  float64 // of each cluster of replica 0, ten before
		moves bool    // within an hour
	}{
		"above the capacity": {13, true},
		"above high":         {11.7, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := shippedPlans(t, 60)
			capacity := config.Decimal("0.4") // of the whole fleet; each replica carries a third
			w.in.Config.Partition.Capacity = &capacity
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(24 * time.Hour), MinSamples: 5}}
			w.cycles(30, func(int) {})
			for _, of := range w.on(0) {
				w.setLoad(of, test.load)
			}
			if first := w.cycles(60, func(int) {}); first >= 0 != test.moves {
				t.Errorf("the first cluster moved after %d min, which is wanted: %t; %s", first, test.moves, w.last.Candidate.Verdict)
			}
		})
	}
}
