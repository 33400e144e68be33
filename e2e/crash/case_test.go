package crash_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// crashMode is a rollout mode as it is configured.
type crashMode string

const (
	crashLive    crashMode = "live"
	crashX0Y     crashMode = "x0y"
	crashDefault crashMode = "default"
	crashRestart crashMode = "default with rolloutRestart"
)

func crashModes() []crashMode { return []crashMode{crashLive, crashX0Y, crashDefault, crashRestart} }

func (m crashMode) rollout() config.Rollout {
	r := config.Rollout{StageTimeout: config.Duration(4 * time.Minute)}
	switch m {
	case crashLive:
		r.Live = &config.LiveRollout{MaxMovesPerWave: 3, Nudge: true}
	case crashX0Y:
		r.X0Y = &config.X0YRollout{}
	default:
		r.Default = &config.DefaultRollout{RolloutRestart: m == crashRestart}
	}
	return r
}

// crashCase is a fleet as it was found and what people then want of it.
type crashCase struct {
	seed     uint64
	mode     crashMode
	replicas int
	env      string // as found; empty: absent
	loads    map[string]float64
	goals    []crashGoal
	change   func(*config.PlannerConfig) // of the configuration; may be nil
}

// crashMaxReplicas is the configured bound, and with it what mode live holds the env at.
const crashMaxReplicas = 6

// newCrashCase makes the nth fleet of a mode.
func newCrashCase(seed uint64, mode crashMode, n int) crashCase {
	r := rand.New(rand.NewPCG(seed, uint64(n)<<8|uint64(slices.Index(crashModes(), mode))))
	c := crashCase{seed: r.Uint64(), mode: mode, replicas: 2 + r.IntN(3), loads: map[string]float64{}}
	c.env = []string{strconv.Itoa(c.replicas), strconv.Itoa(c.replicas), strconv.Itoa(c.replicas + 1), ""}[r.IntN(4)]
	for i := range 6 + r.IntN(7) {
		c.loads[fmt.Sprintf("c%02d", i)] = float64(1 + r.IntN(40))
	}
	pairs := [][]crashGoal{
		{crashGrow(1), crashShrink()}, {crashRollback()}, {crashCordon(), crashUncordon()}, {crashIll(), crashHeal()},
		{crashGrow(2), crashCordon(), crashUncordon()}, {crashShift(), crashGrow(1)},
	}
	c.goals = append([]crashGoal{crashAdopt()}, pairs[(n+slices.Index(crashModes(), mode))%len(pairs)]...)
	return c
}

func (c crashCase) String() string {
	s := fmt.Sprintf("mode %s, %d replicas, env %q, %d clusters:", c.mode, c.replicas, c.env, len(c.loads))
	for _, g := range c.goals {
		s += " " + g.name
	}
	return s
}

func (c crashCase) config(namespace string) config.PlannerConfig {
	most := crashMaxReplicas
	cfg := sim.Config()
	cfg.Mode, cfg.Rollout = plan.Enforce, c.mode.rollout()
	cfg.Target = plan.Target{Kind: plan.StatefulSet, Namespace: namespace, Name: crashWorkload}
	cfg.Partition.Replicas, cfg.Partition.MaxReplicas = &config.Replicas{Fixed: c.replicas}, &most
	cfg.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(time.Minute), MinSamples: 2}}
	cfg.Failover = &config.Failover{After: config.Duration(2 * time.Minute), Settle: config.Duration(time.Minute)}
	if c.change != nil {
		c.change(&cfg)
	}
	return cfg
}

// crashEnd is how a fleet stands when nothing is left to do. That the Secrets and the workload are the plan's is settled's
// to see.
type crashEnd struct {
	Replicas, Env int
	Rows          map[string]int
	Makespan      float64 // the heaviest replica's load
}

func (r *crashRun) end() crashEnd {
	p := r.watch.plan
	e := crashEnd{Replicas: p.Replicas, Env: p.ControllerReplicas, Rows: map[string]int{}}
	for name, row := range p.Clusters {
		e.Rows[name] = row.Replica
	}
	e.Makespan = slices.Max(r.carried())
	return e
}

// carried is the load of each replica, by the rows.
func (r *crashRun) carried() []float64 {
	carried := make([]float64, max(crashMaxReplicas, r.watch.plan.Replicas))
	for name, row := range r.watch.plan.Clusters {
		carried[row.Replica] += r.fleet.loads[name]
	}
	return carried
}

// crashGoal is what people want: begin says so, and done, which may be nil, what must have come of it. Empties says that it
// empties a replica and levels nothing.
type crashGoal struct {
	name    string
	begin   func(*crashRun)
	done    func(*crashRun, crashEnd)
	empties bool
}

// crashAdopt: the fleet as found is stamped, prepared and levelled.
func crashAdopt() crashGoal {
	return crashGoal{name: "adopt", begin: (*crashRun).lead}
}

func (r *crashRun) fix(replicas int) {
	r.note("GOAL %d replicas", replicas)
	r.configure(func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Fixed: replicas} })
}

func (r *crashRun) has(replicas int) {
	if p := r.watch.plan; p.Replicas != replicas {
		r.fatal("the plan has %d replicas, want %d", p.Replicas, replicas)
	}
}

func crashGrow(by int) crashGoal {
	return crashGoal{name: fmt.Sprintf("grow by %d", by), begin: func(r *crashRun) { r.fix(r.watch.plan.Replicas + by) },
		done: func(r *crashRun, _ crashEnd) { r.has(r.config.Partition.Replicas.Fixed) }}
}

func crashShrink() crashGoal {
	return crashGoal{name: "shrink", begin: func(r *crashRun) { r.fix(r.watch.plan.Replicas - 1) },
		done: func(r *crashRun, _ crashEnd) { r.has(r.config.Partition.Replicas.Fixed) }}
}

// crashShift: clusters become lighter and heavier.
func crashShift() crashGoal {
	return crashGoal{name: "shift", begin: (*crashRun).shift}
}

func (r *crashRun) shift() {
	r.note("GOAL other loads")
	loads := maps.Clone(r.fleet.loads)
	for i, c := range r.fleet.Clusters {
		r.fleet.loads[c] = loads[r.fleet.Clusters[len(r.fleet.Clusters)-1-i]] + float64(7*(i%3))
	}
}

// heaviest is the replica with most of the load, which it is worth to empty.
func (r *crashRun) heaviest() int {
	carried := r.carried()
	return slices.Index(carried, slices.Max(carried))
}

func crashCordon() crashGoal {
	return crashGoal{name: "cordon", begin: func(r *crashRun) {
		r.empty()
		r.note("GOAL an empty replica %d", r.emptied)
		r.annotate(plan.AnnotationCordon, fmt.Sprintf("%d=%s", r.emptied, r.clock.Now().Add(24*time.Hour).Format(time.RFC3339)))
	}, done: (*crashRun).isEmptied, empties: true}
}

// empty chooses the replica that is to be emptied.
func (r *crashRun) empty() { r.emptied, r.before = r.heaviest(), r.end() }

// isEmptied looks whether a replica's clusters, and no others, moved.
func (r *crashRun) isEmptied(e crashEnd) {
	for _, name := range namesIn(e.Rows) {
		was, is := r.before.Rows[name], e.Rows[name]
		if is == r.emptied || was != is && was != r.emptied {
			r.fatal("cluster %s went from %d to %d when replica %d was to be emptied", name, was, is, r.emptied)
		}
	}
}

func crashUncordon() crashGoal {
	return crashGoal{name: "uncordon", begin: func(r *crashRun) { r.annotate(plan.AnnotationCordon, "") }}
}

func crashIll() crashGoal {
	return crashGoal{name: "fall ill", begin: func(r *crashRun) {
		r.empty()
		r.note("GOAL replica %d falls ill", r.emptied)
		r.fleet.Broken[r.emptied] = true
	}, done: (*crashRun).isEmptied, empties: true}
}

func crashHeal() crashGoal {
	return crashGoal{name: "recover", begin: func(r *crashRun) {
		r.note("GOAL replica %d recovers", r.emptied)
		delete(r.fleet.Broken, r.emptied)
	}}
}

// crashRollback: loads shift, and a person wants the plan before that back. Once it holds, the balance leaves it alone for
// half an hour.
func crashRollback() crashGoal {
	return crashGoal{name: "shift and roll back", begin: func(r *crashRun) {
		before, revision := r.end(), r.watch.plan.Revision
		r.shift()
		r.settle()
		r.note("GOAL revision %d", revision)
		r.annotate(plan.AnnotationRollback, strconv.FormatInt(revision, 10))
		asked := func() bool { return r.planMap().Annotations[plan.AnnotationRollback] != "" }
		r.until("the rollback is answered", crashPatience, func() bool { return r.leader != nil && !asked() })
		r.wantEnd("when the rollback is answered", before)
		answered := r.clock.Now()
		r.until("the peace after it", heldOffFor, func() bool { return r.clock.Since(answered) >= heldOffFor-2*time.Minute })
		r.wantEnd("for half an hour after the rollback", before)
	}}
}
