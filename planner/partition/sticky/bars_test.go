package sticky_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// The bars of facts/partitioning.md about moves, side by side with LPT (renumbered to what it leaves in place, which is
// kind to it).

func items(loads []float64) []partition.Item {
	out := make([]partition.Item, len(loads))
	for i, l := range loads {
		out[i] = partition.Item{ID: fmt.Sprintf("c%05d", i), Load: plan.Load(l * float64(plan.LoadUnit)), Clusters: 1, Replica: partition.Free}
	}
	return out
}

func lognormal(r *rand.Rand, n int, sigma float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Exp(sigma * r.NormFloat64())
	}
	return out
}

// start is a plan with headroom: LPT up to low.
func start(t testing.TB, in []partition.Item, full plan.Load) partition.Partition {
	t.Helper()
	p, err := partition.LPT(in, partition.Bounds{MaxReplicas: 4096, Capacity: full / 100 * 85})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func heaviest(in []partition.Item) (most plan.Load) {
	for _, it := range in {
		most = max(most, it.Load)
	}
	return most
}

func next(t testing.TB, in []partition.Item, full plan.Load, now partition.Partition, o sticky.Options) sticky.Answer {
	t.Helper()
	a, err := sticky.Plan(constraint.Problem{Items: in, Bounds: partition.Bounds{MaxReplicas: 4096, Capacity: full}, Now: now.Of, Replicas: now.Replicas}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func byID(p partition.Partition, in []partition.Item) map[string]int {
	out := make(map[string]int, len(in))
	for i, it := range in {
		out[it.ID] = p.Of[i]
	}
	return out
}

func changed(a, b []int) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// jitter counts the moves of LPT and sticky over steps of independent noise, raw or smoothed over that many samples.
func jitter(t *testing.T, seed uint64, clusters int, sigma, noise float64, smooth, steps int) (lpt, ours int) {
	r := rand.New(rand.NewPCG(seed, uint64(clusters)))
	base := lognormal(r, clusters, sigma)
	in := items(base)
	full := heaviest(in) * 12 / 10 // held: the peak of the heaviest
	now := start(t, in, full)
	seed0, err := partition.LPT(in, partition.Bounds{MaxReplicas: 4096})
	if err != nil {
		t.Fatal(err)
	}
	mean := slices.Clone(base)
	for range steps {
		loads := make([]float64, clusters)
		for i := range loads {
			loads[i] = max(base[i]*(1+noise*r.NormFloat64()), 0)
			mean[i] += (loads[i] - mean[i]) / float64(smooth)
		}
		in = items(mean)
		again, err := partition.LPT(in, partition.Bounds{MaxReplicas: 4096})
		if err != nil {
			t.Fatal(err)
		}
		again = partition.Relabel(again, in, byID(seed0, in))
		lpt += changed(seed0.Of, again.Of)
		a := next(t, in, full, now, sticky.Options{})
		ours += len(a.Moves)
		seed0, now = again, a.Partition
	}
	return lpt, ours
}

func TestMovesUnderJitter(t *testing.T) {
	for _, tc := range []struct {
		noise  float64
		smooth int
		most   float64
	}{{0.05, 1, 0.005}, {0.20, 1, 0.06}, {0.20, 30, 0.005}} {
		for _, clusters := range []int{50, 200, 1000} {
			var lpt, ours int
			for seed := range uint64(3) {
				l, o := jitter(t, seed, clusters, 1, tc.noise, tc.smooth, 60)
				lpt, ours = lpt+l, ours+o
			}
			share := float64(ours) / float64(lpt)
			t.Logf("%4d clusters, noise %2.0f %% over %2d samples: LPT %6d moves, sticky %4d (%.2f %%; bar %.1f %%)",
				clusters, 100*tc.noise, tc.smooth, lpt, ours, 100*share, 100*tc.most)
			if share > tc.most {
				t.Errorf("above the bar")
			}
		}
	}
}

// day is the second of two days of 200 clusters at one minute: a daily pattern, with a phase for each region, noise of
// 5 %, ten spikes a day of three times a cluster's load for ten minutes, and smoothing over five samples. A drain is due
// once it was possible for a window of so many minutes.
func day(t *testing.T, seed uint64, swing float64, regions, window int, o sticky.Options) (moves, above, minutes, least, most int) {
	r := rand.New(rand.NewPCG(seed, 200))
	base := lognormal(r, 200, 1)
	phase, spike := make([]float64, 200), make([]int, 200)
	for i := range phase {
		phase[i] = float64(r.IntN(regions)) / float64(regions)
	}
	at := func(minute, i int) float64 {
		l := base[i] * (1 + swing*math.Sin(2*math.Pi*(float64(minute)/1440+phase[i])))
		if spike[i] > 0 {
			l *= 3
		}
		return l * (1 + 0.05*r.NormFloat64())
	}
	mean := make([]float64, 200)
	for i := range mean {
		mean[i] = at(0, i)
	}
	peak := slices.Max(base) * (1 + swing)
	full := plan.Load(peak * float64(plan.LoadUnit))
	now := start(t, items(mean), full)
	fits := 0
	for minute := range 2 * 1440 {
		for i := range mean {
			if spike[i]--; spike[i] < -1 && r.IntN(20*1440) == 0 {
				spike[i] = 10
			}
			mean[i] += (at(minute, i) - mean[i]) / 5
		}
		in := items(mean)
		o.MaxMoves, o.DrainDue = 10, fits >= window
		a := next(t, in, full, now, o)
		if fits++; !a.Drain.Fits || a.Drain.Done {
			fits = 0
		}
		now = a.Partition
		if minute < 1440 {
			least, most = a.Replicas, a.Replicas
			continue
		}
		moves += len(a.Moves)
		least, most, minutes = min(least, a.Replicas), max(most, a.Replicas), minutes+a.Replicas
		for r, l := range a.Loads {
			if l > full && a.Clusters[r] > 1 {
				above++
			}
		}
	}
	return moves, above, minutes, least, most
}

// The bar is of the second day: the first begins with a plan for the load of one moment, and has to grow to the peak
// first. A replica that one item alone fills is nobody's fault, and is not counted.
func TestADayOf200Clusters(t *testing.T) {
	const days = 4
	for _, swing := range []float64{0.2, 0.3} {
		var moves, above, minutes int
		for seed := range uint64(days) {
			m, a, all, least, most := day(t, seed, swing, 1, 360, sticky.Options{})
			t.Logf("swing %.1f, day %d: %d moves, above capacity %d of %d replica-minutes, %d to %d replicas", swing, seed, m, a, all, least, most)
			moves, above, minutes = moves+m, above+a, minutes+all
		}
		mean, share := float64(moves)/days, float64(above)/float64(minutes)
		t.Logf("swing %.1f: %.1f moves a day (bar 20), above capacity %.3f %% (bar 0.1 %%)", swing, mean, 100*share)
		if swing == 0.2 && mean > 20 || share > 0.001 {
			t.Errorf("above the bar")
		}
	}
}
