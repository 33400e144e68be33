package crash_test

import (
	"slices"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/ownership/scrape"
	"ballast/planner/sim"
)

// crashResync is the shortest time after which an owner that nobody nudged looks at a cluster; the longest is half as
// much again (timeout.reconciliation and its jitter, as shipped).
const crashResync = 2 * time.Minute

// crashFleet is the simulated fleet behind the StatefulSet and the Secrets that stand in the API server, with its loads.
type crashFleet struct {
	*sim.Fleet
	loads map[string]float64
}

func newCrashFleet(seed uint64, loads map[string]float64) *crashFleet {
	timing := sim.Usual()
	timing.Resync = crashResync
	return &crashFleet{sim.NewFleet(seed, timing, namesIn(loads)), loads}
}

// countedOwners are the replicas that own a cluster now, but for pods that own everything (an env that is absent or at
// most 1).
func (f *crashFleet) countedOwners(cluster string) []int {
	return slices.DeleteFunc(f.Owners(cluster), func(ordinal int) bool { return f.Pods[ordinal].Env <= 1 })
}

// observe is what the pods say of themselves.
func (f *crashFleet) observe(found discover.Fleet, now time.Time) input.Observed {
	reports := f.Reports(now)
	return input.Observed{Known: true, Pods: scrape.Pods(reports), Reported: f.Observation(reports, found)}
}
