package bars_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// BenchmarkSticky is a cycle of a fleet whose loads changed by 5 %, and one in which every tenth cluster doubled, beside
// LPT from scratch.
func BenchmarkSticky(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		base := lognormal(rand.New(rand.NewPCG(9, uint64(n))), n, 1)
		full := heaviest(items(base)) * 12 / 10
		now := start(b, items(base), full)
		r := rand.New(rand.NewPCG(9, 9))
		quiet, busy := make([]float64, n), make([]float64, n)
		for i, l := range base {
			quiet[i] = l * max(1+0.05*r.NormFloat64(), 0)
			if busy[i] = quiet[i]; i%10 == 0 {
				busy[i] *= 2
			}
		}
		for name, loads := range map[string][]float64{"quiet": quiet, "busy": busy} {
			in := items(loads)
			b.Run(fmt.Sprintf("%s/clusters=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				moves := 0
				for b.Loop() {
					moves = len(next(b, in, full, now, shipped()).Moves)
				}
				b.ReportMetric(float64(moves), "moves")
			})
		}
		in := items(quiet)
		b.Run(fmt.Sprintf("memory/clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			p, moves := scarce(in, full, now), 0
			for b.Loop() {
				a, err := sticky.Plan(p, shipped())
				if err != nil {
					b.Fatal(err)
				}
				moves = len(a.Moves)
			}
			b.ReportMetric(float64(moves), "moves")
		})
		b.Run(fmt.Sprintf("lpt/clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := partition.LPT(in, partition.Bounds{MaxReplicas: 1 << 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
func BenchmarkFresh(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		in := whole(classes(n, 1)["lognormal 1"])
		for _, of := range []string{"fresh", "lpt"} {
			b.Run(fmt.Sprintf("%s/clusters=%d", of, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if of == "fresh" {
						_, err = fresh.Plan(constraint.Question{Items: in, Bounds: partition.Bounds{MaxReplicas: 1 << 20}}, fresh.Options{})
					} else {
						_, err = partition.LPT(in, partition.Bounds{MaxReplicas: 1 << 20})
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// scarce is a fleet whose memory has little to do with its load; every hundredth replica has too little.
func scarce(in []partition.Item, full plan.Load, now partition.Partition) constraint.Question {
	r := rand.New(rand.NewPCG(3, uint64(len(in))))
	in = slices.Clone(in)
	memory := make([]plan.Bytes, now.Replicas)
	for i := range in {
		in[i].Memory = plan.Bytes(1 + r.IntN(1<<20))
		memory[now.Of[i]] += in[i].Memory
	}
	slices.Sort(memory)
	p := constraint.Question{Items: in, Now: now.Of, Replicas: now.Replicas}
	p.Bounds = partition.Bounds{MaxReplicas: 4096, Capacity: full, Memory: memory[len(memory)*99/100]}
	return p
}
