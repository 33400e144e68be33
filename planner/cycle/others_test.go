package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"ballast/planner/change"
	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// TestAClusterThatNobodyGetsKeepsOthersForAnHour: one that had an owner and has none may be a wave's doing, so nothing levels; after an
// hour it is its own people's, whatever they did. Where they are many, something is wrong with the fleet, however old it is.
func TestAClusterThatNobodyGetsKeepsOthersForAnHour(t *testing.T) {
	type course struct{ AfterMinutes, AfterHours, TurnedBack, Orphaned bool }
	for name, test := range map[string]struct {
		broken []string
		want   course
	}{
		"none":             {nil, course{AfterMinutes: true, AfterHours: true}},
		"one":              {[]string{"c003"}, course{AfterHours: true, Orphaned: true}},
		"a tenth":          {[]string{"c003", "c004"}, course{AfterHours: true, Orphaned: true}},
		"more than tenths": {[]string{"c003", "c004", "c005"}, course{Orphaned: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			w.breaks(test.broken...)
			for range 15 {
				w.step(time.Minute)
			}
			w.imbalanced()
			w.in.Config.Evaluate = config.Evaluate{None: &config.None{}}
			var got course
			for minute := range 150 {
				before := len(w.moved())
				out := w.step(time.Minute)
				got.TurnedBack = got.TurnedBack || strings.Contains(out.Reason, "turned back")
				got.Orphaned = got.Orphaned || strings.Contains(strings.Join(problems(out), " "), "ownership/Orphaned/c003")
				switch moved := len(w.moved()) > before; {
				case moved && minute < 40:
					got.AfterMinutes = true
				case moved:
					got.AfterHours = true
				}
			}
			if test.broken == nil { // done by then
				got.AfterHours = true
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what began (-want +got):\n%s\n%v", diff, messages(w.last))
			}
		})
	}
}

// TestNoWaveWaitsForAClusterThatNobodyGets: each one with it in waited its deadline out and was turned back, everybody's clusters with
// it, and began anew.
func TestNoWaveWaitsForAClusterThatNobodyGets(t *testing.T) {
	for name, test := range map[string]struct {
		minutes int
		spoil   func(w *liveWorld, name string)
	}{
		"for an hour": {75, func(*liveWorld, string) {}},
		"whose server has a second Secret that cannot be read": {10, func(w *liveWorld, name string) {
			w.twin(name, 1)
			w.secret("twin-"+name+"-000").Unread, w.secret("twin-"+name+"-000").Unmanaged = true, true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			broken := w.on(2)[0]
			test.spoil(w, broken)
			w.breaks(broken)
			for range test.minutes {
				w.step(time.Minute)
			}
			w.in.Cordon = "2=" + w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339)
			w.until(t, "replica 2 is empty, and all is at rest", 8*time.Minute, func(outcome.Outcome) bool {
				return len(w.of(2)) == 0 && w.in.InForce.Rollout == nil
			})
			if !w.in.Memory.HoldOff.IsZero() {
				t.Errorf("a rollout failed, want none: held off since %s", w.in.Memory.HoldOff)
			}
			if row := w.row(t, broken); row == 2 {
				t.Errorf("the cluster that nobody got is planned on replica %d, want another than the cordoned 2", row)
			}
		})
	}
}

// TestNoWaveIsBlamedForARestartOfTomorrow: a node whose clock is ahead, or who writes a pod's status, dates a restart ahead that was
// before the waves. Each wave that came to its replica was turned back for it, and three in a day tripped ballast.
func TestNoWaveIsBlamedForARestartOfTomorrow(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"by hours": 6 * time.Hour, "by minutes, which pass during the waves": 4 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			for range 30 {
				w.step(time.Minute)
			}
			at := w.in.Now.Add(ahead)
			w.shape = func(p *observed.Pod) {
				if p.Replica != 2 {
					p.Restarts, p.RestartedAt = 1, at
				}
			}
			w.step(time.Minute)
			w.in.Cordon = "2=" + w.in.Now.Add(5*time.Hour).UTC().Format(time.RFC3339)
			w.until(t, "replica 2 is empty, and all is at rest", 30*time.Minute, func(out outcome.Outcome) bool {
				if out.Progress.Outcome == rollout.TurnedBack {
					t.Fatalf("turned back: %v", out.Progress)
				}
				return len(w.of(2)) == 0 && w.in.InForce.Rollout == nil
			})
		})
	}
}

// breaks has nobody get those clusters any more, in a way that ballast does not know of.
func (w *liveWorld) breaks(names ...string) {
	for _, name := range names {
		w.taken[name] = true
	}
}

// TestTwinsThatCannotBeReadHideNoOrphan: one of each of others' servers, opted out, with data.config that Argo CD cannot read. What a
// wave then leaves without an owner, because its receivers take nothing up, is waited for and taken back as without them.
func TestTwinsThatCannotBeReadHideNoOrphan(t *testing.T) {
	for name, twins := range map[string]int{"none": 0, "of a few": 3, "of all": 40} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			for range 90 {
				w.step(time.Minute)
			}
			leaving := w.on(2)
			for i := range twins {
				of := fmt.Sprintf("c%03d", i)
				w.twin(of, 1)
				twin := w.secret(fmt.Sprintf("twin-%s-000", of))
				twin.Unread, twin.Unmanaged = true, true
				w.breaks(twin.Name)
			}
			w.step(time.Minute)
			w.in.Cordon = "2=" + w.in.Now.Add(24*time.Hour).UTC().Format(time.RFC3339)
			back, most := false, 0
			for range 40 {
				out := w.step(30 * time.Second)
				nobodys := 0
				for _, name := range leaving {
					if w.taken[name] = w.secret(name).Shard.N != 2; w.taken[name] {
						nobodys++
					}
				}
				back = back || out.Progress.Outcome == rollout.TurnedBack
				most = max(most, nobodys)
			}
			if !back || most > 5 { // a wave
				t.Errorf("turned back: %t, at most %d clusters without an owner, want one wave's 5 that go back: %v", back, most, messages(w.last))
			}
		})
	}
}

// TestAKillIsJudgedAsItWasSeen: a node whose clock is ahead dates one of before a wave behind it, and one of the wave's so late that it
// seemed to be nobody's.
func TestAKillIsJudgedAsItWasSeen(t *testing.T) {
	for name, test := range map[string]struct {
		ahead  time.Duration
		before bool // the kill was before the wave
		trips  bool
	}{
		"before the wave, dated into it": {25 * time.Minute, true, false},
		"by the wave, dated long after":  {20 * time.Minute, false, true},
		"by the wave, by a good clock":   {0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			for range 30 {
				w.step(time.Minute)
			}
			kill := func(replica int) {
				at := w.in.Now.Add(test.ahead)
				w.shape = func(p *observed.Pod) {
					if p.Replica == replica || replica < 0 && p.Replica != 2 {
						p.Restarts, p.RestartedAt, p.OOMKilled, p.KilledAt = 1, at, true, at
					}
				}
			}
			if test.before {
				kill(-1)
				for range 17 { // they were unwell
					w.step(time.Minute)
				}
			}
			moves := w.on(2)[0]
			w.in.Cordon = "2=" + w.in.Now.Add(2*time.Minute).UTC().Format(time.RFC3339)
			w.until(t, "a cluster moved", 10*time.Minute, func(outcome.Outcome) bool { return w.row(t, moves) != 2 && w.in.InForce.Rollout == nil })
			if !test.before {
				kill(w.row(t, moves))
			}
			for range 8 {
				w.step(time.Minute)
			}
			if trip := w.in.Memory.Changes.Trip; (trip != nil) != test.trips || trip != nil && trip.Reason != harm.OOMKilled {
				t.Errorf("tripped: %+v, want it: %t; %v", trip, test.trips, messages(w.last))
			}
		})
	}
}

// TestATripKeepsNobodyOnADeadReplica, unless it was for memory: whoever breaks a cluster of his own just after a wave stops levelling by
// it, and no failover.
func TestATripKeepsNobodyOnADeadReplica(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(w *liveWorld, received int)
		stay bool // clusters are on the dead replica after 40 minutes
		told string
	}{
		"a cluster without an owner": {func(w *liveWorld, _ int) { w.breaks("c000") }, false, "Tripped: nothing moves and nothing scales any more, but off replicas that are unwell: cluster "},
		"memory, as an older version noted it": {func(w *liveWorld, received int) {
			w.in.Memory.Changes.Trip = &harm.Trip{At: w.in.Now, Reason: harm.OOMKilled, Why: "pod \"controller-0\" was killed for its memory"}
		}, true, "Tripped: nothing moves and nothing scales any more: pod "},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			for range 30 {
				w.step(time.Minute)
			}
			moves := w.on(2)[0]
			w.in.Cordon = "2=" + w.in.Now.Add(2*time.Minute).UTC().Format(time.RFC3339)
			w.until(t, "a cluster moved", 10*time.Minute, func(outcome.Outcome) bool { return w.row(t, moves) != 2 && w.in.InForce.Rollout == nil })
			test.harm(w, w.row(t, moves))
			for range 6 {
				w.step(time.Minute)
			}
			if told := strings.Join(messages(w.last), "; "); !strings.Contains(told, test.told) {
				t.Fatalf("told %q, want %q", told, test.told)
			}
			dead := 0
			if dead == w.row(t, moves) && w.shape != nil {
				dead = 1
			}
			before := len(w.on(dead))
			w.down[dead] = true
			for range 40 {
				w.step(time.Minute)
			}
			if left := len(w.on(dead)); left != 0 && !test.stay || left != before && test.stay {
				t.Errorf("%d of %d clusters are on the dead replica, want them to stay: %t; %v", left, before, test.stay, messages(w.last))
			}
		})
	}
}

// TestNobodysPinsKeepAFailoverWaiting: each pin beyond the replicas began a rollout, and what happened meanwhile said nothing of a replica,
// nor for ten minutes after it.
func TestNobodysPinsKeepAFailoverWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		pinned bool
		keep   int // minutes that a pin stays
	}{"no pin": {}, "a pin": {true, 1000}, "one pin after the other": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			w.add("own", 0)
			w.idle = map[string]bool{"own": true}
			for range 30 {
				w.step(time.Minute)
			}
			w.down[1] = true
			begun, since := w.in.Now, w.in.Now
			w.until(t, "replica 1 is empty", 8*time.Minute, func(out outcome.Outcome) bool {
				own, p := w.secret("own"), w.in.InForce
				switch {
				case test.pinned && p.Rollout == nil && own.Pin == "":
					own.Pin, since = fmt.Sprint(p.Replicas), w.in.Now
				case w.in.Now.Sub(since) >= time.Duration(test.keep)*time.Minute:
					own.Pin = ""
				}
				if told := strings.Join(messages(out), "; "); test.keep == 1000 && w.in.Now.Sub(begun) > 3*time.Minute && len(w.on(1)) == 12 &&
					!strings.Contains(told, `"own" is pinned to replica 3, and there are 3: it waits until what is on a replica that does not work has left it`) {
					t.Fatalf("told %q", told)
				}
				return len(w.on(1)) == 0
			})
		})
	}
}

// TestASecretsPinStopsTheFleetOnceADay: x0y stops every replica for a pin beyond them, and whoever writes one Secret could ask for the next
// one each time. A pin of data.pins is a person's word.
func TestASecretsPinStopsTheFleetOnceADay(t *testing.T) {
	for name, test := range map[string]struct {
		pin  func(w *liveWorld, to int)
		want int // stops within a day
	}{
		"of a Secret":  {func(w *liveWorld, to int) { w.secret("own").Pin = fmt.Sprint(to) }, 1},
		"of data.pins": {func(w *liveWorld, to int) { w.in.Pins = plan.Pins{"own": to} }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLiveWorld(skewed(40)...)
			w.in.Config.Rollout = config.Rollout{X0Y: &config.X0YRollout{}, StageTimeout: config.Duration(10 * time.Minute)}
			w.in.Config.Change.Moves.Rate = shipped()
			w.in.Config.Partition.MaxReplicas = ptr.To(6)
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 10_000}} // levels nothing
			w.add("own", 0)
			w.idle = map[string]bool{"own": true}
			for range 60 {
				w.step(time.Minute)
			}
			stops, stood := 0, false
			for range 23 * 60 {
				if p := w.in.InForce; p.Rollout == nil && p.Replicas < 6 {
					test.pin(w, p.Replicas)
				}
				w.step(time.Minute)
				if none := w.in.Workload.Replicas == 0; none != stood {
					if stood = none; none {
						stops++
					}
				}
			}
			if stops != test.want {
				t.Errorf("the fleet was stopped %d times, want %d: %v", stops, test.want, messages(w.last))
			}
		})
	}
}

// TestAnIllnessTakesNoFleetAlong: a cluster that its replica is killed of goes on to the next one by a failover, and half of the fleet
// with it. Each cluster goes once a day, and what comes after waits for the budget.
func TestAnIllnessTakesNoFleetAlong(t *testing.T) {
	for name, mode := range map[string]config.Rollout{
		"live":    {Live: &config.LiveRollout{MaxMovesPerWave: 5, Nudge: true}},
		"default": {Default: &config.DefaultRollout{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, slices.Repeat([]float64{10}, 40)...)
			w.in.Config.Change.Moves.Rate, w.in.Memory.Changes.Ledger = shipped(), nil
			mode.StageTimeout = config.Duration(10 * time.Minute)
			w.in.Config.Rollout = mode
			for range 90 {
				w.step(time.Minute)
			}
			came, at, restarts, killed := w.in.Now.Add(-time.Hour), w.row(t, "c000"), map[int]int{}, map[int]time.Time{}
			w.shape = func(p *observed.Pod) {
				p.Restarts, p.OOMKilled = restarts[p.Replica], !killed[p.Replica].IsZero()
				p.KilledAt, p.RestartedAt = killed[p.Replica], killed[p.Replica]
			}
			moves, last := 0, map[string]int{}
			for minute := range 24 * 60 {
				if to := w.secret("c000").Shard.N; to != at {
					at, came = to, w.in.Now
				}
				clear(w.down)
				if w.in.Now.Sub(came) >= 20*time.Minute { // longer than a wave is watched
					if minute%4 == 0 {
						restarts[at]++
						killed[at] = w.in.Now
					}
					w.down[at] = minute%4 != 3
				}
				w.step(time.Minute)
				for _, s := range w.in.Discovered.Secrets {
					if was, known := last[s.Name]; known && was != s.Shard.N {
						moves++
					}
					last[s.Name] = s.Shard.N
				}
			}
			if moves < 12 || moves > 40+10 { // each once, and 25 % of 40
				t.Errorf("%d moves of 40 clusters within a day", moves)
			}
		})
	}
}

// TestWhatReplicasMayDieOfIsFailedOverByTheBudget: what a dead replica leaves goes at once, though the budget of failovers is used up.
// Where the one that took it dies within the hour, what came by that failover waits for the budget until a day is over, and only one
// goes each hour; all else on it goes. Who has had it for longer did not die of it, and all of it goes.
func TestWhatReplicasMayDieOfIsFailedOverByTheBudget(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration // of the first failover
		wait  bool
		all   bool // fall ill soon after it, and are well again
	}{
		"within the hour":              {40 * time.Minute, true, false},
		"after two hours":              {2 * time.Hour, false, false},
		"the whole fleet was ill, too": {2 * time.Hour, false, true},
		"just before a day":            {23 * time.Hour, false, false},
		"as a day is over":             {24 * time.Hour, false, false},
		"after a day and more":         {30 * time.Hour, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, slices.Repeat([]float64{10}, 24)...)
			capacity := config.Decimal("1000") // all fit
			w.in.Config.Partition.Capacity = &capacity
			w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 5, Period: config.Duration(7 * 24 * time.Hour)}} // one in a week
			for range 30 {
				w.step(time.Minute) // settled
			}
			left := w.on(2)
			w.down[2] = true
			w.until(t, "replica 2 is empty", 30*time.Minute, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
			clear(w.down)
			end := w.in.Now.Add(test.after)
			for test.all && w.in.Now.Before(end.Add(20*time.Minute-test.after)) {
				w.down[0], w.down[1], w.down[2] = true, true, true
				w.step(time.Minute)
			}
			clear(w.down)
			for w.in.Now.Before(end) {
				w.step(time.Minute)
			}
			came := slices.DeleteFunc(w.on(0), func(name string) bool { return !slices.Contains(left, name) })
			w.down[0] = true
			for range 30 {
				w.step(time.Minute)
			}
			want := 0
			if test.wait {
				want = len(came) - 1
			}
			stay := w.on(0)
			others := slices.DeleteFunc(slices.Clone(stay), func(name string) bool { return slices.Contains(came, name) })
			if len(came) < 3 || len(stay) != want || len(others) > 0 {
				t.Errorf("of %v that came, %v stay on the dead replica, want %d; of the others %v", came, stay, want, others)
			}
		})
	}
}

// TestATripForMemoryTakesThePlaceOfAnother: whoever trips the breaker by an orphan must not hide it.
func TestATripForMemoryTakesThePlaceOfAnother(t *testing.T) {
	w := undecided(t, skewed(24)...)
	orphan := &harm.Trip{At: w.in.Now, Reason: harm.Orphaned, Why: "cluster \"c009\" has no owner"}
	w.in.Memory.Changes.Trip, w.in.Memory.Changes.TripTold, w.in.Tripped = orphan, true, orphan.Why
	w.down[2] = true
	w.until(t, "a cluster failed over", 20*time.Minute, func(outcome.Outcome) bool { return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil })
	received := w.in.Memory.Changes.Watch.Receivers[0]
	w.shape = func(p *observed.Pod) { p.OOMKilled, p.KilledAt = p.Replica == received, w.in.Now }
	out := w.step(time.Minute)
	trip := out.Memory.Changes.Trip
	if trip == nil || trip.Reason != harm.OOMKilled || out.Memory.Changes.TripTold {
		t.Fatalf("tripped %+v, told %t, want it for memory and untold", trip, out.Memory.Changes.TripTold)
	}
	if told := strings.Join(messages(out), "; "); !strings.Contains(told, "and of those neither off replica ") {
		t.Errorf("told %q", told)
	}
	if out = w.step(time.Minute); out.Memory.Changes.Trip == nil {
		t.Error("it is cleared while the annotation has the other's words")
	}
	w.in.Memory.Changes.TripTold, w.in.Tripped = true, trip.Why
	if out = w.step(time.Minute); out.Memory.Changes.Trip == nil {
		t.Error("it is cleared while it stands")
	}
	w.in.Tripped = ""
	if out = w.step(time.Minute); out.Memory.Changes.Trip != nil {
		t.Error("it stands after a person took it away")
	}
}

// TestNobodysIdleClustersAreRescuedFirst off a dead replica: a hundred that carry nothing, and wait for nobody, come after all others.
func TestNobodysIdleClustersAreRescuedFirst(t *testing.T) {
	w := undecided(t, skewed(40)...)
	w.in.Config.Change.Moves.Rate, w.in.Config.Partition.Capacity, w.idle = shipped(), nil, map[string]bool{}
	fleet := w.on(2)
	for i := range 100 {
		own := fmt.Sprintf("aa%03d", i)
		w.add(own, 0)
		w.secret(own).Pin, w.idle[own] = "2", true
	}
	for range 30 {
		w.step(time.Minute)
	}
	for i := range 100 {
		w.secret(fmt.Sprintf("aa%03d", i)).Pin = ""
	}
	for range 90 {
		w.step(time.Minute)
	}
	w.in.Memory.Changes.Ledger, w.down[2] = nil, true
	counted := 0
	w.until(t, "the fleet's clusters have left the dead replica", 15*time.Minute, func(out outcome.Outcome) bool {
		counted += out.Counted[change.Failover]
		return !slices.ContainsFunc(fleet, func(name string) bool { return w.row(t, name) == 2 })
	})
	w.until(t, "the others have left it, too", 3*time.Hour, func(out outcome.Outcome) bool {
		counted += out.Counted[change.Failover]
		return len(w.on(2)) == 0 && w.in.InForce.Rollout == nil
	})
	if counted != len(fleet) {
		t.Errorf("%d moves count as failovers, want the fleet's %d: clusters of no use must not spend what a rescue or a rollback needs", counted, len(fleet))
	}
}

// TestAFailoverKillsNoneThatReceives: a replica dies some minutes after it has more clusters than it bears. What one left is taken on by
// the others by a quarter of what they carry, and then within the budget; a node that is back after half an hour finds a fleet.
func TestAFailoverKillsNoneThatReceives(t *testing.T) {
	for replicas, most := range map[int]int{2: 30, 3: 18, 4: 14} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			w := adopted(t, slices.Repeat([]float64{10}, 40)...)
			w.in.Config.Partition.Capacity, w.in.Config.Partition.Replicas = nil, &config.Replicas{Fixed: replicas}
			for range 120 {
				w.step(time.Minute)
			}
			w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
			w.in.Config.Change.Moves.Rate, w.in.Memory.Changes.Ledger = shipped(), nil
			restarts, killed, full, deaths := map[int]int{}, map[int]time.Time{}, map[int]int{}, 0
			w.shape = func(p *observed.Pod) {
				p.Restarts, p.OOMKilled = restarts[p.Replica], !killed[p.Replica].IsZero()
				p.KilledAt, p.RestartedAt = killed[p.Replica], killed[p.Replica]
			}
			for minute := range 12 * 60 {
				clear(w.down)
				w.down[replicas-1] = minute < 30
				for r := range replicas - 1 {
					if full[r]++; len(w.on(r)) <= most {
						full[r] = 0
					}
					if full[r] > 5 {
						if full[r]%4 == 0 {
							restarts[r]++
							killed[r] = w.in.Now
							deaths++
						}
						w.down[r] = full[r]%4 != 3
					}
				}
				if !w.down[replicas-1] {
					delete(w.down, replicas-1)
				}
				w.step(time.Minute)
			}
			if deaths > 0 {
				t.Errorf("replicas that received died %d times: %v", deaths, messages(w.last))
			}
		})
	}
}

// TestWhatCannotBeConnectedKeepsNoFailoverWaiting: own clusters on the dead replica that weigh more than others' go first, and each wave
// with one waited its deadline out.
func TestWhatCannotBeConnectedKeepsNoFailoverWaiting(t *testing.T) {
	w := undecided(t, skewed(40)...)
	w.in.Config.Change.Moves.Rate = nil
	for i := range 20 {
		own := fmt.Sprintf("own%02d", i)
		w.add(own, 100)
		w.secret(own).Pin = "2"
	}
	step := func() outcome.Outcome {
		w.in.Now = w.in.Now.Add(30 * time.Second)
		w.observe()
		for name, c := range w.in.Observed.Reported.Clusters {
			if strings.HasPrefix(name, "own") {
				c.Live = nil
				w.in.Observed.Reported.Clusters[name] = c
			}
		}
		return w.cycle()
	}
	for range 120 {
		step()
	}
	for i := range 20 {
		w.secret(fmt.Sprintf("own%02d", i)).Pin = ""
	}
	step()
	fleet := slices.DeleteFunc(w.on(2), func(name string) bool { return strings.HasPrefix(name, "own") })
	w.down[2] = true
	minutes := 0.0
	for ; minutes < 60 && slices.ContainsFunc(fleet, func(name string) bool { return w.row(t, name) == 2 }); minutes += 0.5 {
		step()
	}
	if minutes > 25 { // five minutes until it is unwell, and seven waves of which four take two minutes more
		t.Errorf("the others' clusters left the dead replica after %v minutes: %v", minutes, messages(w.last))
	}
}

// TestALeaderWithoutAMemoryKnowsThePlan: where the history had no room for what was known, not all that is found is known at once.
func TestALeaderWithoutAMemoryKnowsThePlan(t *testing.T) {
	w := undecided(t, skewed(40)...)
	for _, s := range w.in.Discovered.Secrets {
		w.secret(s.Name).Created = w.in.Now.Add(-100 * time.Hour)
	}
	w.step(time.Minute)
	for i := range 400 {
		own := fmt.Sprintf("own%03d", i)
		w.add(own, 0)
		w.secret(own).Created = w.in.Now
	}
	for range 5 {
		w.step(time.Minute)
	}
	w.in.Memory = memory.Memory{}
	out := w.step(time.Minute)
	if got := len(out.Memory.Known.Clusters); got != 40 {
		t.Errorf("%d clusters are known to the next leader, want the 40 that stood for an hour", got)
	}
}
