package transitions

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/rollout"
)

// figures are what a run counted.
type figures struct {
	transitions map[string]int // rollouts from their beginning to their end, by direction
	adoptions   int            // fleets taken over
	steps       int            // events after which the owners were asked for and judged
	answers     int            // whose a cluster is
	stamps      int            // shards written to take a fleet over
	moves       int            // writes that gave a cluster another owner
	deliveries  int            // changes that a pod saw
	lapses      int            // of those, one of several Secrets that went
	starts      int            // of pods' processes
	crashes     int
	replaced    int         // pods, for the environment
	down        int         // answers that a cluster whose pod is starting again has no owner
	inTransit   map[int]int // answers of clusters on their way, by the number of owners
	outcomes    map[rollout.Outcome]int
}

// count counts the answer of one cluster's owners.
func (f *figures) count(c claim, owners []int) {
	f.answers++
	switch {
	case !c.settled:
		f.inTransit[len(owners)]++
	case len(owners) == 0:
		f.down++
	}
}

// took is the number of transitions that ended.
func (f *figures) took() int {
	return f.transitions["grow"] + f.transitions["shrink"] + f.transitions["level"]
}

func (f *figures) String() string {
	var outcomes []string
	for _, o := range slices.Sorted(maps.Keys(f.outcomes)) {
		outcomes = append(outcomes, fmt.Sprintf("%s %d", o, f.outcomes[o]))
	}
	return fmt.Sprintf("%d transitions (%d grow, %d shrink, %d level) of %d adopted fleets: %d steps (%d stamps, %d moves, %d changes seen by a pod, %d of them one of several Secrets that went, %d starts of processes, %d crashes, %d pods replaced), "+
		"%d answers of Argo CD (on their way with 0, 1, 2, 3 owners: %d, %d, %d, %d; %d with their pod down); %s",
		f.took(), f.transitions["grow"], f.transitions["shrink"], f.transitions["level"], f.adoptions, f.steps, f.stamps, f.moves, f.deliveries, f.lapses, f.starts, f.crashes, f.replaced,
		f.answers, f.inTransit[0], f.inTransit[1], f.inTransit[2], f.inTransit[3], f.down, strings.Join(outcomes, ", "))
}

// perLife is how many transitions a fleet goes through, the adoption's included.
const perLife = 10

// TestNoTransitionGivesAClusterTwoOwnersOrNone takes 500 transitions, or as many as BALLAST_TRANSITIONS says, from
// -rapid.seed, or 1.
func TestNoTransitionGivesAClusterTwoOwnersOrNone(t *testing.T) {
	views := startViews(t)
	asked := lives(t, cmp.Or(os.Getenv("BALLAST_TRANSITIONS"), "500"))
	f := &figures{transitions: map[string]int{}, inTransit: map[int]int{}, outcomes: map[rollout.Outcome]int{}}
	begun := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		fleet := drawFleet(t, views, f)
		l := &life{fleet: fleet, plan: fleet.firstPlan(), pins: plan.Pins{}, now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
		l.adopt(l.plan)
		f.adoptions++
		l.plan.Mode = plan.Enforce
		for range perLife {
			l.transition()
		}
	})
	if took := f.took(); took < asked {
		t.Errorf("%d transitions instead of %d", took, asked) // rapid ends early where the test's deadline is near
	}
	t.Logf("%s; %.1f s", f, time.Since(begun).Seconds())
}

// lives sets how many fleets are drawn, from a seed that is the same in every run unless one is given.
func lives(t *testing.T, transitions string) int {
	t.Helper()
	n, err := strconv.Atoi(transitions)
	if err != nil {
		t.Fatalf("reading BALLAST_TRANSITIONS: %v", err)
	}
	seed := flag.Lookup("rapid.seed").Value.String()
	if seed == "0" {
		seed = "1"
	}
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa((n + perLife - 1) / perLife), "rapid.seed": seed} {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, before) }) // it was read from there
	}
	return n
}
