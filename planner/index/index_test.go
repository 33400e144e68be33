package index_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/index"
	"ballast/planner/normalize"
	"ballast/planner/plan"
)

func col(id string, values ...float64) normalize.Column {
	return normalize.Column{ID: id, Values: values}
}

const one = plan.LoadUnit

func TestPNorm(t *testing.T) {
	for name, tc := range map[string]struct {
		cols    []normalize.Column
		p       float64
		weights map[string]float64
		want    []plan.Load
	}{
		"p 1 adds up by weight": {[]normalize.Column{col("apps", 0.5, 0), col("pods", 0.2, 1)}, 1,
			map[string]float64{"apps": 1, "pods": 0.5}, []plan.Load{one * 6 / 10, one / 2}},
		"p 2 is the length": {[]normalize.Column{col("apps", 3, 0), col("pods", 4, 0)}, 2,
			map[string]float64{"apps": 1, "pods": 1}, []plan.Load{5 * one, 0}},
		"the weight is under the root": {[]normalize.Column{col("apps", 3)}, 2,
			map[string]float64{"apps": 4}, []plan.Load{6 * one}},
		"p 3": {[]normalize.Column{col("apps", 3), col("pods", 4), col("nodes", 5)}, 3,
			map[string]float64{"apps": 1, "pods": 1, "nodes": 1}, []plan.Load{6 * one}},
		"a large p is the largest metric, however small": {[]normalize.Column{col("apps", 0.001, 0), col("pods", 0.0005, 0.25)}, 500,
			map[string]float64{"apps": 1, "pods": 1}, []plan.Load{one / 1000, one / 4}},
		"a weight of 0 ignores the metric, however large": {[]normalize.Column{col("apps", 2), col("pods", 1e200)}, 2,
			map[string]float64{"apps": 1, "pods": 0}, []plan.Load{2 * one}},
		"all ignored":       {[]normalize.Column{col("apps", 2)}, 3, map[string]float64{"apps": 0}, []plan.Load{0}},
		"no clusters":       {[]normalize.Column{col("apps")}, 1, map[string]float64{"apps": 1}, []plan.Load{}},
		"rounds to 1e-9":    {[]normalize.Column{col("apps", 1.4e-9, 1.6e-9)}, 1, map[string]float64{"apps": 1}, []plan.Load{1, 2}},
		"p between 1 and 2": {[]normalize.Column{col("apps", 4), col("pods", 4)}, 1.5, map[string]float64{"apps": 0.5, "pods": 0.5}, []plan.Load{4 * one}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := index.PNorm(tc.cols, tc.p, tc.weights)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestBadInputIsRefusedByNameWithTheMend(t *testing.T) {
	apps := map[string]float64{"apps": 1}
	for name, tc := range map[string]struct {
		cols    []normalize.Column
		p       float64
		weights map[string]float64
		want    []string
	}{
		"p below 1":                {[]normalize.Column{col("apps", 1)}, 0.5, apps, []string{"p 0.5", "1 or more"}},
		"p not a number":           {[]normalize.Column{col("apps", 1)}, math.NaN(), apps, []string{"p NaN"}},
		"p infinite":               {[]normalize.Column{col("apps", 1)}, math.Inf(1), apps, []string{"p +Inf"}},
		"a weight without values":  {[]normalize.Column{col("apps", 1)}, 1, map[string]float64{"apps": 1, "pods": 1}, []string{`metric "pods"`, "poll it"}},
		"values without a weight":  {[]normalize.Column{col("apps", 1), col("pods", 1)}, 1, apps, []string{`metric "pods"`, "no weight", "stop polling"}},
		"a metric twice":           {[]normalize.Column{col("apps", 1), col("apps", 1)}, 1, apps, []string{`metric "apps"`, "twice"}},
		"nothing":                  {nil, 1, nil, []string{"without metrics"}},
		"a negative weight":        {[]normalize.Column{col("apps", 1)}, 1, map[string]float64{"apps": -1}, []string{`metric "apps"`, "weight is -1"}},
		"an infinite weight":       {[]normalize.Column{col("apps", 1)}, 1, map[string]float64{"apps": math.Inf(1)}, []string{`metric "apps"`, "+Inf"}},
		"uneven":                   {[]normalize.Column{col("apps", 1), col("pods", 1, 2)}, 1, map[string]float64{"apps": 1, "pods": 1}, []string{`metric "pods"`, "2 values"}},
		"a negative value":         {[]normalize.Column{col("apps", 1, -0.5)}, 1, apps, []string{`metric "apps"`, "value 2 of 2", "positiveOffset"}},
		"NaN":                      {[]normalize.Column{col("apps", math.NaN())}, 2, apps, []string{`metric "apps"`, "NaN", "normalize"}},
		"too large for a load":     {[]normalize.Column{col("nodes", 0), col("apps", 1e12)}, 1, map[string]float64{"apps": 1, "nodes": 1}, []string{"cluster 1 of 1", `metric "apps"`, "smaller weights"}},
		"too large for float64":    {[]normalize.Column{col("apps", 1e200)}, 2, apps, []string{`metric "apps"`, "+Inf"}},
		"too large for the fleet":  {[]normalize.Column{col("apps", slices.Repeat([]float64{1e9}, 10)...)}, 1, apps, []string{"10 clusters", "add up"}},
		"several mistakes at once": {[]normalize.Column{col("a", 1)}, 1, map[string]float64{"b": 1, "c": 1}, []string{`"a"`, `"b"`, `"c"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := index.PNorm(tc.cols, tc.p, tc.weights)
			if err == nil {
				t.Fatalf("got %v and no error", got)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
		})
	}
}

func drawFleet(t *rapid.T) (cols []normalize.Column, weights map[string]float64) {
	n := rapid.IntRange(1, 20).Draw(t, "clusters")
	weights = map[string]float64{}
	cols = make([]normalize.Column, rapid.IntRange(1, 5).Draw(t, "metrics"))
	for i := range cols {
		id := string(rune('a' + i))
		cols[i] = col(id, rapid.SliceOfN(rapid.Float64Range(0, 1000), n, n).Draw(t, id)...)
		weights[id] = rapid.Float64Range(0, 2).Draw(t, "weight "+id)
	}
	return cols, weights
}

func TestTheOrderOfTheMetricsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, weights := drawFleet(t)
		p := rapid.SampledFrom([]float64{1, 1.5, 2, 3, 20}).Draw(t, "p")
		want, err := index.PNorm(cols, p, weights)
		if err != nil {
			t.Fatal(err)
		}
		got, err := index.PNorm(rapid.Permutation(cols).Draw(t, "order"), p, maps.Clone(weights))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Fatalf("%v (-want +got)\n%s", err, d)
		}
	})
}

// The fast paths against the definition, and the norm's own laws: it grows with each metric and scales with all.
func TestPNormIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, weights := drawFleet(t)
		p := rapid.SampledFrom([]float64{1, 1.5, 2, 3, 20}).Draw(t, "p")
		got, err := index.PNorm(cols, p, weights)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			var sum float64
			for _, c := range cols {
				sum += weights[c.ID] * math.Pow(c.Values[i], p)
			}
			want := math.Pow(sum, 1/p)
			if diff := math.Abs(got[i].Float() - want); diff > 1e-9+1e-11*want {
				t.Fatalf("cluster %d: got %v, want %v", i, got[i], want)
			}
		}
		cols[0].Values[0] *= 2
		grown, err := index.PNorm(cols, p, weights)
		if err != nil || grown[0]+1 < got[0] || !slices.Equal(grown[1:], got[1:]) {
			t.Fatalf("doubling a metric of the first cluster took %v to %v: %v", got, grown, err)
		}
	})
}
