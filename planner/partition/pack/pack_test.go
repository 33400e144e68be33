package pack_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition/pack"
	"ballast/planner/plan"
)

// fleet is loads on bins, each of which may have something fixed to it.
type fleet struct {
	loads []plan.Load
	bins  []pack.Bin
	fixed []plan.Load
}

func drawFleet(t *rapid.T, pinned int) fleet {
	f := fleet{bins: make([]pack.Bin, rapid.IntRange(max(pinned, 1), 8).Draw(t, "bins"))}
	f.fixed = make([]plan.Load, len(f.bins))
	most := rapid.SampledFrom([]int64{3, 100, 1 << 50}).Draw(t, "most")
	for r := range pinned {
		f.fixed[r] = plan.Load(rapid.Int64Range(0, most).Draw(t, "fixed"))
		f.bins[r].Load = f.fixed[r]
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "items") {
		f.loads = append(f.loads, plan.Load(rapid.Int64Range(0, most).Draw(t, "load")))
		b := &f.bins[rapid.IntRange(0, len(f.bins)-1).Draw(t, "on")]
		b.Items, b.Load = append(b.Items, int32(i)), b.Load+f.loads[i]
	}
	return f
}

// check finds each item once, and loads that are those of the items and of what is fixed.
func (f fleet) check(t *rapid.T, bins []pack.Bin) {
	seen := make([]int, len(f.loads))
	for r, b := range bins {
		sum := f.fixed[r]
		for _, i := range b.Items {
			seen[i]++
			sum += f.loads[i]
		}
		if sum != b.Load {
			t.Fatalf("bin %d says %d and carries %d", r, b.Load, sum)
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("item %d is there %d times", i, n)
		}
	}
}

func TestFewerKeepsEveryItemAndTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(0, 3).Draw(t, "low")
		f := drawFleet(t, low)
		full := pack.Makespan(f.bins) + plan.Load(rapid.Int64Range(0, 100).Draw(t, "room"))
		got := pack.Fewer(f.loads, f.bins, low, full, rapid.IntRange(0, 20_000).Draw(t, "steps"))
		f.check(t, got)
		if len(got) > len(f.bins) || len(got) < max(low, 1) || pack.Makespan(got) > full {
			t.Fatalf("%d bins of %d, at least %d; the fullest carries %d of %d", len(got), len(f.bins), low, pack.Makespan(got), full)
		}
	})
}

func TestEmptyKeepsEveryItemAndTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t, rapid.IntRange(0, 3).Draw(t, "pinned"))
		f.bins, f.fixed = append(f.bins, pack.Bin{}), append(f.fixed, 0)
		last := &f.bins[len(f.bins)-1]
		for range rapid.IntRange(0, 8).Draw(t, "more") {
			load := plan.Load(rapid.Int64Range(0, 100).Draw(t, "load"))
			last.Items, last.Load = append(last.Items, int32(len(f.loads))), last.Load+load
			f.loads = append(f.loads, load)
		}
		full := pack.Makespan(f.bins) + plan.Load(rapid.Int64Range(0, 100).Draw(t, "room"))
		steps := rapid.IntRange(0, 20_000).Draw(t, "steps")
		got, left := pack.Empty(f.loads, f.bins, full, steps, rapid.Uint64().Draw(t, "seed"))
		if left < 0 || left > steps {
			t.Fatalf("%d of %d steps are left", left, steps)
		}
		if got == nil {
			return
		}
		f.check(t, got)
		if len(got) != len(f.bins)-1 || pack.Makespan(got) > full {
			t.Fatalf("%d bins of %d; the fullest carries %d of %d", len(got), len(f.bins), pack.Makespan(got), full)
		}
	})
}

// What has room as the others are moves nothing else; where two have to change places, only they do.
func TestEmptyMovesWhatItHasTo(t *testing.T) {
	loads := []plan.Load{9, 8, 8, 7, 4, 4}
	for name, tc := range map[string]struct {
		full plan.Load
		want [][]int32
	}{
		"all fit":         {23, [][]int32{{0, 1, 4}, {2, 3, 5}}},
		"two make room":   {20, [][]int32{{0, 3, 4}, {1, 2, 5}}},
		"there is no way": {19, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bins := []pack.Bin{{Items: []int32{0, 1}, Load: 17}, {Items: []int32{2, 3}, Load: 15}, {Items: []int32{4, 5}, Load: 8}}
			got, _ := pack.Empty(loads, bins, tc.full, 20_000, 1)
			var of [][]int32
			for _, b := range got {
				slices.Sort(b.Items)
				of = append(of, b.Items)
			}
			if diff := gocmp.Diff(tc.want, of); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLowerKeepsEveryItemAndRaisesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t, rapid.IntRange(0, 3).Draw(t, "pinned"))
		low := max(pack.LeastMakespan(descending(f.loads), len(f.bins)), slices.Max(f.fixed))
		steps := rapid.IntRange(0, 20_000).Draw(t, "steps")
		got, left := pack.Lower(f.loads, f.bins, low, steps, rapid.Uint64().Draw(t, "seed"))
		f.check(t, got)
		if left > steps {
			t.Fatalf("%d of %d steps are left", left, steps)
		}
		if len(got) != len(f.bins) || pack.Makespan(got) > pack.Makespan(f.bins) || pack.Makespan(got) < low {
			t.Fatalf("%d on %d bins, before %d on %d; the bound is %d", pack.Makespan(got), len(got), pack.Makespan(f.bins), len(f.bins), low)
		}
	})
}

func descending(loads []plan.Load) []plan.Load {
	return slices.SortedFunc(slices.Values(loads), func(a, b plan.Load) int { return cmp.Compare(b, a) })
}

// Where few loads leave few divisions, the best of them is found.
func TestFewItemsAreAtTheirBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.Map(rapid.Int64Range(1, 50), func(l int64) plan.Load { return plan.Load(l) }), 1, 7).Draw(t, "loads")
		n := rapid.IntRange(1, 3).Draw(t, "bins")
		want := best(loads, make([]plan.Load, n))
		bins := make([]pack.Bin, n)
		for i, l := range loads {
			bins[0].Items, bins[0].Load = append(bins[0].Items, int32(i)), bins[0].Load+l
		}
		least := pack.LeastMakespan(descending(loads), n)
		if got, _ := pack.Lower(loads, bins, least, 200_000, 1); pack.Makespan(got) != want || least > want {
			t.Fatalf("%v on %d: %d, and the least is %d; the bound is %d", loads, n, pack.Makespan(got), want, least)
		}
		if got := pack.LeastReplicas(descending(loads), want); got > n {
			t.Fatalf("%v of %d: the bound is %d, and %d are enough", loads, want, got, n)
		}
	})
}

// best tries every division of the loads.
func best(loads, bins []plan.Load) plan.Load {
	if len(loads) == 0 {
		return slices.Max(bins)
	}
	least := plan.Load(1 << 62)
	for r := range bins {
		bins[r] += loads[0]
		least = min(least, best(loads[1:], bins))
		bins[r] -= loads[0]
	}
	return least
}

func TestBoundsThatCount(t *testing.T) {
	for name, c := range map[string]struct {
		loads    []plan.Load
		replicas int
		want     plan.Load
	}{
		"the mean":                               {[]plan.Load{3, 3, 3, 3}, 2, 6},
		"the heaviest":                           {[]plan.Load{9, 1, 1}, 2, 9},
		"two of the three heaviest share one":    {[]plan.Load{5, 5, 4, 1}, 2, 9},
		"two replicas have two of the five each": {[]plan.Load{10, 9, 9, 8, 8}, 3, 17},
		"nothing":                                {nil, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pack.LeastMakespan(c.loads, c.replicas); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Each load has one other that fills a bin with it to the last digit; at the start each has a bin of its own.
func TestFewerFillsToTheLastDigit(t *testing.T) {
	loads := []plan.Load{100, 90, 80, 70, 60, 50, 50, 60, 70, 80, 90, 100}
	bins := make([]pack.Bin, len(loads))
	for i, l := range loads {
		bins[i] = pack.Bin{Items: []int32{int32(i)}, Load: l}
	}
	if got := pack.Fewer(loads, bins, 6, 150, 1_000_000); len(got) != 6 {
		t.Errorf("%d bins, want 6: %v", len(got), got)
	}
}

// Whatever the loads, it ends, and says nothing that cannot be.
func FuzzPack(f *testing.F) {
	f.Add([]byte{7, 7, 7, 1, 0}, uint8(3), uint16(500))
	f.Add([]byte{255, 254, 253}, uint8(0), uint16(60_000))
	f.Fuzz(func(t *testing.T, raw []byte, replicas uint8, steps uint16) {
		raw = raw[:min(len(raw), 100)]
		loads, bins := make([]plan.Load, len(raw)), make([]pack.Bin, int(replicas%32)+1)
		for i := range raw {
			loads[i] = plan.Load(raw[i]) << (raw[i] % 48)
			b := &bins[i%len(bins)]
			b.Items, b.Load = append(b.Items, int32(i)), b.Load+loads[i]
		}
		low := pack.LeastMakespan(descending(loads), len(bins))
		got, _ := pack.Lower(loads, bins, low, int(steps), uint64(replicas))
		most := pack.Makespan(got)
		if most < low || most > pack.Makespan(bins) {
			t.Errorf("%d, before %d, at least %d", most, pack.Makespan(bins), low)
		}
		if got := pack.Fewer(loads, bins, 1, pack.Makespan(bins), int(steps)); len(got) > len(bins) {
			t.Errorf("%d bins, before %d", len(got), len(bins))
		}
	})
}
