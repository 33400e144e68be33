package cycle

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
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
	epoch     = sim.Epoch
	server    = sim.Server
	lognormal = sim.Lognormal
)

// world is a fleet that does at once what it is told: the Secrets, the workload and Prometheus' answers of a cycle, the
// plan ConfigMap, and the memory between cycles.
type world struct {
	in     input.Inputs
	writes int
	last   outcome.Outcome

	refuses map[string]bool // Secrets that the API server lets nobody write
}

// newWorld has clusters c000... with the given loads (in applications), on a StatefulSet of three replicas.
func newWorld(loads ...float64) *world {
	w := &world{in: input.Inputs{
		Now: epoch, Config: sim.Config(), PlannerUser: sim.PlannerUser, Workload: sim.Workload(),
		Discovered: discover.Input{Namespace: "argocd"},
		Fetched:    []poll.Fetched{{Metric: "apps"}},
	}}
	for i, load := range loads {
		w.add(fmt.Sprintf("c%03d", i), load)
	}
	return w
}

func (w *world) add(name string, load float64) {
	w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, sim.Secret(name))
	w.setLoad(name, load)
}

// known has every Secret known, as if they had come day by day.
func (w *world) known() {
	var names []string
	for _, s := range w.in.Discovered.Secrets {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	w.in.Memory.Known.Clusters, w.in.Memory.Known.Fresh = names, nil
}

func (w *world) setLoad(name string, load float64) { sim.SetLoad(&w.in.Fetched[0], name, load) }

func (w *world) remove(name string) {
	for i, s := range w.in.Discovered.Secrets {
		if s.Name == name {
			w.in.Discovered.Secrets = append(w.in.Discovered.Secrets[:i:i], w.in.Discovered.Secrets[i+1:]...)
			return
		}
	}
}

func (w *world) secret(name string) *discover.Secret { return sim.Find(w.in.Discovered.Secrets, name) }

// cycle runs one cycle, writes its plan and does its steps.
func (w *world) cycle() outcome.Outcome {
	out := Run(w.in)
	w.last = out
	w.in.Memory = out.Memory
	if out.Changed {
		w.writes++
		next := out.Next.Clone()
		next.Revision++
		if w.in.InForce != nil {
			next.Revision = w.in.InForce.Revision + 1
		}
		w.in.InForce = &next
	}
	if w.in.InForce != nil {
		w.apply(out)
	}
	return out
}

func (w *world) apply(out outcome.Outcome) {
	view := plan.NewView(w.in.InForce.Clone(), out.Pins)
	agenda := diff.Between(view, standing.Seen(w.in.InForce.Clusters, out.Fleet, w.in.Memory.Known, w.in.Workload), diff.Options{BreakGlass: w.in.BreakGlass})
	steps := slices.DeleteFunc(agenda.Steps, func(s diff.Step) bool {
		shard, ok := s.(diff.PatchShard)
		return ok && w.refuses[shard.Secret]
	})
	instant.Do(steps, &w.in.Workload, w.in.Discovered.Secrets)
}

// run runs a cycle a minute.
func (w *world) run(cycles int) {
	for range cycles {
		w.in.Now = w.in.Now.Add(time.Minute)
		w.cycle()
	}
}

func (w *world) row(t *testing.T, name string) int {
	t.Helper()
	row, ok := w.in.InForce.Clusters[name]
	if !ok {
		t.Fatalf("the plan has no row for %s", name)
	}
	return row.Replica
}

// problems are the kinds that a cycle reported, with their subjects.
func problems(out outcome.Outcome) []string {
	var kinds []string
	for _, p := range out.Problems {
		kinds = append(kinds, string(p.Phase)+"/"+p.Kind+"/"+p.Subject)
	}
	return kinds
}

// clone copies inputs through JSON, as a replay does.
func clone(t testing.TB, in input.Inputs) input.Inputs {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out input.Inputs
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// clonedSecret is a Secret like another one, for a cluster of its own.
func clonedSecret(w *world, of, name string) *discover.Secret {
	s := *w.secret(of)
	s.Name, s.UID, s.Cluster, s.Server = name, "uid-"+name, name, server(name)
	return &s
}
