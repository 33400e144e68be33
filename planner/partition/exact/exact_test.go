package exact_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/partition/exact"
	"ballast/planner/plan"
)

// divisions calls each with every division of the loads over that many replicas.
func divisions(loads []plan.Load, replicas int, each func(of []int, carries []plan.Load)) {
	of, carries := make([]int, len(loads)), make([]plan.Load, replicas)
	var deal func(i int)
	deal = func(i int) {
		if i == len(loads) {
			each(of, carries)
			return
		}
		for r := range replicas {
			of[i] = r
			carries[r] += loads[i]
			deal(i + 1)
			carries[r] -= loads[i]
		}
	}
	deal(0)
}

func drawLoads(t *rapid.T, least int) []plan.Load {
	most := rapid.SampledFrom([]int64{3, 20, 1000}).Draw(t, "most")
	load := rapid.Map(rapid.Int64Range(0, most), func(l int64) plan.Load { return plan.Load(l) })
	return rapid.SliceOfN(load, least, 8).Draw(t, "loads")
}

const enough = 1_000_000

func TestMakespanIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads, replicas := drawLoads(t, 1), rapid.IntRange(1, 4).Draw(t, "replicas")
		want := plan.Load(1 << 60)
		divisions(loads, replicas, func(_ []int, carries []plan.Load) { want = min(want, slices.Max(carries)) })
		if got := exact.Makespan(loads, replicas, enough); got != (exact.Bound{Least: int64(want), Best: int64(want)}) {
			t.Errorf("%v on %d: %+v, want %d", loads, replicas, got, want)
		}
		checkHurried(t, exact.Makespan(loads, replicas, rapid.IntRange(0, 40).Draw(t, "steps")), int64(want))
	})
}

// checkHurried: with few steps less is proved, and nothing that is wrong.
func checkHurried(t *rapid.T, got exact.Bound, want int64) {
	if got.Least > want || got.Best < want {
		t.Errorf("in few steps %+v, and the least is %d", got, want)
	}
}

func TestReplicasAreTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads, full := drawLoads(t, 1), plan.Load(rapid.Int64Range(1, 1500).Draw(t, "capacity"))
		want := 0
		for replicas := 1; want == 0; replicas++ {
			divisions(loads, min(replicas, 4), func(of []int, carries []plan.Load) {
				if fitsAll(loads, of, carries, full) {
					want = replicas
				}
			})
			if replicas > 4 {
				return // too many to try
			}
		}
		if got := exact.Replicas(loads, full, enough); got != (exact.Bound{Least: int64(want), Best: int64(want)}) {
			t.Errorf("%v of %d: %+v, want %d", loads, full, got, want)
		}
		checkHurried(t, exact.Replicas(loads, full, rapid.IntRange(0, 40).Draw(t, "steps")), int64(want))
	})
}

// fitsAll: a load above the limit is on its own, but for what weighs nothing.
func fitsAll(loads []plan.Load, of []int, carries []plan.Load, full plan.Load) bool {
	for r, l := range carries {
		if l <= full {
			continue
		}
		with := 0
		for i, at := range of {
			if at == r && loads[i] > 0 {
				with++
			}
		}
		if with > 1 {
			return false
		}
	}
	return true
}

func TestMovesAreTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads, replicas := drawLoads(t, 1), rapid.IntRange(1, 3).Draw(t, "replicas")
		s := exact.Standing{Loads: loads, Replicas: replicas, Now: make([]int, len(loads)), Fixed: make([]bool, len(loads))}
		var total plan.Load
		for i, l := range loads {
			s.Now[i] = rapid.IntRange(0, replicas-1).Draw(t, "now")
			s.Fixed[i] = rapid.IntRange(0, 4).Draw(t, "fixed") == 0
			total += l
		}
		limit := total/plan.Load(replicas) + plan.Load(rapid.Int64Range(0, 50).Draw(t, "slack"))
		want := int64(exact.None)
		divisions(loads, replicas, func(of []int, carries []plan.Load) {
			moves := int64(0)
			for i, r := range of {
				if r != s.Now[i] {
					moves++
					if s.Fixed[i] {
						return
					}
				}
			}
			for r, l := range carries {
				if on := count(of, r); l > limit && on > 1 {
					return
				}
			}
			want = min(want, moves)
		})
		got, possible := exact.Moves(s, limit, enough)
		if possible != (want != exact.None) || possible && got != (exact.Bound{Least: want, Best: want}) {
			t.Errorf("%+v to %d: %+v (possible: %v), want %d", s, limit, got, possible, want)
		}
		if got, _ := exact.Moves(s, limit, rapid.IntRange(0, 40).Draw(t, "steps")); want != exact.None {
			checkHurried(t, got, want)
		}
	})
}

func count(of []int, replica int) (n int) {
	for _, r := range of {
		if r == replica {
			n++
		}
	}
	return n
}

// Whatever it is asked, it ends within its steps, and says nothing that cannot be.
func FuzzBounds(f *testing.F) {
	f.Add([]byte{7, 7, 7, 1, 0}, int64(10), uint8(3), uint16(500))
	f.Fuzz(func(t *testing.T, raw []byte, full int64, replicas uint8, steps uint16) {
		loads := make([]plan.Load, min(len(raw), 200))
		var total plan.Load
		for i := range loads {
			loads[i] = plan.Load(raw[i]) << (raw[i] % 48)
			total += loads[i]
		}
		full, n := max(full%(1<<56), 1), int(replicas%32)+1
		if b := exact.Replicas(loads, plan.Load(full), int(steps)); b.Least > b.Best || b.Best > int64(max(len(loads), 1)) {
			t.Errorf("replicas: %+v", b)
		}
		if b := exact.Makespan(loads, n, int(steps)); b.Least > b.Best || b.Best > int64(total) {
			t.Errorf("makespan: %+v", b)
		}
		now := make([]int, len(loads))
		for i := range now {
			now[i] = int(raw[i]) % n
		}
		if b, _ := exact.Moves(exact.Standing{Loads: loads, Now: now, Replicas: n}, plan.Load(full), int(steps)); b.Least > b.Best {
			t.Errorf("moves: %+v", b)
		}
	})
}
