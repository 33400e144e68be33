package partition_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/plan"
)

// fleet is clusters with lognormal load, sigma 1, always the same.
func fleet(clusters int) []partition.Item {
	r := rand.New(rand.NewPCG(1, uint64(clusters)))
	in := make([]partition.Item, clusters)
	for i := range in {
		in[i] = item(fmt.Sprintf("cluster-prod-%06d", i), plan.Load(math.Exp(r.NormFloat64())*float64(plan.LoadUnit)))
	}
	return in
}

var sizes = []int{100, 1_000, 10_000, 100_000}

func BenchmarkLPT(b *testing.B) {
	for _, n := range sizes {
		in := fleet(n)
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lpt(b, in, unbounded)
			}
		})
	}
}

// BenchmarkLPTWithCap bounds replicas and clusters as a large installation does.
func BenchmarkLPTWithCap(b *testing.B) {
	for _, n := range sizes {
		in := fleet(n)
		bounds := partition.Bounds{MinReplicas: 2, MaxReplicas: 64, MaxClusters: n/64 + 1}
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lpt(b, in, bounds)
			}
		})
	}
}

func BenchmarkRelabel(b *testing.B) {
	for _, n := range sizes {
		in := fleet(n)
		p := lpt(b, in, unbounded)
		now := placed(p, in)
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				partition.Relabel(p, in, now)
			}
		})
	}
}

// BenchmarkPrototype is the plain float64 rule with a heap, no bounds, checks or pins: LPT's time is at most 1.5 times it.
func BenchmarkPrototype(b *testing.B) {
	for _, n := range sizes {
		names, loads := make([]string, n), make([]float64, n)
		for i, it := range fleet(n) {
			names[i], loads[i] = it.ID, it.Load.Float()
		}
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				prototype(names, loads)
			}
		})
	}
}

type floatBin struct {
	load    float64
	replica int
}

func prototype(names []string, loads []float64) []int {
	order := make([]int, len(loads))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if loads[a] != loads[b] {
			return cmp.Compare(loads[b], loads[a])
		}
		return cmp.Compare(names[a], names[b])
	})
	of := make([]int, len(loads))
	capacity := loads[order[0]]
	var bins []floatBin
	for _, i := range order {
		if len(bins) > 0 && bins[0].load+loads[i] <= capacity {
			bins[0].load += loads[i]
			of[i] = bins[0].replica
			siftDown(bins)
			continue
		}
		of[i] = len(bins)
		bins = append(bins, floatBin{loads[i], len(bins)})
		siftUp(bins)
	}
	return of
}

func siftUp(h []floatBin) {
	for at := len(h) - 1; at > 0; {
		parent := (at - 1) / 2
		if h[parent].load <= h[at].load {
			return
		}
		h[at], h[parent] = h[parent], h[at]
		at = parent
	}
}

func siftDown(h []floatBin) {
	for at := 0; ; {
		child := 2*at + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].load < h[child].load {
			child++
		}
		if h[at].load <= h[child].load {
			return
		}
		h[at], h[child] = h[child], h[at]
		at = child
	}
}

// The prototype is a fair yardstick only if it computes the same.
func TestThePrototypeAgrees(t *testing.T) {
	in := fleet(1000)
	names, loads := make([]string, len(in)), make([]float64, len(in))
	for i, it := range in {
		names[i], loads[i] = it.ID, it.Load.Float()
	}
	if got, want := prototype(names, loads), lpt(t, in, unbounded).Of; !slices.Equal(got, want) {
		t.Errorf("prototype %v\nLPT       %v", got, want)
	}
}
