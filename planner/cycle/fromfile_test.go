package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/poll"
)

// fileHead begins each configuration of this test: two metrics, everything at once, nothing voted on, no budget.
const fileHead = `apiVersion: ballast.argoproj.io/v1alpha1
kind: PlannerConfig
mode: Enforce
poll:
  prometheus:
    metrics:
    - {id: apps, query: apps, match: {label: dest_server, to: server}}
    - {id: pods, query: pods, match: {label: dest_server, to: server}}
evaluate: {none: {}}
change: {moves: {rate: []}}
rollout: {default: {}}
`

// byApps counts the applications alone, so that the clusters weigh appLoads.
const byApps = fileHead + `normalize: {none: {}}
index: {pNorm: {weights: {apps: "1", pods: "0"}}}
`

const appLoads = "c0=8.0000 c1=5.0000 c2=4.0000 c3=4.0000 c4=3.0000"

// byAppsFinely has the same loads, but for their last digits: they have no large unit in common, and what a replica may carry is
// rounded to that.
const byAppsFinely = fileHead + `normalize: {none: {}}
index: {pNorm: {weights: {apps: "1", pods: "0.0000001"}}}
`

// What several files come to: 12 on either of two replicas, and a replica for each cluster.
var (
	levelOnTwo = [][]string{{"c1", "c2", "c4"}, {"c0", "c3"}}
	eachAlone  = [][]string{{"c0"}, {"c1"}, {"c2"}, {"c3"}, {"c4"}}
)

// fileFleet is five clusters on two replicas: c0, c2 and c4 on 0, c1 and c3 on 1.
func fileFleet(t *testing.T, text string) *world {
	t.Helper()
	c, err := configfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "sticky") { // what is worked out below is lpt's
		c.Partition.Sticky, c.Partition.LPT = nil, &config.LPT{}
	}
	w := newWorld()
	env := "2"
	w.in.Config = c
	wl := &w.in.Workload
	wl.Replicas, wl.ReadyReplicas, wl.UpdatedReplicas, wl.CurrentReplicas, wl.EnvReplicas = 2, 2, 2, 2, &env
	for replica := range 2 { // which did not restart lately
		w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: replica, Ready: true, Started: w.in.Now.Add(-48 * time.Hour)})
	}
	w.in.Fetched = []poll.Fetched{{Metric: "apps"}, {Metric: "pods"}}
	for i, v := range [][2]float64{{8, 0}, {5, 100}, {4, 60}, {4, 40}, {3, 200}} {
		name := fmt.Sprintf("c%d", i)
		w.add(name, v[0])
		w.in.Fetched[1].Samples = append(w.in.Fetched[1].Samples, poll.Sample{Key: server(name), Value: v[1]})
		w.secret(name).Shard = discover.ShardValue{State: discover.ShardValid, N: i % 2}
	}
	return w
}

// filePlan is the plan that comes of a file: which clusters each replica has, and what each cluster weighs.
type filePlan struct {
	Replicas [][]string
	Loads    string
}

// TestTheFileDecidesThePlan takes configurations from their text to the plan at rest. The loads are worked out beside
// each normalizer; the partition gives the heaviest cluster first to the replica with the least load, and a replica
// keeps the number that most of its clusters are on.
func TestTheFileDecidesThePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want filePlan
	}{
		// Half of each metric's share: of 8/24 and 0, 5/24 and 100/400, 4/24 and 60/400, 4/24 and 40/400, 3/24 and 200/400.
		// c4 | c1; c0 to c1: 0.3958; c2 to c4: 0.4708; c3 to c0 and c1.
		"reference": {fileHead + `normalize: {reference: {}}
index: {pNorm: {weights: {apps: "0.5", pods: "0.5"}}}
partition: {replicas: 2}
`, filePlan{[][]string{{"c2", "c4"}, {"c0", "c1", "c3"}}, "c0=0.1667 c1=0.2292 c2=0.1583 c3=0.1333 c4=0.3125"}},
		// Medians 4 and 60; the middle one of five is in neither half, so the quartiles are 3.5 and 6.5, 20 and 150.
		// (x-4)/3 and (x-60)/130 go from -0.4615 to 1.3333: each is lifted by 0.4615 and a hundredth of that range.
		// c0 | c4; c1 to c4: 3.3026; c2 to c0: 2.7897; c3 to c0 and c2.
		"robust": {fileHead + `normalize: {robust: {positiveOffset: "0.01"}}
index: {pNorm: {weights: {apps: "1", pods: "1"}}}
partition: {replicas: 2}
`, filePlan{[][]string{{"c0", "c2", "c3"}, {"c1", "c4"}}, "c0=1.8308 c1=1.6000 c2=0.9590 c3=0.8051 c4=1.7026"}},
		// (x-3)/5 and x/200: 1+0, 0.4+0.5, 0.2+0.3, 0.2+0.2, 0+1. c0 | c4; c1 to c0: 1.9; c2 to c4: 1.5; c3 to c2 and c4.
		"minMax": {fileHead + `normalize: {minMax: {}}
index: {pNorm: {weights: {apps: "1", pods: "1"}}}
partition: {replicas: 2}
`, filePlan{[][]string{{"c2", "c3", "c4"}, {"c0", "c1"}}, "c0=1.0000 c1=0.9000 c2=0.5000 c3=0.4000 c4=1.0000"}},
		// x + y/50: 8+0, 5+2, 4+1.2, 4+0.8, 3+4. c0 | c1; c4 to c1: 14; c2 to c0: 13.2; c3 to c0 and c2.
		"none": {fileHead + `normalize: {none: {}}
index: {pNorm: {weights: {apps: "1", pods: "0.02"}}}
partition: {replicas: 2}
`, filePlan{[][]string{{"c0", "c2", "c3"}, {"c1", "c4"}}, "c0=8.0000 c1=7.0000 c2=5.2000 c3=4.8000 c4=7.0000"}},
		// The root of x*x + y*y/50: of 64, 25+200, 16+72, 16+32, 9+800. c4 | c1; c2 to c1: 24.4; c0 to both: 32.4; c3 to c4.
		"none, p 2": {fileHead + `normalize: {none: {}}
index: {pNorm: {p: "2", weights: {apps: "1", pods: "0.02"}}}
partition: {replicas: 2}
`, filePlan{[][]string{{"c0", "c1", "c2"}, {"c3", "c4"}}, "c0=8.0000 c1=15.0000 c2=9.3808 c3=6.9282 c4=28.4429"}},
		// minMax's scores by the third root of the sum of cubes: of 1, 0.064+0.125, 0.008+0.027, 0.008+0.008, 1.
		"minMax, p 3": {fileHead + `normalize: {minMax: {}}
index: {pNorm: {p: "3", weights: {apps: "1", pods: "1"}}}
partition: {replicas: 2}
`, filePlan{[][]string{{"c2", "c3", "c4"}, {"c0", "c1"}}, "c0=1.0000 c1=0.5739 c2=0.3271 c3=0.2520 c4=1.0000"}},

		// Nothing says what a replica may carry: the two that were found stay.
		"capacity null": {byApps, filePlan{levelOnTwo, appLoads}},
		// c0 | c1; c2 to c1: 9; c3 to c0: 12, which just fits; c4 to c1: 12.
		"capacity": {byApps + "partition: {capacity: \"12\"}\n", filePlan{levelOnTwo, appLoads}},
		// No two fit together, and c0 is more than a replica may carry: it has one for itself.
		"capacity below the heaviest cluster": {byApps + "partition: {capacity: \"6\"}\n", filePlan{eachAlone, appLoads}},
		// One replica could carry all; minReplicas null is the two that were found.
		"capacity for all on one": {byApps + "partition: {capacity: \"27\"}\n", filePlan{levelOnTwo, appLoads}},
		// One could carry all, with no tenth to spare.
		"minReplicas 1, and no room": {byApps + "partition: {capacity: \"26\", minReplicas: 1}\n", filePlan{levelOnTwo, appLoads}},
		"minReplicas 1": {byApps + "partition: {capacity: \"27\", minReplicas: 1}\n",
			filePlan{[][]string{{"c0", "c1", "c2", "c3", "c4"}}, appLoads}},
		// c0 | c1 | c2 | c3, and c4 to c2. Two of replica 0's clusters are c2 and c4, which stay; c0 goes.
		"minReplicas 4": {byApps + "partition: {minReplicas: 4}\n",
			filePlan{[][]string{{"c2", "c4"}, {"c1"}, {"c0"}, {"c3"}}, appLoads}},
		// The capacity asks for three: two are level, and above it.
		"maxReplicas 2": {byApps + "partition: {maxReplicas: 2}\n", filePlan{levelOnTwo, appLoads}},
		// A replica is full with two, though it could carry all: three, and level over them c0 | c1, c4 | c2, c3, each with 8.
		"maxClustersPerReplica": {byApps + "partition: {capacity: \"24\", minReplicas: 1, maxClustersPerReplica: 2}\n",
			filePlan{[][]string{{"c0"}, {"c1", "c4"}, {"c2", "c3"}}, appLoads}},
		// Both are full with c0, c3 and c1, c2: c4 goes to the lighter one all the same.
		"maxClustersPerReplica, of too few replicas": {byApps + "partition: {replicas: 2, maxClustersPerReplica: 2}\n",
			filePlan{levelOnTwo, appLoads}},
		// 15 and 9: above 1.17 of 12. The lightest that brings replica 0 to 13.3 is c4.
		"sticky": {byAppsFinely + "partition: {sticky: {}, replicas: 2}\n", filePlan{[][]string{{"c0", "c2"}, {"c1", "c3", "c4"}}, appLoads}},
		// 15 is below 0.95 of 16.
		"sticky, capacity that fits": {byAppsFinely + "partition: {sticky: {}, capacity: \"16\"}\n", filePlan{[][]string{{"c0", "c2", "c4"}, {"c1", "c3"}}, appLoads}},
		// 15 is above 9.5, and nothing fits beside 9: c0 has a replica of its own.
		"sticky, capacity that does not": {byAppsFinely + "partition: {sticky: {}, capacity: \"10\"}\n", filePlan{[][]string{{"c2", "c4"}, {"c1", "c3"}, {"c0"}}, appLoads}},
		"replicas 5":                     {byApps + "partition: {replicas: 5}\n", filePlan{eachAlone, appLoads}},
		"replicas workload":              {byApps + "partition: {replicas: workload}\n", filePlan{levelOnTwo, appLoads}},
	} {
		t.Run(name, func(t *testing.T) {
			w := fileFleet(t, tc.file)
			w.cycle()
			if diff := cmp.Diff([][]string{{"c0", "c2", "c4"}, {"c1", "c3"}}, w.planned().Replicas); diff != "" {
				t.Fatalf("the first plan is not the fleet as it is (-want +got):\n%s", diff)
			}
			w.run(10)
			if r := w.in.InForce.Rollout; r != nil {
				t.Fatalf("after ten cycles the rollout is in %s: %v", r.Stage, problems(w.last))
			}
			if diff := cmp.Diff(tc.want, w.planned()); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			if w.in.Workload.Replicas != len(w.planned().Replicas) {
				t.Errorf("the workload has %d replicas", w.in.Workload.Replicas)
			}
			for name, row := range w.in.InForce.Clusters {
				if got := w.secret(name).Shard.N; got != row.Replica {
					t.Errorf("Secret %s carries %d, its row is %d", name, got, row.Replica)
				}
			}
		})
	}
}

// planned is the plan in force, with the loads as measured last.
func (w *world) planned() filePlan {
	p := filePlan{Replicas: make([][]string, w.in.InForce.Replicas)}
	for _, name := range slices.Sorted(maps.Keys(w.in.InForce.Clusters)) {
		row := w.in.InForce.Clusters[name]
		p.Replicas[row.Replica] = append(p.Replicas[row.Replica], name)
	}
	for i, cl := range w.last.Fleet.Clusters {
		p.Loads += " " + cl.Shard.ID + "=" + strconv.FormatFloat(w.last.Loads[i].Float(), 'f', 4, 64)
	}
	p.Loads = strings.TrimSpace(p.Loads)
	return p
}
