package gather

import (
	"fmt"

	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/replay/instant"
	"ballast/planner/sim"
)

// Names of the simulation that every test here uses.
var (
	epoch  = sim.Epoch
	server = sim.Server
)

// world is a fleet that does at once what it is told.
type world struct{ in input.Inputs }

func newWorld(loads ...float64) *world {
	w := &world{in: input.Inputs{Now: epoch, Config: sim.Config(), PlannerUser: sim.PlannerUser, Workload: sim.Workload(),
		Discovered: discover.Input{Namespace: "argocd"}, Fetched: []poll.Fetched{{Metric: "apps"}}}}
	for i, load := range loads {
		w.add(fmt.Sprintf("c%03d", i), load)
	}
	return w
}

func (w *world) add(name string, load float64) {
	w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, sim.Secret(name))
	sim.SetLoad(&w.in.Fetched[0], name, load)
}

func (w *world) cycle() {
	out := cycle.Run(w.in)
	next := out.Next.Clone()
	next.Revision++
	w.in.Memory, w.in.InForce = out.Memory, &next
	due := diff.Between(plan.NewView(next.Clone(), out.Pins), standing.Seen(next.Clusters, out.Fleet, out.Memory.Known, w.in.Workload), diff.Options{})
	instant.Do(due.Steps, &w.in.Workload, w.in.Discovered.Secrets)
}
