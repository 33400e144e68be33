package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/outcome"
	"ballast/planner/failover/health"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// dying is a replica whose container memory kills, or whose process ends by itself, again and again: it runs for a minute of
// every four.
type dying struct {
	replica int
	oom     bool
	times   int
	at      time.Time // of the last end
}

func (d *dying) shape(w *liveWorld) func(*observed.Pod) {
	return func(p *observed.Pod) {
		if p.Replica != d.replica {
			return
		}
		if w.in.Now.Sub(d.at) >= 4*time.Minute {
			d.times, d.at = d.times+1, w.in.Now
		}
		begun := d.at.Add(3 * time.Minute) // backed off until then
		p.Restarts, p.RestartedAt, p.Ready = d.times, d.at, !w.in.Now.Before(begun)
		if p.Ready {
			p.RestartedAt = begun
		}
		if d.oom {
			p.OOMKilled, p.KilledAt = true, d.at
		}
	}
}

func TestAnEvacuationWaitsForNoBalanceAndNothingComesMeanwhile(t *testing.T) {
	w := adopted(t, skewed(40)...)
	w.in.Config.Rollout.Live.MaxMovesPerWave = 1
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
	w.until(t, "a wave of many", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) == 1 })
	if r := w.in.InForce.Rollout; r.Waves < 4 {
		t.Fatalf("%d waves are few", r.Waves)
	}
	receiver := -1
	for name, to := range w.in.Memory.Changes.Target {
		if _, now := w.in.InForce.Rollout.Moves[name]; !now {
			receiver = to
		}
	}
	w.in.Cordon = fmt.Sprintf("%d=%s", receiver, w.in.Now.Add(2*time.Hour).UTC().Format(time.RFC3339))
	before := map[string]bool{}
	for _, name := range w.on(receiver) {
		before[name] = true
	}
	w.until(t, "the evacuation began", 2*time.Minute, func(outcome.Outcome) bool { return w.in.Memory.Changes.Cause == change.Drain })
	w.until(t, "the cordoned replica is empty", time.Hour, func(outcome.Outcome) bool {
		for _, name := range w.on(receiver) {
			if !before[name] {
				t.Fatalf("%s came to the cordoned replica %d", name, receiver)
			}
		}
		return len(w.on(receiver)) == 0
	})
}

func TestAFleetWhosePodsFallOneAfterTheOtherMovesNothing(t *testing.T) {
	for _, mode := range []string{plan.ModeLive, plan.ModeDefault} {
		w := undecided(t, skewed(24)...)
		for range 30 {
			w.step(time.Minute) // settled
		}
		if mode == plan.ModeDefault { // nothing but the choice of the receivers keeps clusters off pods that do not work
			w.in.Config.Rollout.Live, w.in.Config.Rollout.Default = nil, &config.DefaultRollout{}
		}
		w.history = map[string][]int{}
		for replica := range 3 {
			w.down[replica] = true
			w.step(20 * time.Second)
		}
		for range 60 {
			w.step(20 * time.Second)
			if w.last.Replicas.Held != health.WholeFleet && len(w.last.Replicas.Sick) > 0 {
				t.Fatalf("in mode %s %v are sick, and nothing is held back", mode, w.last.Replicas.Sick)
			}
		}
		if moved := w.moved(); len(moved) > 0 {
			t.Errorf("in mode %s clusters moved while nobody could take them: %v", mode, moved)
		}
	}
}

func TestAFailoverThatIsTakenBackDoesNotGoBackToTheDead(t *testing.T) {
	w := undecided(t, skewed(24)...)
	for range 30 {
		w.step(time.Minute) // settled
	}
	w.down[2], w.waves = true, nil
	w.until(t, "the first wave", 20*time.Minute, func(outcome.Outcome) bool { return len(w.waves) == 1 })
	rescued := w.in.InForce.Rollout.Moves
	w.shape = func(p *observed.Pod) { p.Memory, p.MemoryLimit = 99, 100 }
	for name := range rescued {
		w.taken[name] = true
	}
	out := w.until(t, "the wave is over", 5*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	if out.Progress.Outcome != rollout.GaveUp {
		t.Errorf("it ended as %+v", out.Progress)
	}
	for name, to := range rescued {
		if got := w.row(t, name); got != to || w.owners()[name] != to {
			t.Errorf("%s was moved to %d, and its row is on %d, its Secret on %d", name, to, got, w.owners()[name])
		}
	}
}

// unlevel has more on one replica than on others, and needs more replicas than there are.
func unlevel(w *liveWorld) {
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
}

func TestWithoutTheAnswerOfEveryPodOnlyAFailoverBegins(t *testing.T) {
	w := adopted(t, skewed(24)...)
	w.history, w.counts = map[string][]int{}, nil
	unlevel(w)
	w.mute = map[int]bool{0: true}
	w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 5}
	w.in.Pins = plan.Pins{"c000": 4}
	for range 4 * 60 {
		w.step(time.Minute)
	}
	if diff := cmp.Diff([]int{3}, w.counts) + cmp.Diff(map[string][]int{}, w.moved()); diff != "" {
		t.Errorf("replicas and owners over time (-want +got):\n%s", diff)
	}
	const want = "LiveNotReady: rollout.live begins nothing but a failover to replicas that say what they own: nothing is known of what argocd-application-controller-0 owns: let ballast's planner reach"
	if told := messages(w.last); !slices.ContainsFunc(told, func(m string) bool { return strings.HasPrefix(m, want) }) {
		t.Errorf("nobody is told who does not answer: %v", told)
	}
	before := w.on(0)
	w.in.Config.Partition.Replicas, w.in.Pins = &config.Replicas{Fixed: 3}, nil
	w.down[2] = true
	w.until(t, "replica 2 is empty", 2*time.Hour, func(outcome.Outcome) bool { return len(w.on(2)) == 0 })
	if diff := cmp.Diff(before, w.on(0)); diff != "" {
		t.Errorf("what the replica has that does not answer (-want +got):\n%s", diff)
	}
}

// TestAFaultStopsWhatBallastBeginsByItself, one that nobody has for an hour: TestAClusterThatNobodyGetsKeepsOthersForAnHour.
func TestAFaultStopsWhatBallastBeginsByItself(t *testing.T) {
	for name, fault := range map[string]func(w *liveWorld){
		"a cluster that nobody has":    func(w *liveWorld) { w.taken["c001"] = true },
		"a cluster that two pods have": func(w *liveWorld) { w.doubled = map[string]bool{w.on(1)[0]: true} },
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			fault(w)
			for range 5 {
				w.step(time.Minute) // beyond its grace
			}
			unlevel(w)
			w.in.Config.Evaluate.MostWanted = &config.MostWanted{Window: config.Duration(2 * time.Minute), MinSamples: 3}
			w.waves, w.counts = nil, nil
			for range 55 {
				w.step(time.Minute)
			}
			if diff := cmp.Diff([]int{3}, w.counts); diff != "" || len(w.waves) > 0 {
				t.Errorf("waves of %v; replicas over time (-want +got):\n%s", w.waves, diff)
			}
			if got := w.last.Candidate.Verdict; !strings.Contains(got, "nothing begins while") {
				t.Errorf("the verdict is %q", got)
			}
			w.taken, w.doubled = map[string]bool{}, nil
			w.until(t, "it goes on when all is well", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > 0 })
		})
	}
}

func TestAReplicaThatKeepsDyingIsEmptiedAndTripsNothing(t *testing.T) {
	for name, d := range map[string]*dying{
		"of its memory": {replica: 2, oom: true},
		"by itself":     {replica: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			for range 30 {
				w.step(time.Minute) // settled
			}
			w.waves = nil
			w.shape = d.shape(w)
			w.until(t, "replica 2 is empty", 2*time.Hour, func(out outcome.Outcome) bool {
				if trip := out.Memory.Changes.Trip; trip != nil {
					t.Fatalf("it tripped with %d clusters left on replica 2, because %s", len(w.on(2)), trip.Why)
				}
				return w.in.InForce.Rollout == nil && len(w.on(2)) == 0
			})
			if len(w.waves) < 2 {
				t.Errorf("one wave of %v was all: the kill after it was not seen", w.waves)
			}
			for range 30 {
				if out := w.step(time.Minute); out.Memory.Changes.Trip != nil {
					t.Fatalf("it tripped afterwards because %s", out.Memory.Changes.Trip.Why)
				}
			}
			reason := health.Restarting
			if d.oom {
				reason = health.OOMKilled
			}
			if !slices.ContainsFunc(w.last.Replicas.Sick, func(s health.Sick) bool { return s.Replica == 2 && s.Reason == reason }) {
				t.Errorf("replica 2 is not known as %s: %+v", reason, w.last.Replicas.Sick)
			}
		})
	}
}

// TestAKillThatIsOverSoonWaitsForTheBudget: a replica whose pod is not ready at the one look after it was killed for its memory is not dead.
func TestAKillThatIsOverSoonWaitsForTheBudget(t *testing.T) {
	w := undecided(t, slices.Repeat([]float64{10}, 40)...)
	w.in.Config.Change.Moves.Rate = shipped()
	w.in.Config.Failover = &config.Failover{After: config.Duration(5 * time.Minute), Settle: config.Duration(10 * time.Minute)}
	for range 120 {
		w.step(time.Minute)
	}
	before, killed, restarts := len(w.on(1)), time.Time{}, 0
	w.shape = func(p *observed.Pod) {
		if p.Replica == 1 {
			p.Restarts, p.OOMKilled, p.KilledAt, p.RestartedAt = restarts, !killed.IsZero(), killed, killed
		}
	}
	killed, restarts, w.down[1] = w.in.Now, 1, true
	for range 10 {
		w.step(time.Minute)
		w.down[1] = false
	}
	if moved := before - len(w.on(1)); moved != 4 {
		t.Errorf("%d of %d clusters left the replica, want the hour's 4", moved, before)
	}
	for range 10 {
		w.down[1] = true // for good
		w.step(time.Minute)
	}
	if left := len(w.on(1)); left > before-4-2 {
		t.Errorf("%d of %d are on it ten minutes after it died", left, before)
	}
}
