package rollout

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/rollout/basis"
)

// run takes a decision into force on a simulated fleet, loop by loop, as the planner does: advance, write, act, wait.
type run struct {
	t     *rapid.T
	fleet *fleet
	plan  plan.Plan
	pins  plan.Pins
	o     basis.Options
	now   time.Time
	stale observed.State
	chaos bool
	owned bool // one owner a cluster is expected at every moment
	log   []Outcome

	target   map[string]int  // where a live rollout goes; nil: the leader forgot
	moved    map[string]bool // clusters that anybody ever moved
	owners   map[string][]int
	counts   []int       // what spec.replicas was, each time it changed
	adrift   int         // how many servers may be without a new owner at once while they move; 0 = any number
	dropped  bool        // what stopped the workload was abandoned
	held     []diff.Held // in the end
	stopping bool        // x0y leaves every cluster without an owner for a while
	mischief func()      // what happens to the fleet between two cycles
}

func (r *run) check(when string) {
	r.t.Helper()
	if stopped := r.dropped || r.plan.Rollout != nil && r.plan.Rollout.Mode == plan.ModeX0Y; r.fleet.Replicas < 1 && !stopped {
		r.t.Fatalf("%s the workload stands at %d replicas", when, r.fleet.Replicas)
	}
	if wrong := r.fleet.misowned(); r.owned && wrong != "" {
		r.t.Fatalf("%s in stage %+v: %s", when, r.plan.Rollout, wrong)
	}
	r.watch(when)
}

// watch knows what no mode may do: give a cluster a second owner, or another one to a cluster that was not to move.
func (r *run) watch(when string) {
	r.t.Helper()
	if r.moved == nil {
		return
	}
	if n := len(r.counts); n == 0 || r.counts[n-1] != r.fleet.Replicas {
		r.counts = append(r.counts, r.fleet.Replicas)
	}
	adrift := map[string]bool{}
	for name, s := range r.fleet.stamps {
		if r.moved[name] && !r.fleet.served(name) {
			adrift[s.Server] = true
		}
		if r.stopping && !s.Managed() { // what ballast may not write may be above one of two counts
			continue
		}
		owners, before := r.fleet.owners(name), r.owners[name]
		if len(owners) > 1 {
			r.t.Fatalf("%s in stage %+v: cluster %s with shard %d is owned by %v; fleet %s", when, r.plan.Rollout, name, r.fleet.stamps[name].Shard, owners, r.fleet)
		}
		if before != nil && !r.moved[name] && !r.stopping && !slices.Equal(before, owners) {
			r.t.Fatalf("%s in stage %+v: cluster %s came from %v to %v, though nobody moved it; fleet %s", when, r.plan.Rollout, name, before, owners, r.fleet)
		}
		if before == nil || r.moved[name] {
			r.owners[name] = owners
		}
	}
	if now := r.plan.Rollout; r.adrift > 0 && len(adrift) > r.adrift && now != nil && (now.Stage == plan.Moving || now.Stage == plan.Verifying) {
		r.t.Fatalf("%s in stage %+v: %d clusters wait for their new owners, %d may", when, r.plan.Rollout, len(adrift), r.adrift)
	}
}

// loop is one cycle; with chaos the write or any of the steps may be lost, and what is seen may be a cycle old.
func (r *run) loop() {
	if r.mischief != nil {
		r.mischief()
	}
	seen := r.fleet.seen()
	if r.chaos && r.stale.Workload != nil && rapid.IntRange(0, 4).Draw(r.t, "stale") == 0 {
		seen = r.stale
	}
	r.stale = r.fleet.seen()
	next, progress := Advance(plan.NewView(r.plan, r.pins), seen, r.target, r.o, r.now)
	if !r.chaos || rapid.IntRange(0, 4).Draw(r.t, "lost") > 0 {
		if !next.SameEnforced(r.plan) {
			r.plan = r.stored(next)
		}
		if next.Rollout != nil && r.moved != nil {
			for name := range next.Rollout.Moves {
				r.moved[name] = true
			}
		}
		r.log = append(r.log, progress.Outcome)
	}
	steps := diff.Between(plan.NewView(r.plan, r.pins), seen, diff.Options{Nudge: true}).Steps
	if r.chaos && r.moved != nil && len(steps) > 1 {
		steps = rapid.Permutation(steps).Draw(r.t, "order")
	}
	for _, step := range steps {
		if r.chaos && rapid.IntRange(0, 3).Draw(r.t, "dropped") == 0 {
			continue
		}
		r.fleet.do(step)
		r.check(fmt.Sprintf("after %q", step))
	}
	ticks := 2
	if r.chaos {
		ticks = rapid.IntRange(0, 4).Draw(r.t, "ticks")
	}
	for range ticks {
		r.fleet.tick()
		r.check("after a tick")
	}
	r.now = r.now.Add(10 * time.Second)
	if r.chaos {
		r.now = r.now.Add(time.Duration(rapid.IntRange(-40, 60).Draw(r.t, "clock")) * time.Second)
	}
}

// stored sends the plan through its document, as the next leader reads it.
func (r *run) stored(p plan.Plan) plan.Plan {
	text, err := codec.Encode(p)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err = codec.Decode(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *run) untilDone(loops int) {
	for range loops {
		r.loop()
		seen := r.fleet.seen()
		agenda := diff.Between(plan.NewView(r.plan, r.pins), seen, diff.Options{})
		stands := r.fleet.Stuck || r.plan.FreeReplicas || len(agenda.Held) > 0 || seen.Workload.Settled(r.plan)
		if r.held = agenda.Held; r.plan.Rollout == nil && len(agenda.Steps) == 0 && stands {
			return
		}
	}
	r.t.Fatalf("not done after %d loops: rollout %+v, fleet %s", loops, r.plan.Rollout, r.fleet)
}

type change struct {
	from, to       plan.Count
	before, after  map[string]int
	pins           plan.Pins
	restart, found bool
}

// drawChange draws a fleet in which each cluster has one owner, or (found) one that Argo CD does not shard, and a plan.
func drawChange(t *rapid.T) change {
	c := change{found: rapid.IntRange(0, 3).Draw(t, "found") == 0, restart: rapid.Bool().Draw(t, "restart")}
	c.from.Replicas = rapid.IntRange(1, 5).Draw(t, "from")
	c.to.Replicas = rapid.IntRange(1, 5).Draw(t, "to")
	if !c.found {
		c.from.ControllerReplicas = c.from.Replicas + rapid.IntRange(0, 2).Draw(t, "spareEnv")
	}
	c.to.ControllerReplicas = c.to.Replicas + rapid.IntRange(0, 2).Draw(t, "spareEnvTo")
	c.before, c.after, c.pins = map[string]int{}, map[string]int{}, plan.Pins{}
	for i := range rapid.IntRange(1, 12).Draw(t, "clusters") {
		name := fmt.Sprintf("c%02d", i)
		c.before[name] = rapid.IntRange(0, c.from.Replicas-1).Draw(t, "before")
		c.after[name] = rapid.IntRange(0, c.to.Replicas-1).Draw(t, "after")
		if rapid.IntRange(0, 5).Draw(t, "pinned") == 0 {
			c.pins[name] = c.after[name]
		}
	}
	return c
}

func isNew(name string) bool { return name > "c09" }

// start begins the change; clusters beyond the plan in force are new, with the shard they were created with.
func (c change) start(t *rapid.T, chaos bool) *run {
	known := maps.Clone(c.before)
	maps.DeleteFunc(known, func(name string, _ int) bool { return isNew(name) })
	p, err := Begin(newPlan(c.from.Replicas, c.from.ControllerReplicas, known),
		Proposal{Replicas: c.to.Replicas, ControllerReplicas: c.to.ControllerReplicas, Rows: rows(c.after)}, basis.Options{}, start)
	if err != nil {
		t.Fatal(err)
	}
	return &run{t: t, fleet: newFleet(c.from.Replicas, c.from.ControllerReplicas, c.before), plan: p, pins: c.pins, chaos: chaos,
		owned: c.from.Replicas == 1 || c.from.ControllerReplicas > 1, o: basis.Options{RolloutRestart: c.restart, StageTimeout: time.Hour}, now: start}
}

func TestEveryClusterHasOneOwnerAtEveryMomentAndTheRolloutEndsAsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChange(t)
		calm, chaos := c.start(t, false), c.start(t, true)
		calm.untilDone(200)
		chaos.untilDone(2000)
		for _, r := range []*run{calm, chaos} {
			if diff := cmp.Diff(rows(c.after), r.plan.Clusters); diff != "" {
				t.Fatalf("rows at the end (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.after, r.fleet.shards()); diff != "" {
				t.Fatalf("shards at the end (-want +got):\n%s", diff)
			}
			got := r.fleet.count()
			if want := c.ends(); got != want {
				t.Fatalf("the workload ends at %+v, want %+v", got, want)
			}
		}
		if diff := cmp.Diff(calm.plan, chaos.plan); diff != "" {
			t.Fatalf("a calm and a crashing run end differently (-calm +crashing):\n%s", diff)
		}
	})
}

// ends is the count the fleet ends with: a change that changes nothing leaves an absent env alone.
func (c change) ends() plan.Count {
	if c.from == c.to {
		return c.from
	}
	return c.to
}

func TestAWorkloadThatNeverBecomesReadyComesBackToWhereItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChange(t)
		c.restart = false
		if c.from.ControllerReplicas == 0 {
			c.from.ControllerReplicas = c.from.Replicas
		}
		if c.from == c.to {
			c.to.Replicas, c.to.ControllerReplicas = c.to.Replicas+1, c.to.ControllerReplicas+1
		}
		r := c.start(t, rapid.Bool().Draw(t, "chaos"))
		r.o.StageTimeout = 10 * time.Minute
		r.fleet.Stuck = true
		r.untilDone(2000)
		got := r.fleet.count()
		// An env that stays restarts nothing, and a workload that only shrinks has no pod that must become ready.
		if got == c.to && c.to.ControllerReplicas == c.from.ControllerReplicas && c.to.Replicas <= c.from.Replicas {
			return
		}
		if r.plan.Rollout != nil || got != c.from {
			t.Fatalf("the workload ends at %+v with rollout %+v, want %+v", got, r.plan.Rollout, c.from)
		}
		for name, row := range r.plan.Clusters {
			if row.Replica >= c.from.Replicas {
				t.Fatalf("cluster %s stays on replica %d of %d", name, row.Replica, c.from.Replicas)
			}
			if c.to.Replicas >= c.from.Replicas && !isNew(name) && row.Replica != c.before[name] {
				t.Fatalf("cluster %s moved from %d to %d, though growing failed", name, c.before[name], row.Replica)
			}
		}
	})
}

func TestStepsAreDeterministicAndLeaveWhatTheyReadAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChange(t)
		r := c.start(t, true)
		for range rapid.IntRange(0, 10).Draw(t, "loops") {
			r.loop()
		}
		seen := r.fleet.seen()
		shuffled := observed.State{Workload: seen.Workload, Secrets: rapid.Permutation(seen.Secrets).Draw(t, "order")}
		v, before := plan.NewView(r.plan, r.pins), r.plan.Clone()
		if diff := cmp.Diff(diff.Between(v, seen, diff.Options{}), diff.Between(v, shuffled, diff.Options{})); diff != "" {
			t.Fatalf("the order of Secrets changes the steps:\n%s", diff)
		}
		a, pa := Advance(v, seen, nil, r.o, r.now)
		b, pb := Advance(v, shuffled, nil, r.o, r.now)
		if diff := cmp.Diff(a, b) + cmp.Diff(pa, pb); diff != "" {
			t.Fatalf("the order of Secrets changes the advance:\n%s", diff)
		}
		if diff := cmp.Diff(before, r.plan); diff != "" {
			t.Fatalf("the plan in force was changed in place:\n%s", diff)
		}
	})
}

func TestTheOrderOfWhatIsSeenChangesNothingInAnyMode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJourney(t)
		mode := rapid.SampledFrom([]string{plan.ModeLive, plan.ModeX0Y}).Draw(t, "mode")
		j.free = j.free && mode == plan.ModeLive
		r := j.begin(t, mode)
		r.chaos, r.stopping = true, mode == plan.ModeX0Y
		for range rapid.IntRange(0, 20).Draw(t, "loops") {
			r.loop()
		}
		seen := r.fleet.seen()
		shuffled := seen
		shuffled.Secrets, shuffled.Pods = rapid.Permutation(seen.Secrets).Draw(t, "secrets"), rapid.Permutation(seen.Pods).Draw(t, "pods")
		v, before := plan.NewView(r.plan, r.pins), r.plan.Clone()
		a, pa := Advance(v, seen, r.target, r.o, r.now)
		b, pb := Advance(v, shuffled, r.target, r.o, r.now)
		o := diff.Options{Nudge: true}
		if said := cmp.Diff(a, b) + cmp.Diff(pa, pb) + cmp.Diff(diff.Between(v, seen, o), diff.Between(v, shuffled, o)); said != "" {
			t.Fatalf("the order of what is seen changes the answer:\n%s", said)
		}
		if diff := cmp.Diff(before, r.plan); diff != "" {
			t.Fatalf("the plan in force was changed in place:\n%s", diff)
		}
	})
}
