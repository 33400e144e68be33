package cycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/cycle/memory"
	"ballast/planner/discover"
	"ballast/planner/plan"
)

// weighedFile is a fleet whose growth weights share, from replicas that carry so much each. The loads are applications.
const weighedFile = `apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
interval: 10m
poll:
  maxDrop: 100%%
  prometheus:
    metrics:
    - {id: apps, query: apps, match: {label: dest_server, to: server}}
normalize: {none: {}}
index: {pNorm: {weights: {apps: "1"}}}
partition: {%s, minReplicas: 1, maxReplicas: 16, capacity: "%v"}
size:
  weights: [%s]
  policies:
  - name: ours
    rules:
    - {list: requests, resource: cpu, slope: 100m, input: load}
change: {moves: {rate: []}%s}
rollout: {default: {}}
`

// weighedWorld is a fleet of that many replicas, of which each has its share of the clusters.
func weighedWorld(t rapid.TB, text string, replicas int, loads ...float64) *world {
	t.Helper()
	c, err := configfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(loads...)
	w.in.Config = c
	env, wl := "16", &w.in.Workload
	wl.Replicas, wl.ReadyReplicas, wl.UpdatedReplicas, wl.CurrentReplicas, wl.EnvReplicas = replicas, replicas, replicas, replicas, &env
	for i := range w.in.Discovered.Secrets {
		w.in.Discovered.Secrets[i].Shard = discover.ShardValue{State: discover.ShardValid, N: i % replicas}
	}
	w.known()
	return w
}

func alike(clusters int, each float64) []float64 {
	loads := make([]float64, clusters)
	for i := range loads {
		loads[i] = each
	}
	return loads
}

// fullest is the most that a replica of the plan has.
func (w *world) fullest() float64 {
	sums := map[int]float64{}
	for _, s := range w.in.Fetched[0].Samples {
		for _, secret := range w.in.Discovered.Secrets {
			if server(secret.Name) == s.Key {
				sums[w.in.InForce.Clusters[secret.Name].Replica] += s.Value
			}
		}
	}
	most := 0.0
	for _, sum := range sums {
		most = max(most, sum)
	}
	return most
}

// slowly runs a cycle every ten minutes.
func (w *world) slowly(cycles int) {
	for range cycles {
		w.in.Now = w.in.Now.Add(10 * time.Minute)
		w.cycle()
	}
}

// The three examples, from the file to the plan, with each partition.
func TestTheThreeWeightExamplesFromTheFile(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, weight int
		capacity         float64
		loads            []float64
		want             int
		wantsFullest     float64
	}{
		"half of the growth vertical":           {1, 50, 1, alike(50, 0.1), 3, 1.7},
		"all of it horizontal, a giant cluster": {2, 0, 13, append(alike(32, 1), 18), 4, 18},
		"a quarter vertical, down":              {4, 25, 13, alike(25, 1), 3, 9},
	} {
		for _, partition := range []string{"sticky: {downWindow: 1h}", "lpt: {}"} {
			t.Run(name+", "+partition, func(t *testing.T) {
				text := fmt.Sprintf(weighedFile, partition, test.capacity, fmt.Sprintf("{from: 0, weight: %d}", test.weight), "")
				w := weighedWorld(t, text, test.replicas, test.loads...)
				w.slowly(200)
				if got := w.in.InForce.Replicas; got != test.want {
					t.Fatalf("%d replicas, want %d: %s", got, test.want, w.last.Candidate.Verdict)
				}
				if got := w.fullest(); got < test.wantsFullest-1e-9 || got > test.wantsFullest*1.12 {
					t.Errorf("the fullest carries %v, want %v", got, test.wantsFullest)
				}
				writes := w.writes
				w.slowly(12)
				if w.writes != writes {
					t.Errorf("two idle hours wrote the plan %d times: %s", w.writes-writes, w.last.Reason)
				}
			})
		}
	}
}

// A node that is too small for a replica's share asks for more replicas, whatever the weights say.
func TestTheNodeCapAddsReplicas(t *testing.T) {
	text := fmt.Sprintf(weighedFile, stickily, 10, "{from: 0, weight: 100}", "")
	text = strings.Replace(text, "  policies:\n", "  nodeCap: {cpu: \"1\"}\n  policies:\n", 1)
	w := weighedWorld(t, text, 2, alike(40, 1)...)
	w.slowly(12)
	if got, most := w.in.InForce.Replicas, w.fullest(); got != 5 || most > 10 {
		t.Errorf("%d replicas, the fullest with %v: want 5, of 10 at most", got, most)
	}
	w.setLoad("c000", 30) // no node has room for it, whatever number of replicas there is
	w.slowly(12)
	if got := w.last.Counts.Weights; !got.OverNode || w.in.InForce.Replicas > 9 {
		t.Errorf("%d replicas: %+v", w.in.InForce.Replicas, got)
	}
}

func TestWhatTheWeightsHoldIsSeen(t *testing.T) {
	vertical := weighedWorld(t, fmt.Sprintf(weighedFile, stickily, 5, "{from: 0, weight: 100}", ""), 2, alike(40, 1)...)
	vertical.slowly(3)
	if diff := cmp.Diff(blockedCount(change.Out, change.Weight, "2", "8"), vertical.blockedCounts()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	lumps := weighedWorld(t, fmt.Sprintf(weighedFile, stickily, 12, "{from: 0, weight: 0}", ""), 4, alike(4, 8)...)
	lumps.slowly(12)
	if diff := cmp.Diff(blockedCount(change.In, change.Paradoxical, "4", "3"), lumps.blockedCounts()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	vertical.in.Config.Size.Weights = nil
	vertical.slowly(1)
	if got := vertical.blockedCounts(); len(got) > 0 {
		t.Errorf("without weights there is still %v", got)
	}
}

// Growth is counted from what stood when the fleet was taken over, over a change of leaders, until the weights or the capacity change.
func TestWhereGrowthIsCountedFrom(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(weighedFile, stickily, 5, "{from: 0, weight: 50}", ""), `, capacity: "5"`, "", 1)
	text = strings.Replace(text, "mode: Enforce", "mode: Observe", 1)
	w := weighedWorld(t, text, 4, alike(40, 0.5)...)
	w.slowly(2)
	wl := &w.in.Workload // people scale while ballast observes
	wl.Replicas, wl.ReadyReplicas, wl.UpdatedReplicas, wl.CurrentReplicas = 5, 5, 5, 5
	w.slowly(2)
	w.in.Config.Mode = plan.Enforce
	w.slowly(3)
	start := w.in.Memory.Counts.Start
	if start.Replicas != 5 || start.Load < 19.99 || start.Load > 20.01 || w.in.InForce.Replicas != 5 {
		t.Fatalf("%+v, %d replicas: want 5 for 20", start, w.in.InForce.Replicas)
	}
	parts, stale := w.in.Memory.Parts(nil)
	after, dropped := memory.Of(parts)
	if len(stale)+len(dropped) > 0 {
		t.Fatal(stale, dropped)
	}
	if diff := cmp.Diff(w.in.Memory.Counts, after.Counts); diff != "" {
		t.Errorf("the next leader: -want +got:\n%s", diff)
	}
	for _, s := range w.in.Discovered.Secrets {
		w.setLoad(s.Name, 1.1)
	}
	w.slowly(6)
	if got := w.in.InForce.Replicas; got != 8 || w.in.Memory.Counts.Start != start {
		t.Errorf("%d replicas for 2.2 times the load, want 8: %+v", got, w.in.Memory.Counts.Start)
	}
	w.in.Config.Size.Weights = []config.WeightInterval{{From: "0", Weight: 100}}
	w.slowly(6)
	if got := w.in.Memory.Counts.Start; got.Replicas != 8 || w.in.InForce.Replicas != 8 {
		t.Errorf("other weights count from %+v, with %d replicas: want 8 for what there is", got, w.in.InForce.Replicas)
	}
}
