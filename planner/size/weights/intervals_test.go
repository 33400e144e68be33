package weights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIntervalsAreWhole(t *testing.T) {
	to := func(f float64) *float64 { return &f }
	for name, test := range map[string]struct {
		given []Interval
		wrong []string
	}{
		"none":          {nil, nil},
		"in any order":  {[]Interval{{2, nil, 100}, {0, to(1), 0}, {1, to(2), 50}}, nil},
		"a gap":         {[]Interval{{0, to(1), 0}, {1.5, nil, 50}}, []string{"nothing is said of a load of 1 to 1.5: let the interval from 1.5 on begin at 1"}},
		"an overlap":    {[]Interval{{0, to(2), 0}, {1, nil, 50}}, []string{"the intervals 0 to 2 and from 1 on overlap from 1 to 2"}},
		"no beginning":  {[]Interval{{1, nil, 0}}, []string{"nothing is said of a load of 0 to 1: let the interval from 1 on begin at 0"}},
		"no end":        {[]Interval{{0, to(2), 0}}, []string{"nothing is said of a load of 2 and more: leave out the end of the interval 0 to 2"}},
		"not a range":   {[]Interval{{0, to(0), 0}, {0, nil, 0}}, []string{"the interval 0 to 0 is no range of loads"}},
		"no percentage": {[]Interval{{0, nil, 101}}, []string{"the weight 101 of the interval from 0 on is no percentage"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, wrong := Check(test.given)
			if diff := cmp.Diff(test.wrong, wrong); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if test.wrong == nil && len(in) != len(test.given) {
				t.Errorf("%v", in)
			}
		})
	}
}

// TestABorderIsNoLeap: a load that wanders about a border asks for the same replicas from either side.
func TestABorderIsNoLeap(t *testing.T) {
	ten := 10.0
	in, _ := Check([]Interval{{0, &ten, 0}, {ten, nil, 100}})
	f := Fleet{Replicas: 2, Capacity: 2.5, Min: 1, Max: 16, Intervals: in}
	var got []int
	for _, load := range []float64{5, 9, 10, 10.1, 20, 40, 9.9, 7.6, 2.5} {
		f.Load = load
		f.FullestOf = func(replicas int) float64 { return load / float64(replicas) }
		f.Now = 2
		got = append(got, f.Decide().Replicas)
	}
	if diff := cmp.Diff([]int{2, 4, 4, 4, 4, 4, 4, 4, 1}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReplicasAgainstSizes(t *testing.T) {
	fleet := func(f Fleet) Fleet {
		f.Min, f.Max, f.Hysteresis = 1, 6, 0.1
		f.FullestOf = func(replicas int) float64 { return f.Load / float64(replicas) }
		return f
	}
	for name, test := range map[string]struct {
		fleet Fleet
		want  Split
	}{
		"what fits stays":                     {Fleet{Replicas: 3, Capacity: 2, Load: 5.7, DefaultWeight: 50}, Split{Replicas: 3, Capacity: 2}},
		"all vertical":                        {Fleet{Replicas: 3, Capacity: 2, Load: 12, DefaultWeight: 100}, Split{Replicas: 3, Capacity: 4}},
		"all horizontal":                      {Fleet{Replicas: 3, Capacity: 2, Load: 12}, Split{Replicas: 6, Capacity: 2}},
		"at the most replicas all vertical":   {Fleet{Replicas: 6, Capacity: 2, Load: 24}, Split{Replicas: 6, Capacity: 4}},
		"a node's size adds replicas":         {Fleet{Replicas: 3, Capacity: 2, Load: 12, DefaultWeight: 100, NodeCap: 3}, Split{Replicas: 4, Capacity: 3}},
		"never below the heaviest cluster":    {Fleet{Replicas: 3, Capacity: 2, Load: 6, Heaviest: 5, DefaultWeight: 100}, Split{Replicas: 3, Capacity: 5}},
		"more do not help a heavy cluster":    {Fleet{Replicas: 3, Capacity: 2, Load: 6, Heaviest: 5, NodeCap: 4, DefaultWeight: 100}, Split{Replicas: 3, Capacity: 5, OverNode: true}},
		"the load fell by half, all vertical": {Fleet{Replicas: 4, Capacity: 2, Load: 4, DefaultWeight: 100}, Split{Replicas: 4, Capacity: 1}},
		"and all horizontal":                  {Fleet{Replicas: 4, Capacity: 2, Load: 4}, Split{Replicas: 2, Capacity: 2}},
		"nothing to carry":                    {Fleet{Replicas: 4, Capacity: 2}, Split{Replicas: 1, Capacity: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := fleet(test.fleet).Decide()
			got.Why, got.Weight = "", 0
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
