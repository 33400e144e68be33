package partition_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

func vectors[T any](t *testing.T, file string) (out []T) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var v T
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		t.Fatalf("%s has no instance", file)
	}
	return out
}

// Graham 1969: LPT is within 4/3 - 1/(3m) of the optimum on m machines. The optimum is at least the lower bound, so
// meeting it against the bound is stricter.
func TestLPTOnFixedReplicasIsWithinGrahamsBound(t *testing.T) {
	var worst, sum float64
	instances := vectors[struct {
		Name     string
		Machines int
		Jobs     []int64
	}](t, "pcmax.jsonl")
	for _, v := range instances {
		p := lpt(t, items(toLoads(v.Jobs)...), partition.Bounds{MaxReplicas: v.Machines, Fixed: v.Machines})
		bound := lowerBound(v.Jobs, v.Machines)
		got := p.Makespan()
		if m := plan.Load(v.Machines); got < bound || 3*m*got > (4*m-1)*bound {
			t.Errorf("%s: makespan %d, and the optimum is at least %d", v.Name, got, bound)
		}
		ratio := float64(got) / float64(bound)
		worst, sum = max(worst, ratio), sum+ratio
	}
	t.Logf("%d P||Cmax instances: makespan over the lower bound: mean %.4f, worst %.4f", len(instances), sum/float64(len(instances)), worst)
}

// lowerBound of the makespan: the mean, the largest job, and the two that must share a machine.
func lowerBound(jobs []int64, machines int) plan.Load {
	sorted := slices.Sorted(slices.Values(jobs))
	slices.Reverse(sorted)
	var sum int64
	for _, j := range sorted {
		sum += j
	}
	m := int64(machines)
	bound := max((sum+m-1)/m, sorted[0])
	if len(sorted) > machines {
		bound = max(bound, sorted[machines-1]+sorted[machines])
	}
	return plan.Load(bound)
}

// As bin packing LPT is worst-fit decreasing, whose asymptotic ratio is 5/4 (Csirik 1983).
func TestLPTAsBinPackingIsNearTheProvenOptimum(t *testing.T) {
	type tally struct{ instances, optimal, above int }
	classes := map[string]*tally{}
	for _, v := range vectors[struct {
		Name, Class       string
		Capacity, Optimum int64
		Items             []int64
	}](t, "binpacking.jsonl") {
		p := lpt(t, items(toLoads(v.Items)...), partition.Bounds{MaxReplicas: 1000, Capacity: plan.Load(v.Capacity)})
		got, best := p.Replicas, int(v.Optimum)
		if got < best || 4*got > 5*best+4 {
			t.Errorf("%s: %d replicas, and the optimum is %d", v.Name, got, best)
		}
		if p.Makespan() > plan.Load(v.Capacity) {
			t.Errorf("%s: a replica carries %d of %d", v.Name, p.Makespan(), v.Capacity)
		}
		c := classes[v.Class]
		if c == nil {
			c = &tally{}
			classes[v.Class] = c
		}
		c.instances++
		c.above += got - best
		if got == best {
			c.optimal++
		}
	}
	for _, class := range []string{"falkenauer-u", "scholl-1", "scholl-2", "schwerin"} {
		c := classes[class]
		t.Logf("%-12s %d of %d optimal, %d replicas above in all", class, c.optimal, c.instances, c.above)
	}
}
