package cycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/belief"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/sim"
)

// stopping is a fleet that rollout.x0y stops for each wish of two groups, and when it did so.
type stopping struct {
	*liveWorld
	started time.Time // the pods
	stops   []time.Time
	backup  input.Inputs // of before the first stop
}

func newStopping() *stopping {
	of, labelled := map[string]int{}, map[string][]string{}
	for i := range 24 {
		of[fmt.Sprintf("c%03d", i)] = i % 3
	}
	labelled["c000"], labelled["c001"] = []string{"one"}, []string{"one"}
	labelled["c004"], labelled["c005"] = []string{"two"}, []string{"two"}
	w := &stopping{liveWorld: &liveWorld{world: grouped(of, labelled, together("one")), history: map[string][]int{}}}
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
	w.in.Config.Change.Restarts = config.Default().Change.Restarts
	w.started = w.in.Now.Add(-300 * time.Hour)
	w.shape = func(p *observed.Pod) { p.Started = w.started }
	return w
}

// lives lets time pass, and notes each stop.
func (w *stopping) lives(d time.Duration) {
	for end := w.in.Now.Add(d); w.in.Now.Before(end); {
		stood := w.in.Workload.Replicas == 0
		if p := w.in.InForce; len(w.stops) == 0 && p != nil && p.Rollout == nil {
			w.backup = w.in
		}
		w.step(time.Minute)
		if w.in.Workload.Replicas > 0 {
			continue
		}
		w.started = w.in.Now.Add(time.Minute)
		if !stood {
			w.stops = append(w.stops, w.in.Now)
		}
	}
}

// TestALostHistoryStopsNoFleetTwiceADay: what a group asks for under rollout.x0y stopped every replica a minute after plan and history
// were lost, or were put back older than that, though the fleet had restarted an hour before, which nobody remembered. The pods tell.
func TestALostHistoryStopsNoFleetTwiceADay(t *testing.T) {
	backedUp := func(w *stopping) { w.in.InForce, w.in.Memory = w.backup.InForce, w.backup.Memory }
	for name, test := range map[string]struct {
		lost   func(*stopping)
		hidden time.Duration // for which nobody sees a pod after that
	}{
		"plan and history": {lost: func(w *stopping) { w.in.InForce, w.in.Memory = nil, memory.Memory{} }},
		"the history":      {lost: func(w *stopping) { w.in.Memory = memory.Memory{} }},
		"all of today":     {lost: backedUp},
		"nothing":          {lost: func(*stopping) {}},
		"plan and history, and no pod is seen for an hour": {func(w *stopping) { w.in.InForce, w.in.Memory = nil, memory.Memory{} }, time.Hour},
		"the history, and no pod is seen at first":         {func(w *stopping) { w.in.Memory = memory.Memory{} }, 90 * time.Second},
		"all of today, and no pod is seen for an hour":     {backedUp, time.Hour},
		"nothing, and no pod is seen for an hour":          {func(*stopping) {}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStopping()
			w.lives(time.Hour)
			if len(w.stops) != 1 || w.row(t, "c000") != w.row(t, "c001") {
				t.Fatalf("%d stops for the first group, want one", len(w.stops))
			}
			w.in.Config.Partition.Groups = append(w.in.Config.Partition.Groups, together("two"))
			test.lost(w)
			w.hidden = test.hidden > 0
			w.lives(test.hidden)
			w.hidden = false
			w.lives(22*time.Hour - test.hidden)
			verdict := ""
			if w.last.Candidate != nil {
				verdict = w.last.Candidate.Verdict
			}
			if len(w.stops) != 1 || !strings.Contains(verdict, "(change.restarts.every is 24h0m0s)") {
				t.Fatalf("%d stops within the day, at %v, and people are told %q; want one, and what waits", len(w.stops), w.stops, verdict)
			}
			w.lives(3 * time.Hour)
			if len(w.stops) != 2 || w.row(t, "c004") != w.row(t, "c005") {
				t.Fatalf("%d stops after the day, want two, and the second group together", len(w.stops))
			}
			if apart := w.stops[1].Sub(w.stops[0]); apart < 24*time.Hour || apart > 24*time.Hour+10*time.Minute {
				t.Errorf("the stops are %s apart, want a day", apart)
			}
		})
	}
}

// TestABackupOfJustBeforeAStopStopsNoFleetAgain, though it is younger than what a leader who takes over may find.
func TestABackupOfJustBeforeAStopStopsNoFleetAgain(t *testing.T) {
	for name, hidden := range map[string]time.Duration{"the pods are seen": 0, "no pod is seen at first": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newStopping()
			for len(w.stops) == 0 || w.in.InForce.Rollout != nil {
				w.lives(time.Minute)
			}
			age := w.in.Now.Sub(w.backup.Now)
			if age < 3*time.Minute || age > 15*time.Minute {
				t.Fatalf("the backup is of %s ago, want some minutes", age)
			}
			w.in.InForce, w.in.Memory, w.hidden = w.backup.InForce, w.backup.Memory, hidden > 0
			w.lives(hidden)
			w.hidden = false
			w.lives(23 * time.Hour)
			if len(w.stops) != 1 {
				t.Errorf("stops at %v, want one within a day", w.stops)
			}
		})
	}
}

// TestPodsThatNobodySeesEndNoLevelling: what levels waits a day for pods that can never be listed, and says what for.
func TestPodsThatNobodySeesEndNoLevelling(t *testing.T) {
	w := newStopping()
	w.hidden = true
	w.lives(23 * time.Hour)
	const want = "waits until a pod is seen, since every replica restarts for it, and nobody saw whether they just did " +
		"(change.restarts.every is 24h0m0s); rollout.live restarts none"
	if len(w.stops) != 0 || w.last.Candidate == nil || w.last.Candidate.Verdict != want {
		t.Fatalf("%d stops, people are told %+v", len(w.stops), w.last.Candidate)
	}
	if said := findProblem(w.last, "PodsUnseen").Message; said != "pods cannot be listed: forbidden" {
		t.Errorf("of the pods people are told %q", said)
	}
	w.lives(2 * time.Hour)
	if len(w.stops) != 1 {
		t.Errorf("%d stops after a day in which ballast restarted nothing, want one", len(w.stops))
	}
}

// TestAFleetThatBallastNeverHeldWaitsForNoRestart: people's restart of before ballast came is not its own, and pods that run since long
// ago show none.
func TestAFleetThatBallastNeverHeldWaitsForNoRestart(t *testing.T) {
	for name, found := range map[string]func(*stopping){
		"Secrets without a shard": func(w *stopping) {
			for i := range w.in.Discovered.Secrets {
				w.in.Discovered.Secrets[i].Shard = discover.ShardValue{}
			}
			w.started = w.in.Now.Add(-time.Hour)
		},
		"one pod older than a day": func(w *stopping) {
			w.shape = func(p *observed.Pod) { p.Started = w.in.Now.Add(-time.Hour * time.Duration(1+12*p.Replica)) }
		},
		"pods that do not say when they started": func(w *stopping) { w.shape = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newStopping()
			found(w)
			w.step(time.Minute)
			if at := w.in.Memory.Changes.Restarted; !at.IsZero() && at.Before(w.in.Now) {
				t.Errorf("a restart at %s counts, want none of before", at)
			}
		})
	}
}

// TestWhatPodsShowOfARestart: whatever pods began anew since, no restart of all of them within the day is missed, and none counts where a
// pod runs for longer.
func TestWhatPodsShowOfARestart(t *testing.T) {
	const day = 24 * time.Hour
	rapid.Check(t, func(t *rapid.T) {
		in := input.Inputs{Now: epoch, Config: sim.Config(), Workload: sim.Workload()}
		in.Config.Change.Restarts.Every = config.Duration(day)
		ago := func(from, to time.Duration, label string) time.Duration {
			return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, label))
		}
		restart, told := ago(0, day-1, "restart"), false
		for i := range rapid.IntRange(1, 8).Draw(t, "pods") {
			p := observed.Pod{Replica: i}
			if rapid.IntRange(0, 5).Draw(t, "runs") > 0 {
				p.Started, told = epoch.Add(-ago(-2*time.Hour, restart, "started")), true
			}
			in.Observed.Pods = append(in.Observed.Pods, p)
		}
		at := belief.ShownRestart(in)
		if at.IsZero() == told {
			t.Fatalf("of %+v a restart at %s shows", in.Observed.Pods, at)
		}
		if told && (at.Before(epoch.Add(-restart)) || at.After(epoch)) {
			t.Fatalf("a restart %s ago shows as %s", restart, at)
		}
		in.Observed.Pods = append(in.Observed.Pods, observed.Pod{Replica: 9, Started: epoch.Add(-ago(day, 100*day, "old"))})
		if at := belief.ShownRestart(in); !at.IsZero() {
			t.Fatalf("beside a pod of before a restart at %s shows", at)
		}
		in.Workload.UpdatedReplicas-- // pods are still being replaced
		if at := belief.ShownRestart(in); !at.Equal(epoch) {
			t.Fatalf("a restart that goes on shows as %s", at)
		}
	})
}
