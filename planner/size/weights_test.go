package size

import (
	"testing"

	"pgregory.net/rapid"
)

func even(clusters int, each float64) []float64 {
	loads := make([]float64, clusters)
	for i := range loads {
		loads[i] = each
	}
	return loads
}

func TestTheThreeExamples(t *testing.T) {
	for name, test := range map[string]struct {
		replicas      int
		capacity      float64
		clusters      []float64
		weight        int
		want          int
		wantsCapacity float64
	}{
		"half of the growth vertical":           {1, 1, even(50, 0.1), 50, 3, 1.7},
		"all of it horizontal, a giant cluster": {2, 13, append(even(32, 1), 18), 0, 4, 18},
		"a quarter vertical, down":              {4, 13, even(25, 1), 25, 3, 9},
	} {
		t.Run(name, func(t *testing.T) {
			f := Fleet{Replicas: test.replicas, Capacity: test.capacity, Min: 1, Max: 16, Hysteresis: 0.1,
				FullestOf: Fullest(test.clusters), DefaultWeight: test.weight}
			for _, load := range test.clusters {
				f.Load += load
				f.Heaviest = max(f.Heaviest, load)
			}
			got := f.Decide()
			if got.Replicas != test.want || got.Capacity > test.wantsCapacity+1e-9 || got.Capacity < test.wantsCapacity-1e-9 {
				t.Errorf("%d x %v, want %d x %v", got.Replicas, got.Capacity, test.want, test.wantsCapacity)
			}
			f.Replicas, f.Capacity = got.Replicas, got.Capacity
			if again := f.Decide(); again.Replicas != got.Replicas || again.Capacity != got.Capacity {
				t.Errorf("and then %d x %v: the same load gives another answer", again.Replicas, again.Capacity)
			}
		})
	}
}

// TestASplitCarriesTheLoad wherever it starts, and keeps its bounds.
func TestASplitCarriesTheLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := rapid.SliceOfN(rapid.Float64Range(0, 20), 1, 60).Draw(t, "clusters")
		f := Fleet{
			Replicas: rapid.IntRange(1, 20).Draw(t, "replicas"), Capacity: rapid.Float64Range(0, 50).Draw(t, "capacity"),
			Min: rapid.IntRange(1, 4).Draw(t, "min"), Max: rapid.IntRange(4, 20).Draw(t, "max"),
			NodeCap: rapid.SampledFrom([]float64{0, 5, 30, 100}).Draw(t, "cap"), Hysteresis: 0.1,
			DefaultWeight: rapid.IntRange(0, 100).Draw(t, "weight"), FullestOf: Fullest(clusters),
		}
		for _, load := range clusters {
			f.Load += load
			f.Heaviest = max(f.Heaviest, load)
		}
		got := f.Decide()
		if got.Replicas < f.Min || got.Replicas > f.Max {
			t.Fatalf("%d replicas", got.Replicas)
		}
		if need := f.needs(got.Replicas); got.Capacity < need-1e-6 {
			t.Fatalf("each carries %v, the fullest has %v", got.Capacity, need)
		}
		if f.NodeCap > 0 && got.Capacity > f.NodeCap && !got.OverNode {
			t.Fatalf("%v is beyond the node cap %v, and nothing is said", got.Capacity, f.NodeCap)
		}
		f.Replicas, f.Capacity = got.Replicas, got.Capacity
		again := f.Decide()
		if !got.OverNode && got.Capacity > 0 && (again.Replicas != got.Replicas || again.Capacity != got.Capacity) {
			t.Fatalf("the same load gives %d x %v, and then %d x %v", got.Replicas, got.Capacity, again.Replicas, again.Capacity)
		}
	})
}
