package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ballast/e2e/apiserver"
	"ballast/planner/plan"
)

// TestCrashesWhilePeopleHaveTheirSay crashes leaders while pins, a budget, people's replicas or a replica that keeps being
// killed decide what moves. BALLAST_CRASH_CHANGES is how many runs with faults each has.
func TestCrashesWhilePeopleHaveTheirSay(t *testing.T) {
	runs := int(fromEnv(t, "BALLAST_CRASH_CHANGES", 6))
	server := apiserver.Start(t)
	figures := newCrashFigures()
	t.Run("of", func(t *testing.T) {
		for _, mode := range []crashMode{crashLive, crashX0Y, crashDefault} {
			for name, c := range map[string]crashCase{
				"pins": sceneOf(mode, crashPin(false), crashPin(true), crashUnpin()),
			} {
				t.Run(fmt.Sprintf("%s %s", mode, name), func(t *testing.T) {
					t.Parallel()
					c.crash(t, server, runs, figures)
				})
			}
		}
	})
	t.Log(figures)
}

// pin is a person's write of data.pins.
func (r *crashRun) pin(pins plan.Pins) {
	r.Helper()
	var lines []string
	for _, name := range sortedNames(pins) {
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
		for _, name := range sortedNames(r.watch.pins) {
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
	for _, name := range r.fleet.clusters {
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
