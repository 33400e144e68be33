package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/standing"
	"ballast/planner/discover"
	"ballast/planner/evaluate"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/plan"
)

// liveWorld is a world in mode live, whose pods say what they own: each the clusters that carry its number, at once.
type liveWorld struct {
	*world
	down       map[int]bool         // replicas that are not ready
	mute       map[int]bool         // replicas that are, and do not say what they own
	doubled    map[string]bool      // clusters that replica 0 has, too
	taken      map[string]bool      // clusters that nobody takes up, whatever their Secret says
	unshown    map[string]bool      // clusters whose Applications all give their name, which Argo CD 3.0.0 to 3.0.5 does not show
	unread     bool                 // no pod is connected to those
	lingers    map[string]bool      // replica 0 keeps a cache of those, too
	renumbered map[int]int          // pods that started with another number than their names'
	idle       map[string]bool      // clusters without an Application
	hidden     bool                 // no pod can be listed
	placed     map[string]int       // where Argo CD's algorithm has clusters whose Secrets name no replica
	serves     map[string]string    // which Secret of a server that has several says where Argo CD has it, by server
	written    map[string]writtenAs // each Secret as its pods saw it last
	shape      func(*observed.Pod)
	says       func(*ownership.Observation)
	history    map[string][]int
	envs       []int
	waves      []int // moves of each
	counts     []int

	pace map[string]float64 // seconds that a reconciliation of a cluster takes; nil: no pod says
	work map[int]input.ServerWork
}

func newLiveWorld(loads ...float64) *liveWorld {
	w := &liveWorld{world: newWorld(loads...), down: map[int]bool{}, taken: map[string]bool{}, history: map[string][]int{}}
	w.in.Config.Rollout = config.Rollout{Live: &config.LiveRollout{MaxMovesPerWave: 5, Nudge: true, Adopt: config.AdoptNow}, StageTimeout: config.Duration(10 * time.Minute)}
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(2 * time.Minute), MinSamples: 3}}
	w.in.Config.Partition.MinReplicas = nil
	return w
}

// observe is what the pods say of the Secrets and the workload as they stand.
func (w *liveWorld) observe() {
	if w.hidden {
		w.in.Observed = input.Observed{Trouble: []string{"pods cannot be listed: forbidden"}}
		return
	}
	o := input.Observed{Known: true, Reported: ownership.Observation{Asked: true, Clusters: map[string]ownership.ClusterObservation{}}}
	holders := map[int]int{}
	for r := range w.in.Workload.Replicas {
		name := fmt.Sprintf("argocd-application-controller-%d", r)
		o.Pods = append(o.Pods, observed.Pod{Replica: r, Name: name, Ready: !w.down[r], Claimed: true, Answered: !w.down[r] && !w.mute[r]})
		if w.shape != nil {
			w.shape(&o.Pods[r])
		}
		if !w.down[r] {
			if !w.mute[r] {
				holders[r] = len(o.Reported.Pods)
			}
			o.Reported.Asked = o.Reported.Asked && !w.mute[r]
			o.Reported.Pods = append(o.Reported.Pods, ownership.PodObservation{Name: name, Replica: r, Ready: true, Running: true, Answered: !w.mute[r], SampledAt: w.in.Now})
		}
	}
	w.serve()
	for _, s := range w.in.Discovered.Secrets {
		c := ownership.ClusterObservation{Server: s.Server, Apps: 1}
		if w.idle[s.Name] {
			c.Apps = 0
			o.Reported.Clusters[s.Name] = c
			continue
		}
		at, placed := w.servedAt(s)
		if holder, up := holders[at]; up && placed && !w.taken[s.Name] {
			c.Owners, c.Live, c.Cached, c.Holders = []int{at}, []int{at}, []int{at}, []int{holder}
		}
		if w.unshown[s.Name] && len(c.Holders) > 0 {
			o.Reported.Pods[holders[at]].Unplaced++
			if c.Readers = c.Holders; w.unread {
				c.Readers = nil
			}
			c.Owners, c.Live, c.Holders = nil, nil, nil
			if w.lingers[s.Name] {
				c.Cached = []int{0, at}
			}
		}
		c.ByName = w.unshown[s.Name]
		w.renumber(&c, at, holders)
		if w.doubled[s.Name] && s.Shard.N != 0 {
			c.Owners, c.Live, c.Holders = []int{0, s.Shard.N}, []int{0, s.Shard.N}, []int{holders[0], holders[s.Shard.N]}
		}
		o.Reported.Clusters[s.Name] = c
		w.reconcile(s, c.Owners)
	}
	if w.in.Discovered.InClusterEnabled {
		at := w.placed[discover.ImplicitID]
		c := ownership.ClusterObservation{Server: plan.InClusterServer, Apps: 1, Owners: []int{at}, Live: []int{at}, Cached: []int{at}}
		if holder, up := holders[at]; up {
			c.Holders = []int{holder}
			o.Reported.Clusters[discover.ImplicitID] = c
		}
	}
	o.Work = w.work
	if w.says != nil {
		w.says(&o.Reported)
	}
	w.in.Observed = o
}

// writtenAs is what a pod reads of a Secret.
type writtenAs struct {
	shard  discover.ShardValue
	server string
}

// serve has each server be where the Secret of it says that was written last, else the last one: Argo CD knows servers alone.
func (w *liveWorld) serve() {
	if w.written == nil {
		w.serves, w.written = map[string]string{}, map[string]writtenAs{}
	}
	for _, s := range w.in.Discovered.Secrets {
		is := writtenAs{s.Shard, s.Server}
		if was, known := w.written[s.Name]; (!known || was != is) && s.Server != "" {
			w.serves[s.Server] = s.Name
		}
		w.written[s.Name] = is
	}
}

// servedAt is the replica that has a Secret's server; false: none does.
func (w *liveWorld) servedAt(s discover.Secret) (at int, placed bool) {
	if lead := w.serves[s.Server]; lead != "" && lead != s.Name {
		for _, other := range w.in.Discovered.Secrets {
			if other.Name == lead && other.Server == s.Server {
				s = other
			}
		}
	}
	if at, placed = w.placed[s.Name]; placed {
		return at, true
	}
	return s.Shard.N, s.Shard.State == discover.ShardValid
}

// renumber has those pods own what is the number's that they started with, and nothing else.
func (w *liveWorld) renumber(c *ownership.ClusterObservation, at int, holders map[int]int) {
	for replica, as := range w.renumbered {
		if replica == at {
			c.Owners, c.Live, c.Holders = nil, nil, nil
		}
		if holder, up := holders[replica]; up && as == at {
			c.Owners, c.Live, c.Holders = append(c.Owners, replica), append(c.Live, replica), append(c.Holders, holder)
		}
	}
}

// reconcile lets a cluster's owners do what they do in a minute.
func (w *liveWorld) reconcile(s discover.Secret, owners []int) {
	if w.pace == nil {
		return
	}
	if w.work == nil {
		w.work = map[int]input.ServerWork{}
	}
	for _, r := range owners {
		if w.work[r] == nil {
			w.work[r] = input.ServerWork{}
		}
		done := w.work[r][s.Server]
		w.work[r][s.Server] = harm.Work{Reconciles: done.Reconciles + 10, Seconds: done.Seconds + 10*w.pace[s.Name]}
	}
}

// step runs a cycle and notes who owns what, the env and the waves.
func (w *liveWorld) step(pause time.Duration) outcome.Outcome {
	w.in.Now = w.in.Now.Add(pause)
	w.observe()
	before := w.in.InForce
	out := w.cycle()
	if p := w.in.InForce; p.Rollout != nil && len(p.Rollout.Was) > 0 && (before == nil || before.Rollout == nil || before.Rollout.Wave != p.Rollout.Wave || before.Rollout.Stage != p.Rollout.Stage) {
		w.waves = append(w.waves, len(p.Rollout.Was))
	}
	for _, s := range w.in.Discovered.Secrets {
		if h := w.history[s.Name]; len(h) == 0 || h[len(h)-1] != s.Shard.N {
			w.history[s.Name] = append(h, s.Shard.N)
		}
	}
	note := func(list []int, n int) []int {
		if len(list) == 0 || list[len(list)-1] != n {
			return append(list, n)
		}
		return list
	}
	w.envs, w.counts = note(w.envs, standing.ControllerReplicas(w.in.Workload)), note(w.counts, w.in.Workload.Replicas)
	return out
}

// until runs cycles until that holds, for at most that long.
func (w *liveWorld) until(t *testing.T, what string, atMost time.Duration, holds func(outcome.Outcome) bool) outcome.Outcome {
	t.Helper()
	for end := w.in.Now.Add(atMost); w.in.Now.Before(end); {
		if out := w.step(30 * time.Second); holds(out) {
			return out
		}
	}
	t.Fatalf("waited %s in vain: %s; the last problems: %v; the plan: %+v", atMost, what, messages(w.last), w.in.InForce.Rollout)
	return outcome.Outcome{}
}

func messages(out outcome.Outcome) []string {
	var m []string
	for _, p := range out.Problems {
		m = append(m, p.Kind+": "+p.Message)
	}
	return m
}

// adopted is a world whose env is at its constant already.
func adopted(t *testing.T, loads ...float64) *liveWorld {
	t.Helper()
	w := newLiveWorld(loads...)
	w.until(t, "the env is 16 and every Secret stamped", time.Hour, func(outcome.Outcome) bool {
		return standing.ControllerReplicas(w.in.Workload) == 16 && w.in.InForce.Rollout == nil
	})
	w.waves = nil
	return w
}

// undecided is adopted and never elects anything.
func undecided(t *testing.T, loads ...float64) *liveWorld {
	t.Helper()
	w := adopted(t, loads...)
	w.in.Config.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(100 * time.Hour), MinSamples: 1000}}
	w.until(t, "what was begun is over", 3*time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	w.history, w.envs, w.counts = map[string][]int{}, nil, nil
	w.step(time.Minute)
	return w
}

func (w *liveWorld) moved() map[string][]int {
	moved := maps.Clone(w.history)
	maps.DeleteFunc(moved, func(_ string, h []int) bool { return len(h) < 2 })
	return moved
}

// skewed has its weight on the clusters that legacy gives replica 0.
func skewed(n int) []float64 {
	loads := make([]float64, n)
	for i := range loads {
		loads[i] = 10
		if i%3 == 0 {
			loads[i] = 40
		}
	}
	return loads
}

func TestLivePreparesWithOneRestartAndThenRestartsNothing(t *testing.T) {
	w := newLiveWorld(skewed(24)...)
	for i := range w.in.Discovered.Secrets { // all of the heavy ones on replica 0
		w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % 3}
	}
	var reasons []string
	w.until(t, "a level fleet", 3*time.Hour, func(out outcome.Outcome) bool {
		if out.Changed {
			reasons = append(reasons, out.Reason)
		}
		return w.in.InForce.Rollout == nil && out.Candidate != nil && len(w.waves) > 0
	})
	if diff := cmp.Diff([]int{3, 16}, w.envs); diff != "" {
		t.Errorf("the env over time (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(reasons[1], "prepares live rollouts: ARGOCD_CONTROLLER_REPLICAS becomes 16 for good") {
		t.Errorf("the second decision is %q", reasons[1])
	}
	for i, n := range w.waves {
		if n > 5 {
			t.Errorf("wave %d moved %d clusters of at most 5", i+1, n)
		}
	}
	for name, h := range w.moved() {
		if len(h) != 2 {
			t.Errorf("%s was owned by %v: it moved more than once", name, h)
		}
	}
	if imbalance := outcome.Imbalance(w.last.Now); imbalance > 1.1 {
		t.Errorf("makespan over mean is %.2f after all waves: %v", imbalance, reasons)
	}
}

func TestPeopleHearOfTheOneRestartBeforeItComes(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Observe, plan.Hold} {
		w := newLiveWorld(1, 2, 3)
		w.in.Config.Mode = mode
		out := w.step(time.Minute)
		if !slices.Contains(problems(out), "rollout/RestartAhead/") {
			t.Errorf("in %s nobody is told: %v", mode, problems(out))
		}
		if diff := cmp.Diff([]int{3}, w.envs); diff != "" {
			t.Errorf("in %s the env changed (-want +got):\n%s", mode, diff)
		}
	}
}

func TestTheBudgetHoldsForEveryHour(t *testing.T) {
	w := adopted(t, skewed(40)...)
	w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}}
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
	var at []time.Time
	total := 0
	for range 8 * 60 {
		before := len(w.waves)
		w.step(30 * time.Second)
		for _, n := range w.waves[before:] {
			total += n
			for range n {
				at = append(at, w.in.Now)
			}
		}
	}
	counted := 0
	for _, r := range w.in.Memory.Changes.Ledger {
		counted += r.Moves
	}
	if counted != total {
		t.Errorf("%d moves were counted, %d were made", counted, total)
	}
	if total < 8 {
		t.Fatalf("%d clusters moved in 4 h: the budget of 4 an hour stopped the fleet", total)
	}
	for i := range at {
		within := 0
		for j := i; j < len(at) && at[j].Sub(at[i]) < time.Hour; j++ {
			within++
		}
		if within > 4 {
			t.Errorf("%d clusters moved in the hour from %s, of at most 4", within, at[i].Format(time.TimeOnly))
		}
	}
}

func TestAWaveThatOrphansStopsEverythingUntilAPersonClearsIt(t *testing.T) {
	w := adopted(t, skewed(40)...)
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
	w.until(t, "a first wave is done", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) >= 2 })
	w.taken["c039"] = true
	out := w.until(t, "it trips", 15*time.Minute, func(out outcome.Outcome) bool { return out.Memory.Changes.Trip != nil })
	if !strings.Contains(out.Memory.Changes.Trip.Why, `cluster "c039" has no owner`) {
		t.Errorf("it tripped because %q", out.Memory.Changes.Trip.Why)
	}
	w.in.Tripped = out.Memory.Changes.Trip.Why // the leader's annotation
	w.taken = map[string]bool{}
	w.until(t, "the wave under way ends", 20*time.Minute, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	stopped := len(w.waves)
	for _, s := range w.in.Discovered.Secrets { // there is much to level, now and later
		w.setLoad(s.Name, float64(10+90*(w.in.InForce.Clusters[s.Name].Replica%2)))
	}
	for range 4 * 60 {
		w.step(30 * time.Second)
	}
	if len(w.waves) != stopped {
		t.Errorf("%d waves began after it tripped", len(w.waves)-stopped)
	}
	w.in.Tripped = ""
	w.until(t, "it goes on", 3*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > stopped })
}

func TestASlowClusterMakesNoSlowReplica(t *testing.T) {
	begin := func() *liveWorld {
		w := adopted(t, skewed(40)...)
		w.in.Config.Change.Moves.Rate = []config.Rate{{Percent: 10, Period: config.Duration(time.Hour)}} // some of what is to move stays for now
		w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3}                                      // a new one has no work to compare with
		w.pace = map[string]float64{}
		for i, s := range w.in.Discovered.Secrets {
			w.setLoad(s.Name, float64(10+90*(i%2)))
			w.pace[s.Name] = 0.1
		}
		return w
	}
	moved := func(w *liveWorld) (names []string) {
		w.until(t, "a first wave is done", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) >= 1 && w.in.InForce.Rollout == nil })
		for name, owners := range w.history {
			if len(owners) > 1 {
				names = append(names, name)
			}
		}
		return names
	}
	movers := moved(begin())
	for _, harmed := range []bool{false, true} {
		w := begin()
		for _, name := range movers {
			w.pace[name] = 5 // by nature
		}
		if diff := cmp.Diff(len(movers), len(moved(w))); diff != "" || len(movers) == 0 {
			t.Fatalf("other clusters moved than in the world before (-want +got):\n%s", diff)
		}
		for name := range w.pace {
			if harmed && !slices.Contains(movers, name) {
				w.pace[name] *= 20
			}
		}
		var trip *harm.Trip
		for range 40 {
			if trip = w.step(30 * time.Second).Memory.Changes.Trip; trip != nil {
				break
			}
		}
		switch {
		case !harmed && trip != nil:
			t.Errorf("nothing became slower, and it tripped because %s", trip.Why)
		case harmed && (trip == nil || trip.Reason != harm.Slowed):
			t.Errorf("the clusters that stayed take twenty times as long: got the trip %+v, want one for %s", trip, harm.Slowed)
		}
	}
}

func TestTheClustersOfAReplicaThatIsUnwellMoveAndComeBackOnlyByBalance(t *testing.T) {
	w := undecided(t, skewed(12)...)
	for range 30 {
		w.step(time.Minute) // settled
	}
	ill := w.owners()
	w.down[2] = true
	w.until(t, "replica 2 is empty", time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil && len(w.on(2)) == 0 })
	for name, r := range ill {
		now := w.owners()[name]
		if r != 2 && now != r {
			t.Errorf("%s was on replica %d, which is well, and is on %d now", name, r, now)
		}
	}
	if diff := cmp.Diff([]int{16}, w.envs) + cmp.Diff([]int{3}, w.counts); diff != "" {
		t.Errorf("env and replicas over time (-want +got):\n%s", diff)
	}
	if got := w.in.Memory.Changes.Failover.Replica; got != 2 {
		t.Errorf("the last failover is remembered as replica %d's", got)
	}
	if w.step(time.Minute); w.in.Memory.Changes.Cause != "" {
		t.Errorf("the cause %s outlives its rollout", w.in.Memory.Changes.Cause)
	}
	delete(w.down, 2)
	for range 60 {
		w.step(time.Minute)
	}
	if back := w.on(2); len(back) > 0 {
		t.Errorf("%v came back by themselves", back)
	}
}

func TestAWholeFleetThatIsUnwellMovesNothing(t *testing.T) {
	w := undecided(t, skewed(12)...)
	for range 30 {
		w.step(time.Minute)
	}
	w.history = map[string][]int{}
	w.down = map[int]bool{0: true, 1: true, 2: true}
	for range 60 {
		w.step(time.Minute)
	}
	if moved := w.moved(); len(moved) > 0 {
		t.Errorf("clusters moved while nobody could take them: %v", moved)
	}
}

func TestACordonedReplicaIsEmptiedAndReceivesNothing(t *testing.T) {
	w := adopted(t, skewed(12)...)
	pinned := w.on(1)[0]
	w.in.Pins = plan.Pins{pinned: 1}
	w.in.Cordon = "1=" + w.in.Now.Add(2*time.Hour).UTC().Format(time.RFC3339)
	const why = "empties replica 1 as asked: moves 3 clusters"
	w.until(t, "replica 1 is empty but for the pinned cluster", time.Hour, func(out outcome.Outcome) bool {
		if out.Changed && out.Reason != why { // whatever stage it is in
			t.Errorf("revision %d stands because %q, want %q", w.in.InForce.Revision, out.Reason, why)
		}
		return w.in.InForce.Rollout == nil && len(w.on(1)) == 1
	})
	if diff := cmp.Diff([]string{pinned}, w.on(1)); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
	if out := w.step(time.Minute); !slices.Contains(problems(out), "rollout/PinnedStays/"+pinned) {
		t.Errorf("nobody is told of the pinned one: %v", problems(out))
	}
	for range 60 {
		if w.step(time.Minute); len(w.on(1)) > 1 {
			t.Fatalf("%v came to the cordoned replica", w.on(1))
		}
	}
}

func TestAPersonGoesBackToAnEarlierPlan(t *testing.T) {
	w := adopted(t, skewed(12)...)
	earlier := w.in.InForce.Clone()
	for _, name := range w.on(0) {
		w.setLoad(name, 1000)
	}
	w.until(t, "the fleet was levelled", 3*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > 0 && w.in.InForce.Rollout == nil })
	w.in.Paused = true // frozen: nothing but what people ask for
	w.in.Rollback = &input.Rollback{Revision: earlier.Revision, Plan: &earlier}
	out := w.until(t, "the earlier plan holds", time.Hour, func(out outcome.Outcome) bool { return out.Done })
	if !out.Memory.HoldOff.Equal(w.in.Now) || len(out.Memory.Votes.Ballots) != 0 {
		t.Errorf("what the person took back may be decided again at once: held off since %s, %d votes", out.Memory.HoldOff, len(out.Memory.Votes.Ballots))
	}
	got := map[string]int{}
	for name, row := range w.in.InForce.Clusters {
		got[name] = row.Replica
	}
	want := map[string]int{}
	for name, row := range earlier.Clusters {
		want[name] = row.Replica
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(want, w.owners()); diff != "" {
		t.Errorf("(-earlier +now):\n%s", diff)
	}
	if w.in.InForce.Revision <= earlier.Revision {
		t.Errorf("the revision went back to %d", w.in.InForce.Revision)
	}
	w.in.Rollback = &input.Rollback{Revision: 99, Problem: "revision 99 is not kept any more"}
	if out := w.step(time.Minute); !out.Done || !slices.Contains(problems(out), "rollout/RollbackRefused/"+plan.AnnotationRollback) {
		t.Errorf("a revision that is not kept: done %v, %v", out.Done, problems(out))
	}
}

func TestAFrozenFleetEndsItsWaveAndBeginsNoOther(t *testing.T) {
	w := adopted(t, skewed(40)...)
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
	w.until(t, "a wave", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) == 1 })
	w.in.Paused = true
	w.until(t, "the rollout is over", time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	if diff := cmp.Diff(1, len(w.waves)); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
	for name, r := range w.owners() {
		if row := w.in.InForce.Clusters[name]; row.Replica != r {
			t.Errorf("%s is on %d, its row says %d", name, r, row.Replica)
		}
	}
}

func TestANewLeaderWithoutMemoryEndsTheRolloutSafely(t *testing.T) {
	w := adopted(t, skewed(40)...)
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
	}
	w.until(t, "a wave", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) == 1 })
	w.in.Memory.Changes, w.in.Memory.Votes = memory.Changes{}, evaluate.Vote{}
	w.until(t, "the rollout is over", time.Hour, func(outcome.Outcome) bool { return w.in.InForce.Rollout == nil })
	if len(w.waves) != 1 {
		t.Errorf("%d waves: whoever does not know where to may begin none", len(w.waves))
	}
	w.until(t, "the next decision goes on", 3*time.Hour, func(outcome.Outcome) bool { return len(w.waves) > 1 })
}

func TestWhatLiveLacksIsSaidAndNothingBegins(t *testing.T) {
	w := newLiveWorld(skewed(12)...)
	w.secret("c003").Immutable = true
	for range 60 {
		w.step(time.Minute)
	}
	if !slices.Contains(problems(w.last), "rollout/LiveNotReady/") {
		t.Fatalf("nothing is said: %v", problems(w.last))
	}
	if diff := cmp.Diff([]int{3}, w.envs); diff != "" {
		t.Errorf("the env over time (-want +got):\n%s", diff)
	}
}

func (w *liveWorld) owners() map[string]int {
	owners := map[string]int{}
	for _, s := range w.in.Discovered.Secrets {
		owners[s.Name] = s.Shard.N
	}
	return owners
}

// on are the clusters whose Secret names that replica, by name.
func (w *liveWorld) on(replica int) []string {
	var names []string
	for _, s := range w.in.Discovered.Secrets {
		if s.Shard.N == replica {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestAWaveCountsOnceHoweverLongItTakes(t *testing.T) {
	w := adopted(t, skewed(40)...)
	w.in.Config.Evaluate = config.Evaluate{None: &config.None{}} // it is taken before anybody is missed
	for i := range w.in.Discovered.Secrets {
		w.setLoad(w.in.Discovered.Secrets[i].Name, float64(10+90*(i%2)))
		w.taken[w.in.Discovered.Secrets[i].Name] = true // nobody takes up what is given to him
	}
	w.until(t, "a wave", 2*time.Hour, func(outcome.Outcome) bool { return len(w.waves) == 1 })
	for range 8 {
		w.step(30 * time.Second)
	}
	counted := 0
	for _, r := range w.in.Memory.Changes.Ledger {
		counted += r.Moves
	}
	if counted != w.waves[0] {
		t.Errorf("a wave of %d clusters counts as %d moves", w.waves[0], counted)
	}
}

func TestWhatCannotBeGoneBackToIsRefusedWithTheMend(t *testing.T) {
	now := plan.Plan{Target: plan.Target{Kind: plan.StatefulSet, Name: "argocd-application-controller"}, Replicas: 3, MaxReplicas: 8}
	at := func(change func(*plan.Plan)) *plan.Plan {
		p := now.Clone()
		change(&p)
		return &p
	}
	for name, test := range map[string]struct {
		rollback input.Rollback
		want     string
	}{
		"one at rest":             {input.Rollback{Revision: 7, Plan: at(func(*plan.Plan) {})}, ""},
		"not kept":                {input.Rollback{Revision: 7, Problem: "revision 7 is not kept any more"}, "revision 7 is not kept any more"},
		"in the middle":           {input.Rollback{Revision: 7, Plan: at(func(p *plan.Plan) { p.Rollout = &plan.Rollout{} })}, "revision 7 was written in the middle of a rollout, and says nothing of where that went; `ballast rollback` lists those at rest"},
		"another workload":        {input.Rollback{Revision: 7, Plan: at(func(p *plan.Plan) { p.Target.Kind = plan.Deployment })}, `revision 7 is for another workload, Deployment "argocd-application-controller"`},
		"another container":       {input.Rollback{Revision: 7, Plan: at(func(p *plan.Plan) { p.Target.Container = "renamed" })}, ""},
		"more than there may be":  {input.Rollback{Revision: 7, Plan: at(func(p *plan.Plan) { p.Replicas = 9 })}, "revision 7 has 9 replicas, and partition.maxReplicas is 8: raise it first"},
		"a fleet that is stopped": {input.Rollback{Revision: 7, Plan: at(func(p *plan.Plan) { p.Replicas = 0 })}, "revision 7 has 0 replicas, and partition.maxReplicas is 8: raise it first"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.rollback.Refused(now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	now.FreeReplicas = true
	more := input.Rollback{Revision: 7, Plan: at(func(p *plan.Plan) { p.Replicas = 9 })}
	if got := more.Refused(now); got != "" {
		t.Errorf("where the replicas are people's, those of then count: %q", got)
	}
}
