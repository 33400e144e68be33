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
	"ballast/planner/cycle/ledger"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/snapshot"
	"ballast/planner/rollout"
	"ballast/planner/rollout/basis"
)

// of are the clusters that the plan has on a replica, without the twins that a test added.
func (w *liveWorld) of(replica int) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(w.in.InForce.Clusters)) {
		if w.in.InForce.Clusters[name].Replica == replica && !strings.HasPrefix(name, "twin-") {
			names = append(names, name)
		}
	}
	return names
}

// twin adds so many plain Secrets of a cluster's server, younger than its own.
func (w *liveWorld) twin(name string, twins int) {
	for k := range twins {
		of := fmt.Sprintf("twin-%s-%03d", name, k)
		w.add(of, 0)
		s, first := w.secret(of), w.secret(name)
		s.Server, s.Created, s.Shard = first.Server, w.in.Now, first.Shard
	}
}

// budgeted is a fleet of 40 under the shipped rates, nothing of which is used.
func budgeted(t *testing.T) *liveWorld {
	t.Helper()
	w := undecided(t, skewed(40)...)
	for i := range w.in.Discovered.Secrets {
		w.in.Discovered.Secrets[i].Created = epoch
	}
	w.in.Config.Change.Moves.Rate, w.in.Memory.Changes.Ledger = shipped(), nil
	return w
}

// TestTwinsKeepNoClusterWhereItIs: a server is one move, whatever number of Secrets it has. Sixty twins of one cluster would make it
// larger than the budget ever is, and it would never leave a cordoned replica. What is on a dead one waits for no budget.
func TestTwinsKeepNoClusterWhereItIs(t *testing.T) {
	for name, test := range map[string]struct{ victims, twins int }{
		"none": {0, 0}, "many of one cluster": {1, 60}, "some of each": {40, 2}, "many of each": {40, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := budgeted(t)
			on, others := w.of(2), w.of(1)
			for _, victim := range on[:min(test.victims, len(on))] {
				w.twin(victim, test.twins)
			}
			for range 25 * 60 { // the twins are known, and whatever they moved counts no more
				w.step(time.Minute)
			}
			w.in.Cordon = "2=" + w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339)
			for range 30 {
				w.step(time.Minute)
			}
			if left := len(on) - len(w.of(2)); left < 4 || left > 8 { // 10 % of 40 clusters within an hour, and what follows
				t.Errorf("%d of %d clusters left the cordoned replica, want 4: %v", left, len(on), messages(w.last))
			}
			w.in.Cordon, w.down[1] = "", true
			for range 90 {
				w.step(time.Minute)
			}
			if stay := w.of(1); len(stay) > 0 {
				t.Errorf("%v of %d clusters are on the dead replica: %v", stay, len(others), messages(w.last))
			}
			serversAreTogether(t, w)
		})
	}
}

// TestNobodysPinsKeepOthersFromRescue: Secrets that were there for an hour turn their pins once each, which uses the budget up for a day.
// A failover waits for no budget, and a drain for that of what is not pinned.
func TestNobodysPinsKeepOthersFromRescue(t *testing.T) {
	for name, test := range map[string]struct {
		own  int
		dead bool
		left int // of the replica's clusters, after half an hour
	}{
		"dead": {0, true, 0}, "dead, and pins": {14, true, 0},
		"cordoned": {0, false, 10}, "cordoned, and pins": {14, false, 9}, // of 40 and of 54 clusters a tenth may move
	} {
		t.Run(name, func(t *testing.T) {
			w := budgeted(t)
			pins := func(to string) {
				for i := range test.own {
					own := fmt.Sprintf("own%02d", i)
					if w.secret(own) == nil {
						w.add(own, 0)
					}
					w.secret(own).Pin = to
				}
			}
			pins("0")
			for range 130 {
				w.step(time.Minute)
			}
			w.known()
			on := w.on(2)
			pins("1")
			w.step(10 * time.Second)
			w.step(10 * time.Second)
			if used := w.last.Budget.Windows[0].Used; used != test.own {
				t.Fatalf("%d moves count, want the %d pins: %s", used, test.own, w.last.Budget)
			}
			if w.down[2] = test.dead; !test.dead {
				w.in.Cordon = "2=" + w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339)
			}
			for range 45 {
				w.step(time.Minute)
			}
			if left := len(w.on(2)); left != test.left {
				t.Errorf("%d of %d clusters are still there, want %d: %v", left, len(on), test.left, messages(w.last))
			}
		})
	}
}

func serversAreTogether(t *testing.T, w *liveWorld) {
	t.Helper()
	at := map[string]int{}
	for _, s := range w.in.Discovered.Secrets {
		row := w.in.InForce.Clusters[s.Name]
		if other, known := at[s.Server]; known && other != row.Replica {
			t.Errorf("%s is on replica %d, and another Secret of its server on %d", s.Name, row.Replica, other)
		}
		at[s.Server] = row.Replica
	}
}

// TestASecondSecretThatNobodyMayWriteLiftsNoBudget: it stands alone, and is no server of its own.
func TestASecondSecretThatNobodyMayWriteLiftsNoBudget(t *testing.T) {
	w := undecided(t, skewed(10)...)
	w.twin("c000", 5)
	for i := range w.in.Discovered.Secrets {
		if s := &w.in.Discovered.Secrets[i]; strings.HasPrefix(s.Name, "twin-") {
			s.Immutable = true
		}
	}
	w.step(time.Minute)
	w.known()
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 100, Period: config.Duration(time.Hour)}}
	w.step(time.Minute)
	if got := w.last.Budget.Windows[0].Allowed; got != 10 {
		t.Errorf("all of the fleet are %d moves, want those of 10 servers", got)
	}
}

// TestTheBudgetCountsServers: twins neither use it up nor enlarge it, and as many servers as Secrets count as many.
func TestTheBudgetCountsServers(t *testing.T) {
	for name, test := range map[string]struct {
		twins, others int
		size, moves   int
	}{
		"neither":                       {0, 0, 10, 1},
		"sixty twins of one server":     {60, 0, 10, 1},
		"sixty clusters of their own":   {0, 60, 70, 61},
		"twins of one, and some others": {30, 3, 13, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(10)...)
			w.twin("c000", test.twins)
			for k := range test.others {
				of := fmt.Sprintf("other-%03d", k)
				w.add(of, 1)
				w.secret(of).Shard = w.secret("c000").Shard
			}
			for range 130 {
				w.step(time.Minute)
			}
			w.known()
			w.in.Config.Change.Moves.Rate, w.in.Memory.Changes.Ledger = []config.Rate{{Percent: 100, Period: config.Duration(time.Hour)}}, nil
			c, a := w.deciding(t)
			to := map[string]int{}
			for name, row := range a.Next.Clusters {
				if name == "c000" || strings.HasPrefix(name, "twin-") || strings.HasPrefix(name, "other-") {
					to[name] = (row.Replica + 1) % a.Next.Replicas
				}
			}
			next, err := rollout.Begin(a.Next, *snapshot.Of(c.Out, a.Ground).WantOf(a.Next.Replicas, to), basis.Options{Mode: "default"}, w.in.Now)
			if err != nil {
				t.Fatal(err)
			}
			c.In.InForce, c.Out.Memory.Changes.Cause = &next, change.Balance
			ledger.Ledger{Draft: c}.Count(a.Beside)
			want := change.Window{Rate: change.Rate{Percent: 100, Period: time.Hour}, Allowed: test.size, Used: test.moves}
			if diff := cmp.Diff([]change.Window{want}, c.Out.Budget.Windows); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// deciding is a cycle in front of its decision.
func (w *liveWorld) deciding(t *testing.T) (*outcome.Draft, *adopt.Adoption) {
	t.Helper()
	c := &outcome.Draft{In: w.in, Out: outcome.Outcome{Memory: w.in.Memory}}
	if fleet := (discovery.Phase{Draft: c}); !fleet.Discover() {
		t.Fatal("nothing is seen")
	}
	a := adopt.Plan(w.in, c.Out.Fleet, *w.in.InForce, nil)
	ledger.Ledger{Draft: c}.Count(a.Beside)
	return c, a
}

// TestPinsToAndFroLeaveTheBudget: what people's writes of a Secret move counts, by its pin or by what a repair puts back, for
// clusters that the budget is a share of, and once a day for each; who makes Secrets and writes them, or turns one Secret's
// pin or shard ten times, leaves all others their moves.
func TestPinsToAndFroLeaveTheBudget(t *testing.T) {
	for name, test := range map[string]struct {
		pins func(*liveWorld)
		used int
	}{
		"none": {func(*liveWorld) {}, 0},
		"ten Secrets made just now, twice each": {func(w *liveWorld) {
			for i := range 10 {
				w.add(fmt.Sprintf("own%02d", i), 0)
			}
			for _, pin := range []string{"0", "1", "0"} {
				for i := range 10 {
					w.secret(fmt.Sprintf("own%02d", i)).Pin = pin
				}
				w.step(10 * time.Second)
			}
		}, 0},
		"one Secret, ten times": {func(w *liveWorld) {
			for i := range 10 {
				w.secret("c003").Pin = []string{"0", "1"}[i%2]
				w.step(10 * time.Second)
			}
		}, 1},
		"one Secret, beyond the replicas and back": {func(w *liveWorld) {
			for i := range 40 {
				w.secret("c003").Pin = []string{"3", "1"}[i/10%2]
				w.step(time.Minute)
			}
		}, 1},
		"ten Secrets made just now, whose shard is put back": {func(w *liveWorld) {
			for i := range 10 {
				w.add(fmt.Sprintf("own%02d", i), 0)
				w.in.Repaired = append(w.in.Repaired, fmt.Sprintf("own%02d", i))
			}
			w.step(10 * time.Second)
		}, 0},
		"one Secret whose shard is put back, ten times, and whose pin turns": {func(w *liveWorld) {
			for i := range 10 {
				w.secret("c003").Pin = []string{"0", "1"}[i%2]
				w.in.Repaired = []string{"c003"}
				w.step(10 * time.Second)
			}
		}, 1},
		"one Secret that went, and comes again by another server": {func(w *liveWorld) {
			for i := range 10 {
				w.secret("c003").Server = fmt.Sprintf("https://other-%d", i)
				w.in.Repaired = []string{"c003"}
				w.step(10 * time.Second)
			}
		}, 1},
		"three of the fleet whose shard is put back": {func(w *liveWorld) {
			w.in.Repaired = w.on(0)[:3]
			w.step(10 * time.Second)
		}, 3},
		"five clusters of the fleet, once each": {func(w *liveWorld) {
			for _, name := range w.on(0)[:5] {
				w.secret(name).Pin = "1"
			}
			w.step(10 * time.Second)
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(40)...)
			w.in.Config.Change.Moves.Rate = config.Default().Change.Moves.Rate
			for range 25 * 60 {
				w.step(time.Minute)
			}
			test.pins(w)
			w.in.Repaired = nil
			w.step(10 * time.Second)
			if got := w.last.Budget; got.Causes[change.Pin]+got.Causes[change.Healing] != test.used || got.Windows[1].Allowed != 10 {
				t.Errorf("%v count, want %d: %v", got.Causes, test.used, got)
			}
		})
	}
}
