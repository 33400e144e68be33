package weights

import (
	"cmp"
	"math"
	"slices"
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
				FullestOf: fullest(test.clusters), DefaultWeight: test.weight}
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
			DefaultWeight: rapid.IntRange(0, 100).Draw(t, "weight"), FullestOf: fullest(clusters),
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

// table is intervals and a start, and a load for each of several hours.
type table struct {
	Fleet
	loads []float64
}

func drawTable(t *rapid.T) table {
	borders := rapid.SliceOfNDistinct(rapid.Float64Range(0.5, 40), 0, 4, rapid.ID[float64]).Draw(t, "borders")
	given := []Interval{{Weight: rapid.IntRange(0, 100).Draw(t, "weight")}}
	slices.Sort(borders)
	for i, from := range borders {
		given[i].To = &borders[i]
		given = append(given, Interval{From: from, Weight: rapid.IntRange(0, 100).Draw(t, "weight")})
	}
	in, wrong := Check(given)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return table{Fleet{Replicas: rapid.IntRange(1, 12).Draw(t, "replicas"), Capacity: rapid.Float64Range(0.1, 5).Draw(t, "capacity"), Min: 1, Max: 999,
		Intervals: in}, rapid.SliceOfN(rapid.Float64Range(0.1, 60), 1, 20).Draw(t, "loads")}
}

// at is the fleet with that load, of clusters so small that any number of replicas is level.
func (f table) at(load float64, now int) Fleet {
	f.Load, f.Now, f.FullestOf = load, now, func(replicas int) float64 { return load / float64(replicas) }
	return f.Fleet
}

// follows walks the way from the start to a load in small steps, each of which goes by the weight of its interval alone.
func (f table) follows(load float64) float64 {
	const steps = 20_000
	from, n := float64(f.Replicas)*f.Capacity, float64(f.Replicas)
	ratio := math.Pow(load/from, 1.0/steps)
	for at, i := from, 0; i < steps; i++ {
		weight := f.Intervals[f.Intervals.Holds(at*math.Sqrt(ratio))].Weight
		n *= math.Pow(ratio, 1-float64(weight)/100)
		at *= ratio
	}
	return n
}

func TestTheNumberFollowsTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawTable(t)
		for _, load := range f.loads {
			want := f.follows(load)
			got := f.at(load, 1).Decide().Replicas // it grows: nothing holds it back
			if float64(got) < want-0.01 || float64(got) > max(want+1.01, 1) {
				t.Fatalf("a load of %v asks for %d, want %.3f rounded up", load, got, want)
			}
		}
	})
}

// Whatever the load was before, the same load asks for the same number, but for what fewer replicas have to spare.
func TestTheNumberDoesNotDependOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawTable(t)
		f.Hysteresis = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "hysteresis")
		now := f.Replicas
		for _, load := range f.loads {
			now = f.at(load, now).Decide().Replicas
			fresh, spare := f.at(load, 1).Decide().Replicas, f.at(load*(1+f.Hysteresis), 1).Decide().Replicas
			if now < fresh || now > max(spare, fresh) {
				t.Fatalf("a load of %v has %d replicas, want %d to %d", load, now, fresh, spare)
			}
			if again := f.at(load, now).Decide().Replicas; again != now {
				t.Fatalf("the same load asks for %d, and then for %d", now, again)
			}
		}
	})
}

// Fewer replicas do not become larger than the weights ask.
func TestFewerThatWouldBeLargerStay(t *testing.T) {
	clusters := []float64{7.5, 7.5, 7.5, 7.5}
	f := Fleet{Replicas: 4, Capacity: 10, Now: 4, Load: 30, Heaviest: 7.5, Min: 1, Max: 16, Hysteresis: 0.05, FullestOf: fullest(clusters)}
	got := f.Decide()
	if got.Replicas != 4 || got.Fewer != 0 {
		t.Errorf("%+v, want 4 replicas: 3 have too little to spare", got)
	}
	f.Hysteresis = 0
	if got = f.Decide(); got.Replicas != 4 || got.Fewer != 3 {
		t.Errorf("%d replicas, and fewer are %d: want 4 that stay, since 3 would carry 15", got.Replicas, got.Fewer)
	}
	f.Intervals, _ = Check([]Interval{{Weight: 100}})
	if got, flat := f.Decide(), f.Horizontal(); got.Replicas != 4 || got.Fewer != 0 || flat != 3 {
		t.Errorf("%+v, %d without weights", got, flat)
	}
}

func TestANodeThatIsTooSmallAddsReplicas(t *testing.T) {
	f := Fleet{Replicas: 2, Capacity: 5, Now: 2, Load: 20, Min: 1, Max: 8, FullestOf: func(n int) float64 { return 20 / float64(n) },
		DefaultWeight: 100, Request: func(n int, spare float64) float64 { return 4.5 / float64(n) * spare }}
	if got := f.Decide(); got.Replicas != 5 || got.OverNode {
		t.Errorf("%+v, want 5 replicas", got)
	}
	f.Max = 4
	if got := f.Decide(); got.Replicas != 4 || !got.OverNode {
		t.Errorf("%+v, want 4 that are larger than a node", got)
	}
}

// No replica comes for a node that is too small where more of them make none smaller, and none goes.
func TestReplicasThatHelpNothingDoNotCome(t *testing.T) {
	for name, test := range map[string]struct {
		now, most int
		least     float64 // that one asks for, however many there are
		want      int
		over      bool
	}{
		"a rule that does not follow their number": {2, 16, 4.5, 2, true},
		"with more than the weights ask for":       {6, 16, 4.5, 6, true},
		"a server that cannot be split":            {2, 16, 2.25, 4, true},
		"once it is alone none goes":               {5, 16, 2.25, 5, true},
		"too few may come":                         {2, 8, 0, 8, true},
		"with a tenth to spare":                    {2, 16, 0, 10, false},
		"and with yet more where some are to go":   {16, 16, 0, 11, false},
	} {
		f := Fleet{Replicas: 2, Capacity: 5, Now: test.now, Load: 20, Min: 1, Max: test.most, FullestOf: func(n int) float64 { return 20 / float64(n) },
			DefaultWeight: 100, Hysteresis: 0.1, Request: func(n int, spare float64) float64 { return max(test.least, 9/float64(n)) * spare }}
		if got := f.Decide(); got.Replicas != test.want || got.OverNode != test.over {
			t.Errorf("%s: %+v, want %d replicas, %t", name, got, test.want, test.over)
		}
	}
}

// fullest is the load of the fullest replica where each cluster, the heaviest first, goes to the least loaded one: what
// Fleet.FullestOf is where no partitioner is at hand.
func fullest(clusters []float64) func(replicas int) float64 {
	loads := slices.Clone(clusters)
	slices.SortFunc(loads, func(a, b float64) int { return cmp.Compare(b, a) })
	return func(replicas int) float64 {
		bins := make([]float64, max(replicas, 1))
		for _, load := range loads {
			least := 0
			for i := range bins {
				if bins[i] < bins[least] {
					least = i
				}
			}
			bins[least] += load
		}
		return slices.Max(bins)
	}
}
