package planner

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
	"ballast/planner/rollout"
)

// epoch is when every simulated world begins.
var epoch = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// world is a fleet that does at once what it is told: the Secrets, the workload and Prometheus' answers of a cycle, the
// plan ConfigMap, and the memory between cycles.
type world struct {
	in     Inputs
	writes int
	last   Outcome
}

// newWorld has clusters c000... with the given loads (in applications), on a StatefulSet of three replicas.
func newWorld(loads ...float64) *world {
	c := config.Default()
	c.Mode = plan.Enforce
	// Everything at once and without a limit; live.go's worlds have both.
	c.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: c.Rollout.StageTimeout}
	c.Change.Moves.Rate = nil
	c.Poll.Prometheus.Metrics = []config.Metric{{ID: "apps", Query: "apps", Match: &config.Match{Label: "dest_server", To: config.MatchServer}}}
	c.Index.PNorm.Weights = map[string]config.Decimal{"apps": "1"}
	env := "3"
	w := &world{in: Inputs{
		Now: epoch, Config: c, PlannerUser: "system:serviceaccount:argocd:ballast-planner",
		Workload: discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller",
			Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3, CurrentReplicas: 3, EnvReplicas: &env},
		Discovered: discover.Input{Namespace: "argocd"},
		Fetched:    []poll.Fetched{{Metric: "apps"}},
	}}
	for i, load := range loads {
		w.add(fmt.Sprintf("c%03d", i), load)
	}
	return w
}

func (w *world) add(name string, load float64) {
	w.in.Discovered.Secrets = append(w.in.Discovered.Secrets, discover.Secret{UID: "uid-" + name, Name: name, Namespace: "argocd",
		Cluster: name, Server: server(name), HasData: true})
	w.setLoad(name, load)
}

func server(name string) string { return "https://" + name + ".example" }

func (w *world) setLoad(name string, load float64) {
	f := &w.in.Fetched[0]
	for i := range f.Samples {
		if f.Samples[i].Key == server(name) {
			f.Samples[i].Value = load
			return
		}
	}
	f.Samples = append(f.Samples, poll.Sample{Key: server(name), Value: load})
}

func (w *world) remove(name string) {
	for i, s := range w.in.Discovered.Secrets {
		if s.Name == name {
			w.in.Discovered.Secrets = append(w.in.Discovered.Secrets[:i:i], w.in.Discovered.Secrets[i+1:]...)
			return
		}
	}
}

func (w *world) secret(name string) *discover.Secret {
	for i := range w.in.Discovered.Secrets {
		if w.in.Discovered.Secrets[i].Name == name {
			return &w.in.Discovered.Secrets[i]
		}
	}
	return nil
}

// cycle runs one cycle, writes its plan and does its steps.
func (w *world) cycle() Outcome {
	out := Cycle(w.in)
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

func (w *world) apply(out Outcome) {
	view := plan.NewView(w.in.InForce.Clone(), out.Pins)
	for _, step := range rollout.Steps(view, Seen(out.Fleet, w.in.Workload), rollout.StepOptions{BreakGlass: w.in.BreakGlass}).Steps {
		switch s := step.(type) {
		case rollout.PatchShard:
			w.secret(s.Secret).Shard = discover.ShardValue{State: discover.ShardValid, N: s.Shard}
		case rollout.PatchWorkload:
			wl := &w.in.Workload
			if s.Replicas != nil {
				wl.Replicas, wl.ReadyReplicas, wl.UpdatedReplicas, wl.CurrentReplicas = *s.Replicas, *s.Replicas, *s.Replicas, *s.Replicas
			}
			if s.ControllerReplicas != nil {
				env := strconv.Itoa(*s.ControllerReplicas)
				wl.EnvReplicas = &env
			}
			if s.RestartedAt != "" {
				wl.RestartedAt = s.RestartedAt
			}
		}
	}
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

// lognormal is a fleet's load as fleets are: many small clusters and a few heavy ones.
func lognormal(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	loads := make([]float64, n)
	for i := range loads {
		loads[i] = math.Ceil(20 * math.Exp(r.NormFloat64()))
	}
	return loads
}

// problems are the kinds that a cycle reported, with their subjects.
func problems(out Outcome) []string {
	var kinds []string
	for _, p := range out.Problems {
		kinds = append(kinds, string(p.Phase)+"/"+p.Kind+"/"+p.Subject)
	}
	return kinds
}

// clone copies inputs through JSON, as a replay does.
func clone(t testing.TB, in Inputs) Inputs {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Inputs
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
