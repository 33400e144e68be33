// Package sim has the fleets that tests plan for: a configuration, a workload, Secrets and loads, and what becomes of
// them when steps are done as Kubernetes and Argo CD do them (Fleet); package instant does them at once. Nothing but
// tests imports it.
package sim

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// Epoch is when every simulated world begins.
var Epoch = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// PlannerUser is who writes the plan.
const PlannerUser = "system:serviceaccount:argocd:ballast-planner"

// Config does everything at once and without a limit, by one metric, the number of applications.
func Config() config.PlannerConfig {
	c := config.Default()
	c.Mode = plan.Enforce
	c.Rollout = config.Rollout{Default: &config.DefaultRollout{}, StageTimeout: c.Rollout.StageTimeout}
	c.Change.Moves.Rate, c.Change.Restarts.Every, c.Size.Interval = nil, 0, 0
	c.Partition = config.Partition{LPT: &config.LPT{}}
	c.Evaluate = config.Evaluate{MostWanted: &config.MostWanted{Window: config.Duration(9 * time.Minute),
		MinSamples: 10}} // one vote a minute
	c.Poll.Prometheus.Metrics = []config.Metric{{ID: "apps", Query: "apps",
		Match: &config.Match{Label: "dest_server", To: config.MatchServer}}}
	c.Index.PNorm.Weights = map[string]config.Decimal{"apps": "1"}
	return c
}

// Workload is a StatefulSet of three replicas that are ready.
func Workload() discover.Workload {
	env := "3"
	return discover.Workload{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller",
		Container: "application-controller",
		Replicas:  3, ReadyReplicas: 3, UpdatedReplicas: 3, CurrentReplicas: 3, EnvReplicas: &env}
}

// Server is the server of the cluster with that name.
func Server(name string) string { return "https://" + name + ".example" }

// Secret is the cluster Secret of that name, without a shard.
func Secret(name string) discover.Secret {
	return discover.Secret{UID: "uid-" + name, Name: name, Namespace: "argocd", Cluster: name, Server: Server(name),
		HasData: true}
}

// SetLoad has Prometheus answer that load for a cluster.
func SetLoad(f *poll.Fetched, name string, load float64) {
	for i := range f.Samples {
		if f.Samples[i].Key == Server(name) {
			f.Samples[i].Value = load
			return
		}
	}
	f.Samples = append(f.Samples, poll.Sample{Key: Server(name), Value: load})
}

// Find is the Secret of that name; nil for none.
func Find(secrets []discover.Secret, name string) *discover.Secret {
	for i := range secrets {
		if secrets[i].Name == name {
			return &secrets[i]
		}
	}
	return nil
}

// FromEnv is a number that make soak sets.
func FromEnv(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return n
}

// Lognormal is a fleet's load as fleets are: many small clusters and a few heavy ones.
func Lognormal(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	loads := make([]float64, n)
	for i := range loads {
		loads[i] = math.Ceil(20 * math.Exp(r.NormFloat64()))
	}
	return loads
}
