package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// TestWhatNobodyCanWriteStaysWithTheAlgorithm: a Secret without a shard whose writes the API server refuses has its cluster where Argo
// CD's algorithm has it, and the plan says so, whatever is levelled beside it. Once it can be written its first shard is that replica. Found by a
// crash run of seed 20261127: the plan moved such a cluster, and half a minute later its first shard was not its owner.
func TestWhatNobodyCanWriteStaysWithTheAlgorithm(t *testing.T) {
	for name, partition := range map[string]config.Partition{
		"lpt":    {LPT: &config.LPT{}},
		"sticky": {Sticky: config.Default().Partition.Sticky},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(20, 25, 30, 3, 15)
			w.in.Config.Partition = partition
			for name, at := range map[string]int{"c001": 1, "c002": 0, "c003": 2, "c004": 1} {
				w.secret(name).Shard = discover.ShardValue{State: discover.ShardValid, N: at}
			}
			w.refuses, w.in.Barred = map[string]bool{"c000": true}, map[string]string{"c000": "a policy refuses it"}
			var rows []int
			for range 60 {
				w.run(1)
				rows = append(rows, w.row(t, "c000"))
			}
			if diff := cmp.Diff([]int{1}, slices.Compact(rows)); diff != "" { // which is its UID's
				t.Errorf("the rows of what nobody can write (-want +got):\n%s", diff)
			}
			if got := w.row(t, "c001"); got != 2 {
				t.Errorf("what stood beside it is on replica %d, want 2", got)
			}
			w.refuses, w.in.Barred = nil, nil
			w.run(1)
			if diff := cmp.Diff(discover.ShardValue{State: discover.ShardValid, N: 1}, w.secret("c000").Shard); diff != "" {
				t.Errorf("its first shard (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoLevellingMovesWhatNobodyCanWrite, whatever else there is.
func TestNoLevellingMovesWhatNobodyCanWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.SliceOfN(rapid.Float64Range(1, 40), 4, 9).Draw(t, "loads")...)
		w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}
		if rapid.Bool().Draw(t, "sticky") {
			w.in.Config.Partition.LPT, w.in.Config.Partition.Sticky = nil, config.Default().Partition.Sticky
		}
		for i := range w.in.Discovered.Secrets[1:] {
			w.in.Discovered.Secrets[i+1].Shard = discover.ShardValue{State: discover.ShardValid, N: rapid.IntRange(0, 2).Draw(t, "shard")}
		}
		w.refuses, w.in.Barred = map[string]bool{"c000": true}, map[string]string{"c000": "a policy refuses it"}
		for range 40 {
			w.run(1)
			if at := w.in.InForce.Clusters["c000"].Replica; at != 1 {
				t.Fatalf("its row is on replica %d, and its owner 1", at)
			}
		}
	})
}

// TestARowThatNobodyCanWriteStartsNoRollout: a pin that is taken away leaves the row beside the owner. It goes back there, and stops no
// replica for a Secret that nobody writes; once somebody can, its first shard is its owner's, under x0y too. Found by a crash run of seed
// 20261128: a Secret that was refused for seven minutes amid x0y's restart was written to a replica that did not have its cluster.
func TestARowThatNobodyCanWriteStartsNoRollout(t *testing.T) {
	w := newWorld(10, 10, 10, 10, 10, 10)
	w.in.Config.Partition = config.Partition{Sticky: config.Default().Partition.Sticky}
	w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
	for i, at := range []int{1, 0, 2, 1, 2, 0} {
		w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: at}
	}
	w.secret("c000").Shard = discover.ShardValue{State: discover.ShardAbsent}
	w.refuses, w.in.Barred = map[string]bool{"c000": true}, map[string]string{"c000": "a policy refuses it"}
	w.in.Pins = plan.Pins{"c000": 0}
	w.run(20)
	if at := w.row(t, "c000"); at != 0 {
		t.Fatalf("the pinned row is on replica %d, want 0", at)
	}
	w.in.Pins = nil
	for range 60 {
		seen := map[string]ownership.ClusterObservation{}
		for i, at := range []int{1, 0, 2, 1, 2, 0} {
			seen[fmt.Sprintf("c%03d", i)] = ownership.ClusterObservation{Owners: []int{at}, Live: []int{at}, Apps: 1}
		}
		w.in.Observed = input.Observed{Known: true, Reported: ownership.Observation{Asked: true, Clusters: seen}}
		w.run(1)
		if c := w.last.Candidate; c != nil && strings.Contains(c.Verdict, "a rule asks for") {
			t.Fatalf("the candidate: %s", c.Verdict)
		}
		if at := w.row(t, "c000"); at != 1 || w.in.InForce.Rollout != nil {
			t.Fatalf("its row is on replica %d, and its owner is 1; %+v", at, w.in.InForce.Rollout)
		}
	}
	w.refuses, w.in.Barred = nil, nil
	w.run(1)
	if diff := cmp.Diff(discover.ShardValue{State: discover.ShardValid, N: 1}, w.secret("c000").Shard); diff != "" {
		t.Errorf("its first shard (-want +got):\n%s", diff)
	}
}

// TestARowThatNobodyCanWriteGoesHome: in mode live the row that a pin left beside the owner goes back to that, without a rollout, once the
// owner says itself that it has the cluster, and no other pod is silent. Its first shard, when it can be written, would take the cluster from its owner otherwise. While that
// pod is silent nothing is guessed.
func TestARowThatNobodyCanWriteGoesHome(t *testing.T) {
	w := undecided(t, skewed(24)...)
	name := w.on(1)[0]
	w.unwritable(name, -1, 1)
	w.in.Pins = plan.Pins{name: 0}
	w.minutes(20)
	pinned := w.row(t, name)
	w.in.Pins, w.mute = nil, map[int]bool{1: true}
	w.minutes(5)
	if at := w.row(t, name); pinned != 0 || at != pinned {
		t.Fatalf("its row is on replica %d while its owner is silent, and was pinned to %d; want 0 and 0", at, pinned)
	}
	w.mute = nil
	w.minutes(5)
	writes := w.writes
	for minute := range 40 {
		w.mute = map[int]bool{1: minute%2 == 1}
		w.step(time.Minute)
		if at := w.row(t, name); at != 1 || w.in.InForce.Rollout != nil {
			t.Fatalf("its row is on replica %d, want 1; %+v", at, w.in.InForce.Rollout)
		}
	}
	if w.writes != writes {
		t.Errorf("%d plans are written at rest", w.writes-writes)
	}
	w.refuses, w.in.Barred, w.mute = nil, nil, nil
	w.step(time.Minute)
	if diff := cmp.Diff(discover.ShardValue{State: discover.ShardValid, N: 1}, w.secret(name).Shard); diff != "" {
		t.Errorf("its first shard (-want +got):\n%s", diff)
	}
}

// TestARowStaysWhereNobodyIsSureOfTheOwner: each of these alone keeps the row beside the owner, and once it is over the row goes home,
// which is no move.
func TestARowStaysWhereNobodyIsSureOfTheOwner(t *testing.T) {
	for name, unsure := range map[string]func(w *liveWorld, is bool){
		"another pod is silent": func(w *liveWorld, is bool) { w.mute = map[int]bool{2: is} },
		"Prometheus alone says it of the owner": func(w *liveWorld, is bool) {
			w.says = func(o *ownership.Observation) { o.Pods[1].Quoted = is }
		},
		"pods are being replaced": func(w *liveWorld, is bool) {
			w.in.Workload.UpdatedReplicas = w.in.Workload.Replicas
			if is {
				w.in.Workload.UpdatedReplicas--
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			name := w.on(1)[0]
			w.unwritable(name, -1, 1)
			w.in.Pins = plan.Pins{name: 0}
			w.minutes(20)
			w.in.Pins = nil
			unsure(w, true)
			for range 25 { // a cluster that was pinned counts once a day
				w.step(time.Hour)
			}
			moves := w.in.Memory.Changes.Ledger
			if at := w.row(t, name); at != 0 {
				t.Fatalf("its row is on replica %d, want 0 yet", at)
			}
			unsure(w, false)
			w.minutes(10)
			if at := w.row(t, name); at != 1 {
				t.Errorf("its row is on replica %d, want 1", at)
			}
			if diff := cmp.Diff(moves, w.in.Memory.Changes.Ledger); diff != "" {
				t.Errorf("what counts as moved (-before +after):\n%s", diff)
			}
		})
	}
}

// TestARollbackLeavesWhatNobodyCanWrite: the row of such a Secret goes home, so that one that a rollback moved would begin it anew each time it
// ended, under x0y with a stop of every replica. The Secret is named, and the rollback is done.
func TestARollbackLeavesWhatNobodyCanWrite(t *testing.T) {
	late := config.Duration(10 * time.Minute)
	for mode, rollout := range map[string]config.Rollout{
		"live":    {},
		"x0y":     {X0Y: &config.X0YRollout{}, StageTimeout: late},
		"default": {Default: &config.DefaultRollout{}, StageTimeout: late},
	} {
		t.Run(mode, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			if mode != "live" {
				w.in.Config.Rollout = rollout
				w.minutes(60)
			}
			name := w.on(1)[0]
			w.unwritable(name, -1, 1)
			w.in.Pins = plan.Pins{name: 0}
			w.minutes(20)
			pinned := w.in.InForce.Clone()
			w.in.Pins = nil
			w.minutes(5)
			if was, at := pinned.Clusters[name].Replica, w.row(t, name); was != 0 || at != 1 {
				t.Fatalf("its row was on replica %d and is on %d, want 0 and 1", was, at)
			}
			w.in.Rollback = &input.Rollback{Revision: 7, Plan: &pinned}
			out := w.until(t, "the rollback is done", time.Hour, func(out outcome.Outcome) bool { return out.Done })
			var said []string
			for _, p := range out.Problems {
				if p.Kind == "RollbackSkips" {
					said = append(said, p.Message)
				}
			}
			want := []string{"of what is to go back to revision 7, " + name + " stay: ballast cannot write their Secrets, or one that they stay together with"}
			if diff := cmp.Diff(want, said); diff != "" || w.in.InForce.Rollout != nil {
				t.Errorf("told (-want +got):\n%s; %+v", diff, w.in.InForce.Rollout)
			}
			w.in.Rollback = nil
			w.minutes(30)
			if at := w.row(t, name); at != 1 || w.in.InForce.Rollout != nil {
				t.Errorf("its row is on replica %d, want 1; %+v", at, w.in.InForce.Rollout)
			}
		})
	}
}

// TestAGuessMovesNoTwin: of two Secrets of a server nobody can write one, which names no replica, and the pods have the server where
// the other one says. While that replica is silent Argo CD's algorithm alone says where the first would be, and that is a guess: it moves
// neither. Before, the next cycle had both rows where the algorithm has the one, without a rollout, whether frozen or tripped.
func TestAGuessMovesNoTwin(t *testing.T) {
	for name, away := range map[string]func(w *liveWorld){
		"its replica starts again": func(w *liveWorld) { w.down[1] = true },
		"its replica keeps silent": func(w *liveWorld) { w.mute = map[int]bool{1: true} },
		"nobody can list pods":     func(w *liveWorld) { w.hidden = true },
		"it has no Application":    func(w *liveWorld) { w.idle = map[string]bool{w.on(1)[0]: true, "twin-" + w.on(1)[0] + "-000": true} },
		"a freeze is on":           func(w *liveWorld) { w.down[1], w.in.Paused = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			stuck := w.on(1)[0]
			twin := "twin-" + stuck + "-000"
			w.twin(stuck, 1)
			w.minutes(5)
			w.unwritable(stuck, -1, 0)
			for k := 0; k < 100 && w.placed[stuck] != 0 || k == 0; k++ {
				w.secret(stuck).UID = fmt.Sprint("uid-", k)
				w.byAlgorithm()
			}
			w.serve()
			w.serves[w.secret(stuck).Server] = twin // whose Secret the pods saw last
			w.minutes(5)
			want := map[string]int{stuck: 1, twin: 1, "the shard of " + twin: 1}
			rows := func() map[string]int {
				c := w.in.InForce.Clusters
				return map[string]int{stuck: c[stuck].Replica, twin: c[twin].Replica, "the shard of " + twin: w.secret(twin).Shard.N}
			}
			if diff := cmp.Diff(want, rows()); diff != "" {
				t.Fatalf("beforehand (-want +got):\n%s", diff)
			}
			away(w)
			for range 3 {
				w.step(30 * time.Second)
				if diff := cmp.Diff(want, rows()); diff != "" {
					t.Fatalf("a cycle later (-want +got):\n%s", diff)
				}
			}
		})
	}
}
