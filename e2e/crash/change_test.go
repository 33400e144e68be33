package crash_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// TestCrashesWhilePeopleHaveTheirSay crashes leaders while pins, a budget, people's replicas or a replica that keeps being
// killed decide what moves. BALLAST_CRASH_CHANGES is how many runs with faults each has.
func TestCrashesWhilePeopleHaveTheirSay(t *testing.T) {
	runs := int(sim.FromEnv(t, "BALLAST_CRASH_CHANGES", 4))
	server := anyServer.Start(t)
	figures := newCrashFigures()
	t.Run("of", func(t *testing.T) {
		for _, mode := range []crashMode{crashLive, crashX0Y, crashDefault} {
			for name, c := range changesOf(mode) {
				t.Run(fmt.Sprintf("%s %s", mode, name), func(t *testing.T) {
					c.crash(t, server, runs, figures)
				})
			}
		}
	})
	t.Log(figures)
}

// changesOf are the cases of a mode.
func changesOf(mode crashMode) map[string]crashCase {
	cases := map[string]crashCase{
		"pins":                     sceneOf(mode, crashPin(false), crashPin(true), crashUnpin()),
		"a replica that is killed": sceneOf(mode, crashDie(), crashSpare()),
	}
	if mode == crashX0Y {
		return cases // it begins nothing that the budget cannot carry whole, and nothing where the replicas are people's
	}
	budget := sceneOf(mode, crashShift(), crashCordon(), crashUncordon())
	budget.change = func(c *config.PlannerConfig) {
		c.Change.Moves.Rate = []config.Rate{{Percent: 25, Period: config.Duration(2 * time.Minute)}}
	}
	cases["a budget"] = budget
	if mode == crashLive { // elsewhere more replicas than the env have two owners of shard 0 before there is a rollout
		people := sceneOf(mode, crashScale(5), crashScale(2))
		people.change = func(c *config.PlannerConfig) { c.Partition.Replicas = &config.Replicas{Workload: true} }
		cases["people's replicas"] = people
	}
	return cases
}

// crashDie: the container of a replica is killed for its memory again and again, and works for a minute in between.
func crashDie() crashGoal {
	return crashGoal{name: "die again and again", begin: func(r *crashRun) {
		rest := r.watch.changed.Add(16 * time.Minute) // what received clusters a short time before would trip
		r.until("no wave answers for what follows", time.Hour, func() bool { return !r.clock.Now().Before(rest) })
		r.empty()
		r.note("GOAL replica %d is killed again and again", r.emptied)
		r.fleet.Dies[r.emptied], r.watch.changed = r.clock.Now(), r.clock.Now()
	}, done: func(r *crashRun, e crashEnd) {
		r.isEmptied(e)
		// A Secret that nobody may write for long leaves its cluster without an owner, and that trips.
		if why := r.planMap().Annotations[plan.AnnotationTripped]; strings.Contains(why, "killed") {
			r.fatal("it tripped: %s", why)
		}
	}, empties: true}
}

func crashSpare() crashGoal {
	return crashGoal{name: "spared", begin: func(r *crashRun) {
		r.note("GOAL replica %d is killed no more", r.emptied)
		delete(r.fleet.Dies, r.emptied)
	}}
}

// crashScale: people, or an autoscaler, give the workload another number of replicas.
func crashScale(replicas int) crashGoal {
	return crashGoal{name: fmt.Sprintf("scale to %d", replicas), begin: func(r *crashRun) {
		r.note("GOAL people scale to %d", replicas)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: crashWorkload}}
		r.must(r.client.Patch(r.ctx, set, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
		r.readWorkload()
		r.watch.workloadWritten()
	}, done: func(r *crashRun, _ crashEnd) {
		if r.has(replicas); r.fleet.Replicas != replicas {
			r.fatal("people's %d replicas became %d", replicas, r.fleet.Replicas)
		}
	}}
}

// pin is a person's write of data.pins.
func (r *crashRun) pin(pins plan.Pins) {
	r.Helper()
	var lines []string
	for _, name := range namesIn(pins) {
		lines = append(lines, fmt.Sprintf("%s: %d\\n", name, pins[name]))
	}
	r.note("GOAL pins %v", pins)
	r.patchPlan(fmt.Sprintf(`{"data":{"pins":"%s"}}`, strings.Join(lines, "")))
}

// crashPin: the first clusters of the lightest and of the heaviest replica change places; beyond pins one to a replica more
// than there are.
func crashPin(beyond bool) crashGoal {
	name := "pin"
	if beyond {
		name = "pin beyond"
	}
	return crashGoal{name: name, begin: func(r *crashRun) {
		pins := plan.Pins{}
		heaviest, replicas := r.heaviest(), r.watch.plan.Replicas
		if beyond {
			pins[r.first(heaviest)] = replicas
		} else {
			lightest := slices.Index(r.carried()[:replicas], slices.Min(r.carried()[:replicas]))
			pins[r.first(heaviest)], pins[r.first(lightest)] = lightest, heaviest
		}
		r.pin(pins)
	}, done: func(r *crashRun, e crashEnd) {
		for _, name := range namesIn(r.watch.pins) {
			if want := r.watch.pins[name]; e.Rows[name] != want {
				r.fatal("cluster %s is pinned to %d, and its row is on %d", name, want, e.Rows[name])
			}
		}
		if len(r.watch.pins) == 0 {
			r.fatal("nothing is pinned")
		}
	}}
}

// first is the first cluster of a replica, by name.
func (r *crashRun) first(replica int) string {
	for _, name := range r.fleet.Clusters {
		if r.watch.plan.Clusters[name].Replica == replica {
			return name
		}
	}
	r.fatal("replica %d has no cluster", replica)
	return ""
}

func crashUnpin() crashGoal {
	return crashGoal{name: "unpin", begin: func(r *crashRun) { r.pin(nil) }}
}
