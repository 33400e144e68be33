package crash_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"ballast/planner/sim"
)

// TestCrashes takes fleets through what people want of them, once without any fault, and then again and again with faults
// at steps of that first run: the next leader must come to the same end, and on the way there nothing may ever be that
// crashWatch knows of. BALLAST_CRASH_RUNS is how many runs with faults there are in all, BALLAST_SEED where they begin; a
// run's own name with -run repeats it alone.
func TestCrashes(t *testing.T) {
	seed, runs := sim.FromEnv(t, "BALLAST_SEED", 1), int(sim.FromEnv(t, "BALLAST_CRASH_RUNS", 20))
	server := anyServer.Start(t)
	figures := newCrashFigures()
	t.Run("of", func(t *testing.T) {
		const leastOfCase, mostOfCase = 5, 12
		ofCase := min(max(runs/16, leastOfCase), mostOfCase)
		for i, left := 0, runs; left > 0; i, left = i+1, left-ofCase {
			mode := crashModes()[i%len(crashModes())]
			n := i / len(crashModes())
			t.Run(fmt.Sprintf("%s %d", mode, n), func(t *testing.T) {
				newCrashCase(seed, mode, n).crash(t, server, min(ofCase, left), figures)
			})
		}
	})
	t.Logf("seed %d: %s", seed, figures)
}

// TestASeedGivesTheSameCrashAgain, write for write: what a failure prints can be looked into.
func TestASeedGivesTheSameCrashAgain(t *testing.T) {
	server := anyServer.Start(t)
	c := newCrashCase(5, crashLive, 0)
	c.goals = c.goals[:1]
	type ran struct {
		Kinds   []crashKind
		Ends    []crashEnd
		Leaders int
		Took    time.Duration
	}
	var runs []ran
	for range 2 {
		random := rand.New(rand.NewPCG(5, 5))
		r := newCrashRun(t, server, c, newCrashFault(random, 8), newCrashFault(random, 21), newCrashFault(random, 30))
		ends := r.reach(c)
		runs = append(runs, ran{r.faults.kinds, ends, r.leaders, r.clock.Since(epoch)})
	}
	if diff := gocmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// crash runs a case without a fault, and then that many times with some.
func (c crashCase) crash(t *testing.T, server *rest.Config, runs int, figures *crashFigures) {
	began := time.Now()
	reference := newCrashRun(t, server, c)
	ends := reference.reach(c)
	figures.add(c, reference, time.Since(began), 0)
	steps, random := len(reference.faults.kinds), rand.New(rand.NewPCG(c.seed, 3))
	t.Logf("%s; %d writes without a fault", c, steps)
	for i := range runs {
		// One fault at a step of its own share of the run; every other run has two more after it.
		var faults []crashFault
		for j := range 1 + 2*(i%2) {
			from := (i + j*runs/3) % runs * steps / runs
			faults = append(faults, newCrashFault(random, 1+from+random.IntN(max(steps/runs, 1))))
		}
		slices.SortFunc(faults, func(a, b crashFault) int { return cmp.Compare(a.step, b.step) })
		faults = slices.CompactFunc(faults, func(a, b crashFault) bool { return a.step == b.step })
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			began := time.Now()
			r := newCrashRun(t, server, c, faults...)
			same := 0
			for k, end := range r.reach(c) {
				same += r.allow(c.goals[k], end, ends[k])
			}
			figures.add(c, r, time.Since(began), same)
		})
	}
}

// reach goes from goal to goal, and answers how the fleet stood after each.
func (r *crashRun) reach(c crashCase) (ends []crashEnd) {
	r.Helper()
	r.watch.mode = crashModeOf(r.config.Rollout)
	for _, g := range c.goals {
		r.watch.changed = r.clock.Now()
		g.begin(r)
		end := r.settle()
		if g.done != nil {
			g.done(r, end)
		}
		ends = append(ends, end)
	}
	return ends
}

// allow compares an end with the run's that had no fault, and answers 1 where they are the same. A rollout that was cut short
// is decided anew from where it stood, and so may also end otherwise: where a replica is emptied, with its clusters (and no
// others) elsewhere; else with no partition of the same replicas worth a move, which is what crashGain says of a makespan.
func (r *crashRun) allow(g crashGoal, end, want crashEnd) int {
	r.Helper()
	if gocmp.Equal(end, want) {
		return 1
	}
	r.note("goal %q ended otherwise:\n%s", g.name, gocmp.Diff(want, end))
	if end.Replicas != want.Replicas || end.Env != want.Env || !slices.Equal(namesIn(end.Rows), namesIn(want.Rows)) {
		r.fatal("goal %q ended with %d replicas, env %d and %d rows; want %d, %d and %d", g.name, end.Replicas, end.Env, len(end.Rows), want.Replicas, want.Env, len(want.Rows))
	}
	if !g.empties && end.Makespan*(1-crashGain) > want.Makespan {
		r.fatal("goal %q ended with a makespan of %g, without faults it was %g", g.name, end.Makespan, want.Makespan)
	}
	return 0
}

// crashFigures is what was run, for people.
type crashFigures struct {
	runs, references, same, goals, leaders int
	rollouts                               int
	harms, steps, modes, told              map[string]int
	up, down, stopped, real, simulated     map[string]time.Duration
}

func newCrashFigures() *crashFigures {
	return &crashFigures{harms: map[string]int{}, steps: map[string]int{}, modes: map[string]int{}, told: map[string]int{}, up: map[string]time.Duration{},
		down: map[string]time.Duration{}, stopped: map[string]time.Duration{}, real: map[string]time.Duration{}, simulated: map[string]time.Duration{}}
}

func (f *crashFigures) add(c crashCase, r *crashRun, took time.Duration, same int) {
	mode := string(c.mode)
	if r.faulty == 0 {
		f.references++
		mode += " without faults"
	} else {
		f.runs, f.goals, f.same = f.runs+1, f.goals+len(c.goals), f.same+same
	}
	f.modes[mode]++
	f.leaders, f.rollouts = f.leaders+r.leaders, f.rollouts+r.watch.rollouts
	for _, m := range r.faults.met {
		f.harms[string(m.harm)]++
		f.steps[string(m.kind)]++
	}
	for reason, n := range r.told {
		f.told[reason] += n
	}
	f.up[mode], f.down[mode] = max(f.up[mode], r.watch.longestUp), max(f.down[mode], r.watch.longest)
	f.stopped[mode], f.real[mode], f.simulated[mode] = max(f.stopped[mode], r.watch.stopped), max(f.real[mode], took.Round(time.Millisecond)), max(f.simulated[mode], r.clock.Since(epoch))
}

func (f *crashFigures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs with faults, %d without; %d leaders, %d rollouts; %d of %d goals ended the same to the row, the others as well\n",
		f.runs, f.references, f.leaders, f.rollouts, f.same, f.goals)
	fmt.Fprintf(&b, "faults: %v\nat writes of: %v\nevents: %v\n", f.harms, f.steps, f.told)
	for _, mode := range slices.Sorted(maps.Keys(f.modes)) {
		fmt.Fprintf(&b, "%s: %d runs, slowest %s (%s simulated); a cluster without anybody for %s at most, %s with its replica ready; stopped for %s\n",
			mode, f.modes[mode], f.real[mode], f.simulated[mode], f.down[mode], f.up[mode], f.stopped[mode])
	}
	return b.String()
}
