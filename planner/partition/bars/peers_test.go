package bars_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/fresh"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// peers: 200 clusters of lognormal loads on ten replicas: how level they are, and how many move when one replica, or one
// cluster, joins.
func peers(t *testing.T, rows *table) {
	const clusters, replicas, fleets = 200, 10, 5
	var level, onReplica, onCluster [columns]float64
	for seed := range uint64(fleets) {
		in := items(append(lognormal(rand.New(rand.NewPCG(seed, 7)), clusters, 1), 1)) // the one more is of the median load
		for k, place := range placers(t) {
			now := place(in[:clusters], replicas, nil)
			loads := carried(in[:clusters], now, replicas)
			var total plan.Load
			for _, l := range loads {
				total += l
			}
			ideal := max(float64(total)/replicas, float64(heaviest(in[:clusters])))
			level[k] += float64(slices.Max(loads)) / ideal / fleets
			onReplica[k] += float64(changed(now, place(in[:clusters], replicas+1, now))) / clusters / fleets
			onCluster[k] += float64(changed(now, place(in, replicas, now)[:clusters])) / clusters / fleets
		}
	}
	cells := [columns]string{}
	for k, l := range level {
		cells[k] = fmt.Sprintf("%.3f", l)
	}
	rows.add(row{what: "200 clusters on 10: max load over ideal", bar: "1.000", cells: cells, met: level[0] <= 1.0005})
	rows.add(row{what: "... moves on one replica more", bar: "0-11 %", cells: percents(onReplica, 1, "%.1f %%"), met: onReplica[0] <= 0.11})
	rows.add(row{what: "... moves on one cluster more", bar: "0", cells: percents(onCluster, 1, "%.1f %%"), met: onCluster[0] == 0})
	if level[0] > 1.0005 || onReplica[0] > 0.11 || onCluster[0] > 0 {
		t.Errorf("below the bar: %.4f, %.3f, %.4f", level[0], onReplica[0], onCluster[0])
	}
}

type placer func(in []partition.Item, replicas int, now []int) []int

// placers are the columns': the first plan is a fresh one, and from then on ballast goes by what is in force.
func placers(t *testing.T) []placer {
	bounds := func(replicas int) partition.Bounds {
		return partition.Bounds{MaxReplicas: replicas, Fixed: replicas}
	}
	ours := func(in []partition.Item, replicas int, now []int) []int {
		if now == nil {
			p, err := fresh.Plan(constraint.Question{Items: in, Bounds: bounds(replicas)}, fresh.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return p.Of
		}
		now = append(slices.Clone(now), slices.Repeat([]int{plan.NoReplica}, len(in)-len(now))...)
		a, err := sticky.Plan(constraint.Question{Items: in, Bounds: bounds(replicas), Now: now, Replicas: slices.Max(now) + 1}, shipped())
		if err != nil {
			t.Fatal(err)
		}
		return a.Of
	}
	lpt := func(in []partition.Item, replicas int, now []int) []int {
		p, err := partition.LPT(in, bounds(replicas))
		if err != nil {
			t.Fatal(err)
		}
		if now != nil {
			was := map[string]int{}
			for i, r := range now {
				was[in[i].ID] = r
			}
			p = partition.Relabel(p, in, was)
		}
		return p.Of
	}
	all := []placer{ours, lpt}
	for _, a := range algorithms {
		all = append(all, func(in []partition.Item, replicas int, _ []int) []int { return argo(a, in, replicas) })
	}
	return all
}

// bytesOfAPlan: what a fresh plan allocates, whatever the machine. Times are BenchmarkSpeed's.
func bytesOfAPlan(t *testing.T, rows *table) {
	sizes := map[int]float64{10_000: 4}
	if every(2) == 1 {
		sizes[100_000] = 32
	}
	for clusters, most := range sizes {
		in := whole(classes(clusters, 1)["lognormal 1"])
		megabytes := func(run func()) float64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			run()
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc-before.TotalAlloc) / 1e6
		}
		ours := megabytes(func() {
			if _, err := fresh.Plan(constraint.Question{Items: in, Bounds: partition.Bounds{MaxReplicas: 1 << 20}}, fresh.Options{}); err != nil {
				t.Fatal(err)
			}
		})
		lpt := megabytes(func() {
			if _, err := partition.LPT(in, partition.Bounds{MaxReplicas: 1 << 20}); err != nil {
				t.Fatal(err)
			}
		})
		if ours > most {
			t.Errorf("a fresh plan of %d clusters allocates %.1f MB, want at most %.0f", clusters, ours, most)
		}
		rows.add(row{what: fmt.Sprintf("bytes of a fresh plan, %d clusters", clusters), bar: fmt.Sprintf("<= %.0f MB", most), met: ours <= most,
			cells: [columns]string{fmt.Sprintf("%.1f MB", ours), fmt.Sprintf("%.1f MB", lpt)}})
	}
}

// allocations: how often a plan of 10,000 clusters asks for memory, whatever the machine: for fewer than every tenth cluster.
func allocations(t *testing.T, rows *table) {
	const clusters, most = 10_000, 1000
	in := items(lognormal(rand.New(rand.NewPCG(9, clusters)), clusters, 1))
	full := heaviest(in) * 12 / 10
	now := start(t, in, full)
	ours := testing.AllocsPerRun(2, func() {
		if _, err := fresh.Plan(constraint.Question{Items: in, Bounds: partition.Bounds{MaxReplicas: 1 << 20}}, fresh.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	kept := testing.AllocsPerRun(2, func() { next(t, in, full, now, shipped()) })
	lpt := testing.AllocsPerRun(2, func() {
		if _, err := partition.LPT(in, partition.Bounds{MaxReplicas: 1 << 20}); err != nil {
			t.Fatal(err)
		}
	})
	if max(ours, kept) > most {
		t.Errorf("a fresh plan takes %.0f allocations and a sticky one %.0f, want at most %d", ours, kept, most)
	}
	rows.add(row{what: "allocations of a fresh and a sticky plan, 10000 clusters", bar: fmt.Sprintf("<= %d", most),
		met:   max(ours, kept) <= most,
		cells: [columns]string{fmt.Sprintf("%.0f, %.0f", ours, kept), fmt.Sprintf("%.0f", lpt)}})
}
