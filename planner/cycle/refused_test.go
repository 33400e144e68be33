package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/people"
)

// emptied is after how many minutes a replica's clusters are with others; 90: not within that time.
func (w *liveWorld) emptied(replica int) (minutes int) {
	for ; len(w.on(replica)) > 0 && minutes < 90; minutes++ {
		w.step(time.Minute)
	}
	return minutes
}

// TestWhatIsRefusedKeepsNoFailoverWaiting: a proposal that may not begin leaves the turn to what has no replica.
func TestWhatIsRefusedKeepsNoFailoverWaiting(t *testing.T) {
	webhookDown := func(w *liveWorld) { w.in.Enforcement = ptr.To(false) }
	grows := func(w *liveWorld) {
		p := w.in.InForce.Clone()
		p.Replicas = 5
		w.in.Rollback = &input.Rollback{Revision: 1, Plan: &p}
	}
	for name, changes := range map[string][]func(*liveWorld){
		"nothing else": {},
		"a pin beyond the replicas, without the webhook": {webhookDown, func(w *liveWorld) { w.in.Pins = plan.Pins{w.on(0)[0]: 4} }},
		"a rollback that grows, without the webhook":     {webhookDown, grows},
		"a rollback that grows, of what opted out":       {func(w *liveWorld) { w.in.Workload.Unmanaged = true }, grows},
		"live's one restart, of what opted out": {func(w *liveWorld) {
			w.in.Workload.Unmanaged, w.in.Config.Partition.MaxReplicas = true, ptr.To(30)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(12)...)
			for range 30 {
				w.step(time.Minute)
			}
			for _, change := range changes {
				change(w)
			}
			w.down[2] = true
			if minutes := w.emptied(2); minutes > 10 {
				t.Errorf("%v are on the dead replica after %d minutes; problems %v", w.on(2), minutes, problems(w.last))
			}
		})
	}
}

// TestADrainThatWaitsDoesNotRideAlong with a failover, whose failure would hold everything off.
func TestADrainThatWaitsDoesNotRideAlong(t *testing.T) {
	w := undecided(t, skewed(16)...)
	w.in.Config.Partition.MaxReplicas = ptr.To(4)
	w.step(time.Minute)
	w.mute = map[int]bool{0: true}
	w.down[2] = true
	w.in.Cordon = "1=" + w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339)
	before := w.on(1)
	for range 60 {
		w.step(time.Minute)
	}
	if diff := cmp.Diff(before, w.on(1)); diff != "" || !w.in.Memory.HoldOff.IsZero() {
		t.Errorf("held off since %v, on the cordoned replica (-before +after):\n%s", w.in.Memory.HoldOff, diff)
	}
}

// TestTheBudgetIsAShareOfTheKnownFleet: Secrets that somebody makes lift it neither at once nor where they are not ballast's.
func TestTheBudgetIsAShareOfTheKnownFleet(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*discover.Secret)
		later  int // of 24 clusters and ten of 400, two hours on
	}{
		"managed":   {func(*discover.Secret) {}, 3},
		"opted out": {func(s *discover.Secret) { s.Unmanaged = true }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(lognormal(3, 24)...)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
			w.in.Config.Change.Moves.Rate = config.Default().Change.Moves.Rate
			w.run(3)
			before := w.last.Budget.Left
			for i := range 400 {
				cluster := fmt.Sprintf("zz-%03d", i)
				w.add(cluster, 0)
				test.change(w.secret(cluster))
			}
			w.run(59)
			soon := w.last.Budget.Left
			w.run(70)
			if got, want := [3]int{before, soon, w.last.Budget.Left}, [3]int{2, 2, test.later}; got != want {
				t.Errorf("moves that are left at first, within the hour and later: %v, want %v", got, want)
			}
		})
	}
}

// TestPinsThatCannotBeReadAreTold: who writes data.pins while the webhook is away hears of it from the planner alone. Pins beside one
// that cannot be hold; where nothing can be read, what was pinned stays where it is.
func TestPinsThatCannotBeReadAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		pins string
		want []string // of whom, and what
	}{
		"none":             {"", nil},
		"all of them can":  {"c000: 1\nc001: 2\n", nil},
		"no YAML":          {"c000: [1\n", []string{" line 1: is not YAML; write one `cluster-secret: replica` a line"}},
		"a list":           {"- c000: 1\n", []string{" line 1: is not a mapping; write one `cluster-secret: replica` a line"}},
		"one is no number": {"c000: 1\nc001: two\n", []string{"c001 line 2: c001: a replica is a whole number, like 3"}},
		"one is negative": {"c000: 1\nc001: -1\n",
			[]string{"c001 line 2: c001: replica -1 is below 0: a negative shard leaves the cluster without an owner"}},
		"one is there twice": {"c000: 1\nc001: 2\nc000: 2\n", []string{"c000 line 3: c000: is pinned twice: delete one of the lines"}},
		"more than is read": {"c000: 1 #" + strings.Repeat("x", people.MaxPinsBytes),
			[]string{" line 1: has 257 KiB, and at most 256 are read: pin fewer clusters"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, 1, 1)
			w.in.Pins = plan.Pins{"c000": 1, "c001": 2}
			w.run(2)
			w.in.Pins, w.in.PinProblems = people.ParsePins(test.pins, w.in.InForce.MaxReplicas)
			w.run(1)
			var told []string
			for _, p := range w.last.Problems {
				if p.Kind == "PinRefused" {
					said, found := strings.CutPrefix(p.Message, "data.pins: pins")
					if told = append(told, p.Subject+said); !found {
						t.Errorf("people are told %q", p.Message)
					}
				}
			}
			if diff := cmp.Diff(test.want, told); diff != "" {
				t.Errorf("what people are told (-want +got):\n%s", diff)
			}
			if at := [2]int{w.row(t, "c000"), w.row(t, "c001")}; at != [2]int{1, 2} {
				t.Errorf("what was pinned is on %v, want 1 and 2", at)
			}
		})
	}
}

// TestUnknownPinsAreToldOfInTwentyLines: each cycle asks for no more.
func TestUnknownPinsAreToldOfInTwentyLines(t *testing.T) {
	w := newWorld(1, 1, 1)
	w.in.Pins = plan.Pins{}
	for i := range 3000 {
		w.in.Pins[fmt.Sprintf("c%04d", i)] = 1
	}
	w.run(1)
	told := slices.DeleteFunc(messages(w.last), func(m string) bool { return !strings.HasPrefix(m, "PinUnknown") })
	hints := 0
	for _, m := range told {
		if strings.HasSuffix(m, "\" has") {
			hints++
		}
	}
	if len(told) != 21 || hints != 5 || told[20] != "PinUnknown: 2980 more pins name no cluster Secret" {
		t.Errorf("%d problems, %d with a hint, the last is %q", len(told), hints, told[len(told)-1])
	}
}

// long makes a cluster with a name as long as can be.
func (w *world) long(i int) {
	w.add(fmt.Sprintf("zz-%04d-", i)+strings.Repeat("n", 245), 0)
	w.in.Discovered.Secrets[len(w.in.Discovered.Secrets)-1].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
}

// TestObserveBoundsThePlan, too: it must be possible to go back to it.
func TestObserveBoundsThePlan(t *testing.T) {
	w := newWorld(3, 2, 1)
	w.run(2)
	for i := range 3500 {
		w.long(i)
	}
	w.in.Config.Mode = plan.Observe
	w.run(2)
	if _, err := codec.Encode(*w.in.InForce); err != nil || w.in.InForce.Mode != plan.Observe {
		t.Errorf("the plan in mode %s: %v", w.in.InForce.Mode, err)
	}
	if p := findProblem(w.last, "PlanFull"); !strings.HasPrefix(p.Message, "the plan has no room for ") {
		t.Errorf("people are told %q", p.Message)
	}
}

// TestAWaveFitsThePlan, however many moves it may have.
func TestAWaveFitsThePlan(t *testing.T) {
	w := undecided(t, skewed(12)...)
	for i := range 3500 {
		w.long(i)
	}
	w.in.Config.Rollout.Live.MaxMovesPerWave = 300
	w.step(time.Minute)
	w.in.Cordon = "2=" + w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339)
	waves := len(w.waves)
	for range 60 {
		w.step(5 * time.Second)
		if _, err := codec.Encode(*w.in.InForce); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.waves) < waves+2 {
		t.Errorf("%d waves began", len(w.waves)-waves)
	}
}

// TestAServerThatMovesAtOnceFitsThePlan: all of its Secrets stand in it twice meanwhile. What others bring finds room all the same.
func TestAServerThatMovesAtOnceFitsThePlan(t *testing.T) {
	w := undecided(t, skewed(12)...)
	for i := range 3500 {
		w.long(i)
		s := &w.in.Discovered.Secrets[len(w.in.Discovered.Secrets)-1]
		s.Server, s.Shard, s.Created = w.secret("c000").Server, w.secret("c000").Shard, w.in.Now
	}
	w.add("new", 1)
	w.in.Config.Rollout.Live.MaxMovesPerWave = 300
	w.step(time.Minute)
	w.row(t, "new")
	from := w.row(t, "c000")
	w.in.Cordon = fmt.Sprintf("%d=", from) + w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339)
	for range 60 {
		w.step(5 * time.Second)
		if _, err := codec.Encode(*w.in.InForce); err != nil {
			t.Fatal(err)
		}
	}
	if at := w.row(t, "c000"); at == from {
		t.Errorf("c000 is still on the cordoned replica %d: problems %v", at, findProblem(w.last, "BudgetWaits"))
	}
}

// TestAClusterWithoutARowKeepsNothingWaiting, neither an election nor a person.
func TestAClusterWithoutARowKeepsNothingWaiting(t *testing.T) {
	w := newWorld(3, 2, 1)
	w.run(2)
	for i := range 3500 {
		w.long(i)
		w.in.Discovered.Secrets[len(w.in.Discovered.Secrets)-1].Shard = discover.ShardValue{}
	}
	w.in.Pins = plan.Pins{"c000": 3}
	w.run(10) // rows are shorter than the most that is left for them: some more come in the next cycles
	if at := w.row(t, "c000"); at != 3 {
		t.Errorf("the pinned cluster is on replica %d of %d, want 3; problems %v", at, w.in.InForce.Replicas, findProblem(w.last, "Unstamped"))
	}
}

// TestReplicasThatPeopleTookAwayAreFollowed past what nobody may write, once.
func TestReplicasThatPeopleTookAwayAreFollowed(t *testing.T) {
	w := newWorld(lognormal(15, 24)...)
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
	w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
	w.run(5)
	s := &w.in.Discovered.Secrets[0]
	s.Immutable, s.Shard = true, discover.ShardValue{State: discover.ShardValid, N: 2}
	w.in.Pins = plan.Pins{"c003": 2}
	w.run(5)
	w.scale(2)
	w.run(10)
	writes := w.writes
	w.run(60)
	if p := w.in.InForce; p.Replicas != 2 || p.Rollout != nil || w.writes != writes {
		t.Errorf("the plan has %d replicas and was written %d times in an hour, rollout %+v; want 2, once and for all", p.Replicas, w.writes-writes, p.Rollout)
	}
}

// TestWhatNobodyMayWriteKeepsNoFailoverBehindAnAutoscaler: a Secret that carries a replica that an autoscaler took away, and that only
// its people may write, is waited for by nothing that moves others.
func TestWhatNobodyMayWriteKeepsNoFailoverBehindAnAutoscaler(t *testing.T) {
	for name, spoil := range map[string]func(*discover.Secret){
		"nothing":   func(s *discover.Secret) { s.Shard.N = 0 },
		"immutable": func(s *discover.Secret) { s.Immutable = true },
		"unmanaged": func(s *discover.Secret) { s.Unmanaged = true },
		"unmanaged, without a shard": func(s *discover.Secret) {
			s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardAbsent}
		},
		"unmanaged, with a shard too large": func(s *discover.Secret) { // replica 0's, to Argo CD
			s.Unmanaged, s.Shard = true, discover.ShardValue{State: discover.ShardTooLarge}
		},
		"immutable, with a shard too large": func(s *discover.Secret) {
			s.Immutable, s.Shard = true, discover.ShardValue{State: discover.ShardTooLarge}
		},
		"being deleted": func(s *discover.Secret) { s.Deleting = true },
		"pinned there":  func(s *discover.Secret) { s.Pin = "4" },
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			w.in.Config.Failover = &config.Failover{After: config.Duration(5 * time.Minute), Settle: config.Duration(10 * time.Minute)}
			w.in.Config.Partition.Replicas, w.in.Config.Partition.MaxReplicas = &config.Replicas{Workload: true}, nil
			w.scale(5)
			for range 30 {
				w.step(time.Minute)
			}
			w.add("own", 1)
			s := w.secret("own")
			s.Shard = discover.ShardValue{State: discover.ShardValid, N: 4}
			spoil(s)
			for range 90 {
				w.step(time.Minute)
			}
			w.scale(4)
			for range 60 {
				w.step(time.Minute)
			}
			w.down[1] = true
			minutes, writes := 0, w.writes
			for ; minutes < 120 && len(w.on(1)) > 0; minutes++ {
				w.step(time.Minute)
			}
			named := func(m string) bool { return strings.Contains(m, `"own"`) }
			if name != "nothing" && !slices.ContainsFunc(messages(w.last), named) {
				t.Errorf("the Secret is not named: %q", messages(w.last))
			}
			if minutes > 15 || w.writes-writes > 8 {
				t.Errorf("%v are on the dead replica after %d minutes and %d writes of the plan; %v", w.on(1), minutes, w.writes-writes, messages(w.last))
			}
		})
	}
}

// TestNoRowAtRestStandsBeyondTheReplicas, whatever Secrets of one server say.
func TestNoRowAtRestStandsBeyondTheReplicas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(lognormal(rapid.Uint64().Draw(rt, "seed"), 6)...)
		number := rapid.SampledFrom([]int{0, 1, 2, 3, 50, 999999})
		for range rapid.IntRange(1, 12).Draw(rt, "cycles") {
			s := &w.in.Discovered.Secrets[rapid.IntRange(0, 5).Draw(rt, "of")]
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0:
				s.Server = w.in.Discovered.Secrets[rapid.IntRange(0, 5).Draw(rt, "with")].Server
			case 1:
				s.Unmanaged = !s.Unmanaged
			case 2:
				s.Immutable = !s.Immutable
			case 3:
				s.Shard = discover.ShardValue{State: discover.ShardValid, N: number.Draw(rt, "shard")}
			case 4:
				s.Pin = fmt.Sprint(number.Draw(rt, "pin"))
			case 5:
				s.Created = epoch.Add(time.Duration(number.Draw(rt, "age")) * time.Second)
			case 6:
				w.in.Config.Mode = rapid.SampledFrom([]plan.Mode{plan.Observe, plan.Hold, plan.Enforce}).Draw(rt, "mode")
			}
			w.run(1)
			for name, row := range w.in.InForce.Clusters {
				if p := w.in.InForce; p.Rollout == nil && row.Replica >= p.Replicas {
					rt.Fatalf("%s is on replica %d of %d in mode %s", name, row.Replica, p.Replicas, p.Mode)
				}
			}
		}
	})
}

// TestSecretsThatComeAndGoBlindNoRollout: rows of Secrets that were there for minutes say nothing of the fleet, however many
// they are and however often they come.
func TestSecretsThatComeAndGoBlindNoRollout(t *testing.T) {
	w := undecided(t, skewed(12)...)
	for range 90 {
		w.step(time.Minute)
	}
	generation := 0
	comeAndGo := func() {
		generation++
		name := func(i int) string { return fmt.Sprintf("zz-%d-%02d", generation, i) }
		for i := range 14 {
			w.add(name(i), 0)
			w.secret(name(i)).Created = w.in.Now
		}
		w.step(time.Minute)
		for i := range 14 {
			w.remove(name(i))
		}
		w.step(time.Minute)
	}
	for range 3 {
		comeAndGo()
	}
	if rows := len(w.in.InForce.Clusters); rows != 12+3*14 {
		t.Fatalf("%d rows, want the fleet's 12 and 42 of Secrets that went", rows)
	}
	w.down[2] = true
	fleet := func() []string {
		return slices.DeleteFunc(w.on(2), func(name string) bool { return strings.HasPrefix(name, "zz-") })
	}
	minutes := 0
	for ; len(fleet()) > 0 && minutes < 90; minutes++ {
		if minutes%14 == 13 {
			comeAndGo()
		}
		w.step(time.Minute)
	}
	if minutes > 10 {
		t.Errorf("%v are on the dead replica after %d minutes; it waits: %q", fleet(), minutes, w.last.Progress.Why)
	}
}

// TestALossThatIsBelievedBlindsNoRollout: once the discovery is believed, what is gone keeps levelling no longer, though its rows
// stand for another hour.
func TestALossThatIsBelievedBlindsNoRollout(t *testing.T) {
	w := outnumbered(t)
	w.refuse(t)
	for range 32 {
		w.step(time.Minute)
	}
	unlevel(w)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	for range 8 {
		w.step(time.Minute)
	}
	if rows := len(w.in.InForce.Clusters); rows != 100 || findProblem(w.last, "Shrunk").Kind != "" || len(w.waves) == 0 {
		t.Errorf("%d rows, waves %v: %s", rows, w.waves, messages(w.last))
	}
}

// TestReplicasThatComeBackAreLeftNoLonger: an autoscaler that takes replicas away for minutes has nothing leave them once they are back.
func TestReplicasThatComeBackAreLeftNoLonger(t *testing.T) {
	for name, refused := range map[string]bool{"otherwise": false, "while a discovery is refused": true} {
		t.Run(name, func(t *testing.T) {
			w := outnumbered(t)
			w.in.Config.Partition.Replicas, w.in.Config.Partition.MaxReplicas = &config.Replicas{Workload: true}, nil
			w.step(time.Minute)
			if refused {
				w.refuse(t)
			}
			w.scale(1)
			w.step(time.Minute)
			w.step(time.Minute)
			w.scale(3)
			w.step(time.Minute)
			back := [3]int{len(w.on(0)), len(w.on(1)), len(w.on(2))}
			for range 20 {
				w.step(time.Minute)
			}
			if now := [3]int{len(w.on(0)), len(w.on(1)), len(w.on(2))}; now != back || now[1]+now[2] == 0 || w.in.InForce.Replicas != 3 || w.in.InForce.Rollout != nil {
				t.Errorf("clusters by replica were %v when they were back, and are %v; the plan has %d replicas, rollout %+v", back, now, w.in.InForce.Replicas, w.in.InForce.Rollout)
			}
		})
	}
}
