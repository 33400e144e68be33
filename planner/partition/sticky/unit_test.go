package sticky_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
	"ballast/planner/partition/constraint"
	"ballast/planner/partition/sticky"
	"ballast/planner/plan"
)

// alike are items of one load each, so many on each replica.
func alike(load plan.Load, on ...int) constraint.Question {
	p := constraint.Question{Bounds: partition.Bounds{MaxReplicas: 16, Fixed: len(on)}, Replicas: len(on)}
	for replica, n := range on {
		for range n {
			p.Items = append(p.Items, partition.Item{ID: fmt.Sprintf("c%02d", len(p.Items)), Load: load, Clusters: 1, Replica: partition.Free})
			p.Now = append(p.Now, replica)
		}
	}
	return p
}

// A replica with one item that carries something gives it up to nobody, however many empty ones are beside it: it would be as much
// elsewhere.
func TestOneItemBesideEmptyOnesStays(t *testing.T) {
	for _, bounds := range []partition.Bounds{{MinReplicas: 1, MaxReplicas: 3, Fixed: 3}, {MinReplicas: 1, MaxReplicas: 3, Capacity: 10},
		{MinReplicas: 1, MaxReplicas: 3, Fixed: 3, Memory: 10}} {
		p := alike(0, 4, 0, 0)
		p.Bounds = bounds
		p.Items[2].Load, p.Items[2].Memory = 20, 20
		a, err := sticky.Plan(p, sticky.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 0, 0, 0}; !slices.Equal(a.Of, want) {
			t.Errorf("%+v: they go to %v, want %v", bounds, a.Of, want)
		}
	}
}

// Loads that have much in common are few parts each, and shares of them must not be rounded to these.
func TestLoadsThatAreAlikeComeToRestEvenly(t *testing.T) {
	shipped := sticky.Options{High: plan.LoadUnit * 95 / 100, Down: plan.LoadUnit * 90 / 100, Low: plan.LoadUnit * 85 / 100}
	for _, test := range []struct {
		on, want []int
	}{
		{[]int{7, 1}, []int{4, 4}},
		{[]int{5, 3}, []int{4, 4}},
		{[]int{6, 1}, []int{4, 3}},
		{[]int{8, 2, 2}, []int{4, 4, 4}},
		{[]int{20, 10}, []int{16, 14}}, // 16 are below down, 1.112 even shares
	} {
		for _, load := range []plan.Load{1, 7, plan.LoadUnit} {
			p := alike(load, test.on...)
			for range 8 {
				a, err := sticky.Plan(p, shipped)
				if err != nil {
					t.Fatal(err)
				}
				p.Now = a.Of
			}
			got := make([]int, len(test.on))
			for _, replica := range p.Now {
				got[replica]++
			}
			slices.SortFunc(got, func(a, b int) int { return b - a })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%v of load %d each (-want +got):\n%s", test.on, load, diff)
			}
		}
	}
}

// The lines that an answer says are those of the same fleet in any unit, but for what is less than one of it.
func TestLinesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		load := plan.Load(rapid.Int64Range(1, 1<<40).Draw(t, "load"))
		on := rapid.SliceOfN(rapid.IntRange(1, 20), 2, 6).Draw(t, "on")
		a, err := sticky.Plan(alike(load, on...), sticky.Options{})
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, n := range on {
			total += n
		}
		even := float64(load) * float64(total) / float64(len(on))
		for name, line := range map[string]struct{ got, want float64 }{
			"even": {float64(a.Even), even},
			"full": {float64(a.Full), even * 1.05 / 0.85},
			"high": {float64(a.High), even * 1.05 / 0.85 * 0.95},
			"low":  {float64(a.Low), even * 1.05},
		} {
			if off := line.got - line.want; off < -2-line.want*1e-6 || off > 2+line.want*1e-6 {
				t.Errorf("%s is %.0f, want %.0f", name, line.got, line.want)
			}
		}
	})
}
