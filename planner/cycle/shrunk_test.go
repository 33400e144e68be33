package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

// lose takes Secrets out of what is seen, and answers them.
func (w *world) lose(gone func(name string) bool) []discover.Secret {
	var kept, lost []discover.Secret
	for _, s := range w.in.Discovered.Secrets {
		if gone(s.Name) {
			lost = append(lost, s)
			continue
		}
		kept = append(kept, s)
	}
	w.in.Discovered.Secrets = kept
	return lost
}

// outnumbered is a fleet of 40 in which somebody has 60 Secrets of its own, for longer than an hour.
func outnumbered(t *testing.T) *liveWorld {
	t.Helper()
	w := undecided(t, skewed(40)...)
	for i := range 60 {
		w.add(fmt.Sprintf("own%02d", i), 0)
	}
	w.secret("own07").Pin = "2"
	for range 140 {
		w.step(time.Minute)
	}
	w.known()
	w.step(time.Minute)
	if r := w.in.InForce.Rollout; r != nil || len(w.in.Memory.Known.Clusters) != 100 {
		t.Fatalf("rollout %+v, %d clusters are known, want none and 100", r, len(w.in.Memory.Known.Clusters))
	}
	w.waves, w.counts, w.envs = nil, nil, nil
	return w
}

// refuse deletes most of those Secrets, so that the discovery is refused.
func (w *liveWorld) refuse(t *testing.T) {
	t.Helper()
	w.lose(func(name string) bool { return strings.HasPrefix(name, "own") && name < "own56" })
	w.step(time.Minute)
	if findProblem(w.last, "Shrunk").Kind == "" {
		t.Fatalf("the discovery is believed: %v", problems(w.last))
	}
}

// ofFleet are the clusters on a replica that are not that somebody's.
func (w *liveWorld) ofFleet(replica int) []string {
	return slices.DeleteFunc(w.on(replica), func(name string) bool { return strings.HasPrefix(name, "own") })
}

// stepsUntilEmpty is after how many steps of half a minute the fleet's clusters have left a replica.
func (w *liveWorld) stepsUntilEmpty(replica int) int {
	steps := 0
	for ; steps < 120 && (len(w.ofFleet(replica)) > 0 || w.in.InForce.Rollout != nil); steps++ {
		w.step(30 * time.Second)
	}
	return steps
}

// rowsOf are the rows of the Secrets that are not seen.
func (w *world) rowsOf(gone []string) map[string]plan.Row {
	rows := map[string]plan.Row{}
	for _, name := range gone {
		rows[name] = w.in.InForce.Clusters[name]
	}
	return rows
}

// unseen are the rows' names whose Secret is not seen.
func (w *world) unseen() []string {
	var names []string
	for name := range w.in.InForce.Clusters {
		if w.secret(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestWhoMakesAndDeletesSecretsKeepsNoRescueWaiting: while a discovery is refused, the clusters that are there leave
// a replica that died, or that a person cordoned, in the time that they take otherwise.
func TestWhoMakesAndDeletesSecretsKeepsNoRescueWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		mode     string
		events   func(*liveWorld)
		cordoned []int // what the plan then says
	}{
		"a replica that died":               {plan.ModeLive, func(w *liveWorld) { w.down[2] = true }, nil},
		"a replica that died, mode default": {plan.ModeDefault, func(w *liveWorld) { w.down[2] = true }, nil},
		"a cordoned one": {plan.ModeLive, func(w *liveWorld) {
			w.in.Cordon = fmt.Sprintf("2=%s", w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339))
		}, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			start := func() *liveWorld {
				w := outnumbered(t)
				if c.mode == plan.ModeDefault {
					w.in.Config.Rollout.Live, w.in.Config.Rollout.Default = nil, &config.DefaultRollout{}
				}
				return w
			}
			w := start()
			w.step(time.Minute)
			c.events(w)
			ordinary := w.stepsUntilEmpty(2)

			w = start()
			w.refuse(t)
			gone, before := w.unseen(), w.in.InForce.Clone()
			rows := w.rowsOf(gone)
			c.events(w)
			steps := w.stepsUntilEmpty(2)
			if steps > ordinary || ordinary == 120 || findProblem(w.last, "Shrunk").Kind == "" {
				t.Fatalf("%v are on replica 2 after %d steps, otherwise it is empty after %d; %s", w.ofFleet(2), steps, ordinary, w.last.Progress.Why)
			}
			if diff := cmp.Diff(rows, w.rowsOf(gone)); diff != "" || len(gone) != 56 {
				t.Errorf("the rows of the %d that are gone (-want +got):\n%s", len(gone), diff)
			}
			after := w.in.InForce.Clone()
			before.Cordoned = c.cordoned
			after.Clusters, after.Revision = before.Clusters, before.Revision
			if diff := cmp.Diff(encoded(t, before), encoded(t, after)); diff != "" {
				t.Errorf("what is beside the rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplicasThatPeopleTookAwayAreLeftWhileADiscoveryIsRefused: an autoscaler's shrink leaves nobody's clusters on
// replicas that are gone for longer than it does otherwise, neither while the discovery is refused nor once it is believed.
func TestReplicasThatPeopleTookAwayAreLeftWhileADiscoveryIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		mode string
		wait int // minutes, after which the replicas go
	}{
		"live":                      {plan.ModeLive, 0},
		"default":                   {plan.ModeDefault, 0},
		"live, once it is believed": {plan.ModeLive, 32},
	} {
		t.Run(name, func(t *testing.T) {
			start := func(refused bool) *liveWorld {
				w := outnumbered(t)
				if c.mode == plan.ModeDefault {
					w.in.Config.Rollout.Live, w.in.Config.Rollout.Default = nil, &config.DefaultRollout{}
				}
				w.in.Config.Partition.Replicas, w.in.Config.Partition.MaxReplicas = &config.Replicas{Workload: true}, nil
				w.step(time.Minute)
				if refused {
					w.refuse(t)
				}
				for range c.wait {
					w.step(time.Minute)
				}
				return w
			}
			minutes := func(w *liveWorld) (n int) {
				to := w.in.Workload.Replicas - 1
				w.in.Workload.Replicas, w.in.Workload.ReadyReplicas, w.in.Workload.UpdatedReplicas, w.in.Workload.CurrentReplicas = to, to, to, to
				for ; n < 120; n++ {
					if len(w.ofFleet(to)) == 0 {
						return n
					}
					w.step(time.Minute)
				}
				return n
			}
			ordinary := minutes(start(false))
			w := start(true)
			gone := w.unseen()
			if n := minutes(w); n > ordinary || ordinary > 15 {
				t.Errorf("the fleet's clusters have left the replicas after %d minutes, otherwise after %d: %v", n, ordinary, messages(w.last))
			}
			if diff := cmp.Diff(gone, w.unseen()); diff != "" || len(gone) != 56 {
				t.Errorf("rows of the %d that are gone (-want +got):\n%s", len(gone), diff)
			}
			if one, other := w.carries(0), w.carries(1); max(one, other) > min(one, other)+min(one, other)/10 {
				t.Errorf("the replicas that are left carry %d and %d", one, other)
			}
		})
	}
}

// carries is the load of a replica, by the rows.
func (w *world) carries(replica int) (sum plan.Load) {
	for _, row := range w.in.InForce.Clusters {
		if row.Replica == replica {
			sum += plan.LoadOf(row.Load)
		}
	}
	return sum
}

func encoded(t *testing.T, p plan.Plan) string {
	t.Helper()
	s, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatIsGoneAtOnceLevelsAndScalesNothing: all but a rescue waits until the discovery is believed, and is as
// before then.
func TestWhatIsGoneAtOnceLevelsAndScalesNothing(t *testing.T) {
	elect := func(w *liveWorld) {
		unlevel(w)
		w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
	}
	for name, happen := range map[string]func(*liveWorld){
		"a balance":              elect,
		"a pin beyond":           func(w *liveWorld) { w.in.Pins = plan.Pins{"c000": 5} },
		"a new Secret":           func(w *liveWorld) { w.add("zz-new", 30) },
		"a rollback":             func(w *liveWorld) { w.in.Rollback = &input.Rollback{Revision: 1, Plan: shifted(*w.in.InForce)} },
		"another env":            func(w *liveWorld) { w.in.Config.Partition.MaxReplicas = ptr.To(20) },
		"a Secret that opts out": func(w *liveWorld) { w.secret("c003").Unmanaged = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := outnumbered(t)
			w.refuse(t)
			before, memory := w.in.InForce.Clone(), w.in.Memory
			happen(w)
			for range 28 {
				w.step(time.Minute)
			}
			if !w.in.InForce.SameEnforced(before) || w.in.Workload.Replicas != before.Replicas || findProblem(w.last, "Shrunk").Kind == "" {
				t.Fatalf("the plan changed, or the discovery is believed: %s", w.last.Reason)
			}
			for what, diff := range map[string]string{
				"rows without a Secret": cmp.Diff(memory.Gone, w.in.Memory.Gone),
				"the votes":             cmp.Diff(memory.Votes, w.in.Memory.Votes),
				"the last good values":  cmp.Diff(memory.LastGood, w.in.Memory.LastGood),
			} {
				if diff != "" {
					t.Errorf("%s are remembered otherwise (-want +got):\n%s", what, diff)
				}
			}
			for range 5 {
				w.step(time.Minute)
			}
			if findProblem(w.last, "Shrunk").Kind != "" || w.in.InForce.SameEnforced(before) {
				t.Errorf("nothing happened once the discovery was believed: %v", messages(w.last))
			}
		})
	}
}

// shifted is a plan with each row on the next replica.
func shifted(p plan.Plan) *plan.Plan {
	p = p.Clone()
	for name, row := range p.Clusters {
		row.Replica = (row.Replica + 1) % p.Replicas
		p.Clusters[name] = row
	}
	return &p
}

// TestNoReplicaGoesWhileTheDiscoveryIsRefused: a rollout that is under way ends where it may, also where less than
// half is gone.
func TestNoReplicaGoesWhileTheDiscoveryIsRefused(t *testing.T) {
	timeout := config.Duration(10 * time.Minute)
	for name, rollout := range map[string]config.Rollout{
		plan.ModeLive:    {Live: &config.LiveRollout{MaxMovesPerWave: 5}, StageTimeout: timeout},
		plan.ModeDefault: {Default: &config.DefaultRollout{}, StageTimeout: timeout},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			w.in.Config.Discover.MaxShrink = 25
			for range 70 {
				w.step(time.Minute)
			}
			w.in.Config.Rollout, w.in.Config.Evaluate = rollout, config.Evaluate{None: &config.None{}}
			w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 2}
			w.until(t, "it shrinks", 2*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout != nil && w.in.InForce.Rollout.Replicas == 2 })
			back := w.lose(func(name string) bool { return name < "c008" })
			for range 28 {
				w.step(time.Minute)
				if got := w.in.InForce.Replicas; got != 3 || findProblem(w.last, "Shrunk").Kind == "" {
					t.Fatalf("%d replicas are planned, want the 3 there were; problems %v", got, problems(w.last))
				}
			}
			if r := w.in.InForce.Rollout; r != nil {
				t.Errorf("a rollout of 10 minutes a stage is still under way: %+v", r)
			}
			w.in.Discovered.Secrets = append(back, w.in.Discovered.Secrets...)
			w.until(t, "it shrinks when they are back", 2*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil && w.in.InForce.Replicas == 2 })
		})
	}
}

// halved is a fleet on three replicas, by hand, of which replica 2 has what is to leave it.
func halved(t *testing.T, loads map[string]float64, on map[string]int, capacity string) *liveWorld {
	t.Helper()
	w := newLiveWorld()
	w.in.Config.Partition.Capacity = ptr.To(config.Decimal(capacity))
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		w.add(name, loads[name])
		w.secret(name).Shard = discover.ShardValue{State: discover.ShardValid, N: on[name]}
	}
	never := &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}
	w.in.Config.Evaluate = config.Evaluate{MostWanted: never}
	for range 100 {
		w.step(time.Minute)
	}
	if w.in.InForce.Rollout != nil || w.in.InForce.Replicas != 3 {
		t.Fatalf("it is not at rest on 3 replicas: %+v", w.in.InForce)
	}
	return w
}

// carried is what each replica has by the plan's rows, of those loads.
func (w *world) carried(loads map[string]float64) map[int]float64 {
	sum := map[int]float64{}
	for name, row := range w.in.InForce.Clusters {
		sum[row.Replica] += loads[name]
	}
	return sum
}

// TestWhatIsNotSeenIsCarriedAllTheSame: of a list that is broken, half of the fleet is not seen, and its load stays
// where it is. It grew since the last decision, which its rows are from.
func TestWhatIsNotSeenIsCarriedAllTheSame(t *testing.T) {
	loads := map[string]float64{"a-seen": 10, "b-seen": 30, "c-move": 20, "d-move": 10,
		"e-hidden": 10, "f-hidden": 10, "g-hidden": 10, "h-hidden": 10, "i-hidden": 10}
	on := map[string]int{"a-seen": 0, "b-seen": 1, "c-move": 2, "d-move": 2,
		"e-hidden": 0, "f-hidden": 0, "g-hidden": 0, "h-hidden": 0, "i-hidden": 1}
	w := halved(t, loads, on, "0.67") // 80 of 120
	loads["e-hidden"] = 40            // replica 0 has 80, and replica 1 has 40
	w.setLoad("e-hidden", 40)
	w.step(time.Minute)
	hidden := w.lose(func(name string) bool { return strings.HasSuffix(name, "hidden") })
	w.step(time.Minute)
	w.down[2] = true
	w.until(t, "replica 2 is empty", 20*time.Minute, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
	if findProblem(w.last, "Shrunk").Kind == "" {
		t.Fatalf("the discovery is believed: %v", problems(w.last))
	}
	if diff := cmp.Diff(map[int]float64{0: 80, 1: 70}, w.carried(loads)); diff != "" {
		t.Errorf("what the replicas carry (-want +got):\n%s", diff)
	}
	before := w.in.InForce.Clone()
	w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, hidden...)
	for range 5 {
		w.step(time.Minute)
	}
	if !w.in.InForce.SameEnforced(before) {
		t.Errorf("the plan changed when the list was whole again: %s", w.last.Reason)
	}
}

// TestTheBudgetOfARefusedDiscoveryIsThatOfTheKnownFleet: neither half a list nor whoever deletes Secrets makes it
// another.
func TestTheBudgetOfARefusedDiscoveryIsThatOfTheKnownFleet(t *testing.T) {
	w := undecided(t, skewed(40)...)
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(24 * time.Hour)}}
	for i := range 60 { // of one server, which is one move
		w.add(fmt.Sprintf("own%02d", i), 0)
		w.secret(fmt.Sprintf("own%02d", i)).Server = server("own")
	}
	for range 140 {
		w.step(time.Minute)
	}
	w.known()
	w.step(time.Minute)
	before := w.last.Budget
	w.refuse(t)
	now := w.last.Budget
	now.Next = before.Next // which goes with the time
	if diff := cmp.Diff(before, now); diff != "" || before.Left != 4 {
		t.Errorf("the budget (-want +got), which was %d:\n%s", before.Left, diff)
	}
}

// TestWhatRescuesNobody: an empty list is our own fault far more often than everybody's, and people's word stands.
func TestWhatRescuesNobody(t *testing.T) {
	for name, happen := range map[string]func(*liveWorld){
		"no Secret is seen":  func(w *liveWorld) { w.lose(func(string) bool { return true }) },
		"mode Hold":          func(w *liveWorld) { w.in.Config.Mode = plan.Hold },
		"another workload":   func(w *liveWorld) { w.in.Workload.Name = "other" },
		"enforcement is off": func(w *liveWorld) { w.in.BreakGlass = true },
		"a person paused it": func(w *liveWorld) { w.in.Paused = true },
		"a wave did harm":    func(w *liveWorld) { w.in.Tripped = "it did" },
		"failover is not on": func(w *liveWorld) { w.in.Config.Failover = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := outnumbered(t)
			w.refuse(t)
			happen(w)
			before := w.in.InForce.Clone()
			before.Mode = w.in.Config.Mode // which waits for no list
			w.down[2] = true
			for range 25 {
				w.step(time.Minute)
			}
			if !w.in.InForce.SameEnforced(before) || findProblem(w.last, "Shrunk").Kind == "" {
				t.Errorf("the plan changed, or the discovery is believed: %s; %v", w.last.Reason, messages(w.last))
			}
		})
	}
}

// TestAModeThatHoldsLessWaitsForNoList: who turns ballast down while a discovery is refused is heard at once, also where a plan of before
// was put back; what is turned up waits until the list is believed. The rows stay.
func TestAModeThatHoldsLessWaitsForNoList(t *testing.T) {
	for name, test := range map[string]struct {
		was, asked, want plan.Mode
		deleted          bool
	}{
		"Enforce to Hold":                       {was: plan.Enforce, asked: plan.Hold, want: plan.Hold},
		"Enforce to Observe":                    {was: plan.Enforce, asked: plan.Observe, want: plan.Observe},
		"Hold to Observe":                       {was: plan.Hold, asked: plan.Observe, want: plan.Observe},
		"Hold to Enforce":                       {was: plan.Hold, asked: plan.Enforce, want: plan.Hold},
		"Observe to Enforce":                    {was: plan.Observe, asked: plan.Enforce, want: plan.Observe},
		"Enforce to Observe, the plan deleted":  {was: plan.Enforce, asked: plan.Observe, want: plan.Observe, deleted: true},
		"Enforce to Enforce, the plan deleted":  {was: plan.Enforce, asked: plan.Enforce, want: plan.Enforce, deleted: true},
		"Observe, an enforced plan is put back": {was: plan.Observe, asked: plan.Observe, want: plan.Observe},
	} {
		t.Run(name, func(t *testing.T) {
			w := outnumbered(t)
			w.in.Config.Mode = test.was
			w.step(time.Minute)
			w.refuse(t)
			before := w.in.InForce.Clone()
			if name == "Observe, an enforced plan is put back" {
				before.Mode = plan.Enforce
				back := before.Clone()
				w.in.InForce = &back
			}
			if w.in.Config.Mode = test.asked; test.deleted {
				w.in.Last, w.in.InForce = &before, nil
			}
			w.step(time.Minute)
			if got := w.in.InForce; got.Mode != test.want || !cmp.Equal(got.Clusters, before.Clusters) || got.Replicas != before.Replicas {
				t.Errorf("mode %s, %d replicas, want %s and %d, and the rows as they were: %s", got.Mode, got.Replicas, test.want, before.Replicas, w.last.Reason)
			}
			if findProblem(w.last, "Shrunk").Kind == "" {
				t.Errorf("the discovery is believed: %v", messages(w.last))
			}
		})
	}
}

// TestAModeThatHoldsLessEndsARolloutWhoseListIsGone, but not one that has stopped every replica.
func TestAModeThatHoldsLessEndsARolloutWhoseListIsGone(t *testing.T) {
	for mode, want := range map[string]plan.Mode{plan.ModeLive: plan.Observe, plan.ModeX0Y: plan.Enforce} {
		w := outnumbered(t)
		w.refuse(t)
		under := w.in.InForce.Clone()
		under.Rollout = &plan.Rollout{Mode: mode, Stage: plan.Draining, Since: w.in.Now, From: plan.Count{Replicas: 3, ControllerReplicas: 16}, Replicas: 3, ControllerReplicas: 16}
		w.in.Config.Mode, w.in.InForce = plan.Observe, &under
		out := Run(w.in)
		if waits := findProblem(out, "ModeWaits").Kind != ""; out.Next.Mode != want || (out.Next.Rollout == nil) != (want == plan.Observe) || waits != (want == plan.Enforce) {
			t.Errorf("%s: mode %s, rollout %+v, told to wait: %t, want mode %s", mode, out.Next.Mode, out.Next.Rollout, waits, want)
		}
	}
}

// TestRowsOfWhatIsGoneKeepNoRescueWaiting: once the discovery is believed, the rows stay for an hour, and say
// nothing of what is there.
func TestRowsOfWhatIsGoneKeepNoRescueWaiting(t *testing.T) {
	w := outnumbered(t)
	w.refuse(t)
	w.until(t, "the discovery is believed", time.Hour, func(out outcome.Outcome) bool { return findProblem(out, "Shrunk").Kind == "" })
	w.down[2] = true
	if steps := w.stepsUntilEmpty(2); steps > 30 || len(w.unseen()) != 56 {
		t.Errorf("%v are on replica 2 after %d steps, with %d rows of what is gone: %s", w.ofFleet(2), steps, len(w.unseen()), w.last.Progress.Why)
	}
}

// TestWhoseSecretIsNotSeenIsRemembered: whoever comes back with a list that is whole again is as before.
func TestWhoseSecretIsNotSeenIsRemembered(t *testing.T) {
	w := undecided(t, skewed(24)...)
	for range 70 {
		w.step(time.Minute)
	}
	before := w.in.Memory.Changes.Ownership.Last
	w.lose(func(name string) bool { return name < "c013" })
	for range 10 {
		w.step(time.Minute)
	}
	if diff := cmp.Diff(before, w.in.Memory.Changes.Ownership.Last); diff != "" || len(before) != 24 {
		t.Errorf("who had the %d clusters last (-want +got):\n%s", len(before), diff)
	}
}

// Whatever part of the list is seen when a replica dies: what is not seen keeps its row, and a replica that receives
// more than it may carry, with what is not seen, is told of.
func TestAnyPartOfAListRescuesWithinWhatIsCarried(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		loads, on, total := map[string]float64{}, map[string]int{}, 0.0
		for i := range rapid.IntRange(8, 16).Draw(rt, "clusters") {
			name := fmt.Sprintf("c%03d", i)
			loads[name], on[name] = float64(rapid.IntRange(1, 40).Draw(rt, "load")), i%3
			total += loads[name]
		}
		share := rapid.IntRange(40, 60).Draw(rt, "capacity in percent of the fleet")
		w := halved(t, loads, on, fmt.Sprintf("0.%02d", share))
		seen := rapid.IntRange(1, len(loads)/2-1).Draw(rt, "seen")
		names := rapid.Permutation(slices.Sorted(maps.Keys(loads))).Draw(rt, "order")[:seen]
		w.lose(func(name string) bool { return !slices.Contains(names, name) })
		w.step(time.Minute)
		gone, before := w.unseen(), w.carried(loads)
		rows := w.rowsOf(gone)
		w.down[2] = true
		told := map[string]bool{}
		for range 20 {
			w.step(time.Minute)
			for _, p := range w.last.Problems {
				told[p.Kind+" "+p.Subject] = true
			}
		}
		if diff := cmp.Diff(rows, w.rowsOf(gone)); diff != "" || len(w.on(2)) > 0 || w.in.InForce.Replicas != 3 {
			rt.Fatalf("%v are on the dead replica of %d; the rows of what is not seen (-want +got):\n%s", w.on(2), w.in.InForce.Replicas, diff)
		}
		for replica, load := range w.carried(loads) {
			most := float64(share) / 100 * total
			if load > before[replica] && load > most*1.01 && !told[fmt.Sprintf("BeyondCapacity replica %d", replica)] {
				rt.Fatalf("replica %d carries %v of %v, and nobody is told", replica, load, most)
			}
		}
	})
}
