package bars_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/exact"
	"ballast/planner/partition/fresh"
	"ballast/planner/plan"
	"ballast/planner/sharding"
)

func vectors[T any](t *testing.T, file string) (out []T) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
}

func ask(t testing.TB, in []partition.Item, b partition.Bounds) (ours, lpt partition.Partition) {
	t.Helper()
	ours, err := fresh.Plan(constraint.Question{Items: in, Bounds: b}, fresh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lpt, err = partition.LPT(in, b)
	if err != nil {
		t.Fatal(err)
	}
	return ours, lpt
}

// binPacking: in how many instances the capacity is kept with as few replicas as are possible. Argo CD's algorithms keep no
// capacity.
func binPacking(t *testing.T, rows *table) {
	type tally struct {
		n, worst, optimal, lpt int
	}
	classes := map[string]*tally{}
	step := every(24)
	for k, v := range vectors[struct {
		Name, Class       string
		Capacity, Optimum int64
		Items             []int64
	}](t, "binpacking.jsonl.gz") {
		if k%step != 0 {
			continue
		}
		full := plan.Load(v.Capacity)
		in := whole(v.Items)
		ours, lpt := ask(t, in, partition.Bounds{MaxReplicas: 5000, Capacity: full})
		c := classes[v.Class]
		if c == nil {
			c = &tally{}
			classes[v.Class] = c
		}
		above := ours.Replicas - int(v.Optimum)
		if above < 0 || ours.Makespan() > full {
			t.Errorf("%s: %d replicas of %d, the fullest carries %d of %d", v.Name, ours.Replicas, v.Optimum, ours.Makespan(), v.Capacity)
		}
		if b := exact.Replicas(loadsOf(in), full, 5_000); b.Least > v.Optimum || b.Best < v.Optimum {
			t.Errorf("%s: the yardstick says %+v, and the optimum is %d", v.Name, b, v.Optimum)
		}
		c.n++
		c.worst = max(c.worst, above)
		if above == 0 {
			c.optimal++
		}
		if lpt.Replicas == int(v.Optimum) {
			c.lpt++
		}
	}
	for _, of := range []struct {
		class string
		bar   int
	}{{"falkenauer-u", 85}, {"scholl-1", 95}, {"scholl-2", 98}, {"schwerin", 100}} {
		c := classes[of.class]
		met := 100*c.optimal >= of.bar*c.n && c.worst <= 1
		rows.add(row{what: fmt.Sprintf("bin packing, %s: optimal, of %d", of.class, c.n), bar: fmt.Sprintf(">= %d %%, at most 1 above", of.bar),
			cells: [columns]string{fmt.Sprintf("%.1f %%, at most %d above", 100*float64(c.optimal)/float64(c.n), c.worst), fmt.Sprintf("%.1f %%", 100*float64(c.lpt)/float64(c.n))}, met: met})
		if !met {
			t.Errorf("%s: %d of %d are optimal, and one is %d above", of.class, c.optimal, c.n, c.worst)
		}
	}
}

// makespan: how far the fullest of a fixed number of replicas is from a proved bound.
func makespan(t *testing.T, rows *table) {
	n, atBound, worst := 0, marks{}, 0.0
	var gaps [columns]float64
	step := every(8)
	for k, v := range vectors[struct {
		Name     string
		Machines int
		Jobs     []int64
	}](t, "pcmax.jsonl.gz") {
		if k%step != 0 {
			continue
		}
		in := whole(v.Jobs)
		got, lpt := ask(t, in, partition.Bounds{MaxReplicas: v.Machines, Fixed: v.Machines})
		low, steps := bound(v.Jobs, v.Machines), 5_000
		if int64(got.Makespan()) > low {
			steps = 1_000_000
		}
		b := exact.Makespan(loadsOf(in), v.Machines, steps)
		if b.Least > int64(got.Makespan()) || b.Best < low {
			t.Errorf("%s: the yardstick says %+v, the bound is %d, and %d was found", v.Name, b, low, got.Makespan())
		}
		low = max(low, b.Least)
		gap := func(most plan.Load) float64 { return float64(int64(most)-low) / float64(low) }
		n, worst = n+1, max(worst, gap(got.Makespan()))
		gaps[0], gaps[1] = gaps[0]+gap(got.Makespan()), gaps[1]+gap(lpt.Makespan())
		at := 1
		atBound.add(gap(got.Makespan()) == 0, gap(lpt.Makespan()) == 0, func(a sharding.Algorithm) bool {
			most := slices.Max(carried(in, argo(a, in, v.Machines), v.Machines))
			at++
			gaps[at] += gap(most)
			return gap(most) == 0
		})
	}
	mean := gaps[0] / float64(n)
	rows.add(row{what: fmt.Sprintf("P||Cmax: at the proved bound, of %d", n), bar: ">= 87 %", cells: atBound.cells(n), met: 100*atBound.ours >= 87*n})
	cells := percents(gaps, float64(n), "%.3f %%")
	rows.add(row{what: "P||Cmax: mean gap to it", bar: "<= 0.02 %", cells: cells, met: mean <= 0.0002})
	rows.add(row{what: "P||Cmax: worst gap", bar: "<= 1.7 %", cells: [columns]string{fmt.Sprintf("%.2f %%", 100*worst)}, met: worst <= 0.017})
	if 100*atBound.ours < 87*n || mean > 0.0002 || worst > 0.017 {
		t.Errorf("below the bar: %d of %d at the bound, a mean gap of %.5f, a worst of %.4f", atBound.ours, n, mean, worst)
	}
}

// bound of the makespan: the mean; and of the heaviest p jobs, more than q for each machine, some h machines have more than q,
// and so at least q+1 each, and all that the others, with q at most, leave: one of the h has their mean.
func bound(jobs []int64, m int) int64 {
	sorted := slices.Sorted(slices.Values(jobs))
	slices.Reverse(sorted)
	var sum int64
	for _, j := range sorted {
		sum += j
	}
	low := max((sum+int64(m)-1)/int64(m), sorted[0])
	for p := m + 1; p <= len(sorted); p++ {
		q, least := (p-1)/m, sum
		for h := 1; h <= m && h*(q+1) <= p; h++ {
			var theirs int64
			for _, j := range sorted[p-max(h*(q+1), p-(m-h)*q) : p] {
				theirs += j
			}
			least = min(least, (theirs+int64(h)-1)/int64(h))
		}
		low = max(low, least)
	}
	high := sum
	for low < high { // the least capacity that L2 leaves possible
		if mid := low + (high-low)/2; atLeast(jobs, mid) > m {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// classes of loads as fleets have them.
func classes(n int, seed uint64) map[string][]int64 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	out := map[string][]int64{}
	draw := func(name string, f func(i int) float64) {
		loads := make([]int64, n)
		for i := range loads {
			loads[i] = int64(f(i) * float64(plan.LoadUnit))
		}
		out[name] = loads
	}
	draw("lognormal 0.1", func(int) float64 { return math.Exp(0.1 * r.NormFloat64()) })
	draw("lognormal 1", func(int) float64 { return math.Exp(r.NormFloat64()) })
	draw("lognormal 2", func(int) float64 { return math.Exp(2 * r.NormFloat64()) })
	draw("zipf", func(i int) float64 { return 100 / float64(i+1) })
	draw("one giant", func(i int) float64 {
		if i == 0 {
			return 20
		}
		return 0.5 + r.Float64()
	})
	return out
}

// atLeast is Martello and Toth's L2.
func atLeast(loads []int64, full int64) int {
	sorted := slices.Sorted(slices.Values(loads))
	best := 0

	for _, k := range append([]int64{0}, sorted...) {
		if 2*k > full {
			break
		}
		var big, half int
		var room, small int64
		for _, l := range sorted {
			switch {
			case l > full-k:
				big++
			case 2*l > full:
				half++
				room += full - l
			case l >= k:
				small += l
			}
		}
		more := 0
		if small > room {
			more = int((small - room + full - 1) / full)
		}
		best = max(best, big+half+more)
	}
	return best
}

// replicasAndBalance: with the heaviest as the capacity, the number of replicas over a lower bound; and how far apart the
// fullest and the emptiest of as many replicas as LPT's are, over what they are there.
func replicasAndBalance(t *testing.T, rows *table) {
	names := []string{"lognormal 0.1", "lognormal 1", "lognormal 2", "zipf", "one giant"}
	sum, lptSum, spread, count := map[string]float64{}, map[string]float64{}, map[string]*[columns]float64{}, map[string]int{}
	more := 0
	for _, n := range []int{50, 200, 1000} {
		for seed := range uint64(4) {
			for name, loads := range classes(n, seed) {
				in := whole(loads)
				ours, lpt := ask(t, in, partition.Bounds{MaxReplicas: 5000})
				if ours.Replicas > lpt.Replicas {
					more++
					t.Errorf("%s, %d: %d replicas, LPT %d", name, n, ours.Replicas, lpt.Replicas)
				}
				low := float64(max(atLeast(loads, slices.Max(loads)), 1))
				sum[name] += float64(ours.Replicas) / low
				lptSum[name] += float64(lpt.Replicas) / low
				count[name]++
				if spread[name] == nil {
					spread[name] = &[columns]float64{}
				}
				spreads(t, in, lpt, spread[name], n < 1000)
			}
		}
	}
	rows.add(row{what: "replicas: fleets with more than the seed's rule", bar: "0", cells: [columns]string{fmt.Sprint(more)}, met: more == 0})
	for _, name := range names {
		c := float64(count[name])
		rows.add(row{what: "replicas / L2, " + name, bar: "<= 1.006", met: sum[name]/c <= 1.006,
			cells: [columns]string{fmt.Sprintf("%.4f", sum[name]/c), fmt.Sprintf("%.4f", lptSum[name]/c)}})
		if sum[name]/c > 1.006 {
			t.Errorf("%s is below the bar", name)
		}
	}
	for _, name := range names {
		c := float64(count[name])
		met := spread[name][0]/c <= 0.4
		bar := "<= 40 % of the seed's"
		if name == "lognormal 0.1" { // no two fit together: a replica has one cluster, and there is nothing to level
			met, bar = true, "none: one cluster each"
		}
		if name == "lognormal 2" {
			bar += " (not asked for)"
		}
		rows.add(row{what: "spread, " + name, bar: bar, cells: ofSmall(*spread[name], c), met: met})
		if !met {
			t.Errorf("%s is below the bar", name)
		}
	}
}

// ofSmall are means, of which Argo CD's are of the smaller two thirds of the fleets.
func ofSmall(sums [columns]float64, count float64) [columns]string {
	for k := 2; k < columns; k++ {
		sums[k] *= 1.5
	}
	return percents(sums, count, "%.0f %%")
}

// spreads adds the spread of each over LPT's, on as many replicas.
func spreads(t *testing.T, in []partition.Item, lpt partition.Partition, sum *[columns]float64, argos bool) {
	wide := float64(slices.Max(lpt.Loads) - slices.Min(lpt.Loads))
	if wide == 0 {
		return
	}
	over := func(loads []plan.Load) float64 { return float64(slices.Max(loads)-slices.Min(loads)) / wide }
	same, _ := ask(t, in, partition.Bounds{MaxReplicas: 5000, Fixed: lpt.Replicas})
	sum[0], sum[1] = sum[0]+over(same.Loads), sum[1]+1
	if !argos { // a ring of a thousand points for each of hundreds of replicas
		return
	}
	for k, a := range algorithms {
		sum[2+k] += over(carried(in, argo(a, in, lpt.Replicas), lpt.Replicas))
	}
}
