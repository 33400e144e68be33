package normalize_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/normalize"
)

func col(id string, values ...float64) normalize.Column {
	return normalize.Column{ID: id, Values: values}
}

var close9 = cmpopts.EquateApprox(1e-9, 1e-12)

func TestNormalizers(t *testing.T) {
	offset := func(e float64) func([]normalize.Column) ([]normalize.Column, error) {
		return func(cols []normalize.Column) ([]normalize.Column, error) { return normalize.Robust(cols, &e) }
	}
	robust := func(cols []normalize.Column) ([]normalize.Column, error) { return normalize.Robust(cols, nil) }
	reference := func(cols []normalize.Column) ([]normalize.Column, error) {
		return normalize.Reference(cols, map[string]float64{"apps": 10, "pods": 400})
	}
	for name, tc := range map[string]struct {
		normalize func([]normalize.Column) ([]normalize.Column, error)
		in, want  []normalize.Column
	}{
		"none keeps values": {normalize.None, []normalize.Column{col("apps", 1, 2)}, []normalize.Column{col("apps", 1, 2)}},
		"no metrics":        {robust, nil, []normalize.Column{}},
		"no clusters":       {normalize.MinMax, []normalize.Column{col("apps")}, []normalize.Column{col("apps")}},
		"min-max spans 0..1 in each metric": {normalize.MinMax,
			[]normalize.Column{col("apps", 3, 1, 5), col("pods", 100, 300, 300)},
			[]normalize.Column{col("apps", 0.5, 0, 1), col("pods", 0, 1, 1)}},
		"min-max of a metric that is the same everywhere is 0": {normalize.MinMax,
			[]normalize.Column{col("apps", 7, 7)}, []normalize.Column{col("apps", 0, 0)}},
		"reference makes the fleet of the first day 1": {reference,
			[]normalize.Column{col("apps", 1, 2, 7), col("pods", 100, 100, 200)},
			[]normalize.Column{col("apps", 0.1, 0.2, 0.7), col("pods", 0.25, 0.25, 0.5)}},
		"reference of a metric without data that day stays 0": {reference,
			[]normalize.Column{col("new", 0, 0), col("apps", 5, 5)},
			[]normalize.Column{col("new", 0, 0), col("apps", 0.5, 0.5)}},
		"robust with an odd number leaves the middle out of both halves": {robust, // Q1 = 1.5, Q3 = 7.5
			[]normalize.Column{col("apps", 9, 1, 2, 3, 6)}, []normalize.Column{col("apps", 1, -1.0/3, -1.0/6, 0, 0.5)}},
		"robust with an even number halves all": {robust, // Q1 = 2, Q3 = 7, median 4
			[]normalize.Column{col("apps", 1, 2, 3, 5, 7, 11)}, []normalize.Column{col("apps", -0.6, -0.4, -0.2, 0.2, 0.6, 1.4)}},
		"robust of two values":     {robust, []normalize.Column{col("apps", 4, 2)}, []normalize.Column{col("apps", 0.5, -0.5)}},
		"robust of one value is 0": {robust, []normalize.Column{col("apps", 4)}, []normalize.Column{col("apps", 0)}},
		"robust with an IQR of 0 is 0, outliers too": {robust,
			[]normalize.Column{col("apps", 5, 5, 5, 5, 5, 99)}, []normalize.Column{col("apps", 0, 0, 0, 0, 0, 0)}},
		"the offset is one for all metrics": {offset(0.01), // -0.5..0.5 and 0: lifted by 0.5 + 0.01
			[]normalize.Column{col("apps", 4, 2), col("pods", 7, 7)}, []normalize.Column{col("apps", 1.01, 0.01), col("pods", 0.51, 0.51)}},
		"an offset of 0 puts the smallest at 0": {offset(0),
			[]normalize.Column{col("apps", 4, 2)}, []normalize.Column{col("apps", 1, 0)}},
		"an offset leaves a fleet that nothing tells apart at 0": {offset(0.01),
			[]normalize.Column{col("apps", 4, 4), col("pods", 0, 0)}, []normalize.Column{col("apps", 0, 0), col("pods", 0, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.normalize(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got, close9, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestBadInputIsRefusedByNameWithTheMend(t *testing.T) {
	all := map[string]func([]normalize.Column) error{
		"none":      func(c []normalize.Column) error { _, err := normalize.None(c); return err },
		"minMax":    func(c []normalize.Column) error { _, err := normalize.MinMax(c); return err },
		"robust":    func(c []normalize.Column) error { _, err := normalize.Robust(c, nil); return err },
		"reference": func(c []normalize.Column) error { _, err := normalize.Reference(c, nil); return err },
	}
	for name, tc := range map[string]struct {
		in   []normalize.Column
		want []string
	}{
		"NaN":             {[]normalize.Column{col("apps", 1, math.NaN())}, []string{`metric "apps"`, "value 2 of 2 is NaN", "noData"}},
		"infinity":        {[]normalize.Column{col("apps", math.Inf(1))}, []string{`metric "apps"`, "+Inf", "noData"}},
		"a negative":      {[]normalize.Column{col("apps", 0, 0, -3)}, []string{`metric "apps"`, "value 3 of 3 is -3", "clamp_min"}},
		"uneven":          {[]normalize.Column{col("apps", 1, 2), col("pods", 1)}, []string{`metric "pods"`, "1 values", "2"}},
		"a metric twice":  {[]normalize.Column{col("apps", 1), col("apps", 1)}, []string{`metric "apps"`, "twice"}},
		"several at once": {[]normalize.Column{col("apps", -1), col("pods", math.NaN())}, []string{`"apps"`, `"pods"`}},
	} {
		for normalizer, call := range all {
			t.Run(name+"/"+normalizer, func(t *testing.T) {
				wantError(t, call(tc.in), tc.want...)
			})
		}
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	for _, e := range []float64{-0.1, math.NaN(), math.Inf(1)} {
		_, err := normalize.Robust([]normalize.Column{col("apps", 1, 2)}, &e)
		wantError(t, err, "positiveOffset", "0.01")
	}
	for _, ref := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := normalize.Reference([]normalize.Column{col("apps", 1)}, map[string]float64{"apps": ref})
		wantError(t, err, `metric "apps"`, "reference")
	}
	_, err := normalize.Reference([]normalize.Column{col("apps", 1e300)}, map[string]float64{"apps": 1e-300})
	wantError(t, err, `metric "apps"`, "too large")
	_, err = normalize.Robust([]normalize.Column{col("apps", 0, 1e-320, 2e-320, 3e-320, 4e-320, 5e-320, 1e300)}, nil)
	wantError(t, err, `metric "apps"`, "too large")
}

func TestAMetricThatComesLaterIsReportedAndCanBeAnchored(t *testing.T) {
	firstDay := []normalize.Column{col("apps", 6, 2), col("gpus", 0, 0)}
	refs := anchors(t, firstDay)
	if d := cmp.Diff(map[string]float64{"apps": 8}, refs); d != "" {
		t.Errorf("totals (-want +got)\n%s", d)
	}
	later := []normalize.Column{col("apps", 6, 2), col("gpus", 3, 1), col("added", 5, 5)}
	_, err := normalize.Reference(later, refs)
	wantError(t, err, `metric "gpus"`, `metric "added"`, "reference 4", "reference 10")
	var problem *normalize.UnanchoredError
	if !errors.As(err, &problem) {
		t.Fatalf("got %T, want an *UnanchoredError", err)
	}
	if d := cmp.Diff([]string{"gpus", "added"}, problem.Metrics); d != "" {
		t.Errorf("metrics (-want +got)\n%s", d)
	}
	maps.Copy(refs, problem.Totals)
	got, err := normalize.Reference(later, refs)
	want := []normalize.Column{col("apps", 0.75, 0.25), col("gpus", 0.75, 0.25), col("added", 0.5, 0.5)}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("anchored: %v (-want +got)\n%s", err, d)
	}
}

// anchors are the references that a planner takes on the first day: what is reported as lacking one.
func anchors(t interface{ Fatalf(string, ...any) }, cols []normalize.Column) map[string]float64 {
	_, err := normalize.Reference(cols, nil)
	var lacking *normalize.UnanchoredError
	if err != nil && !errors.As(err, &lacking) {
		t.Fatalf("taking references: %v", err)
	}
	if lacking == nil {
		return map[string]float64{}
	}
	return lacking.Totals
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error lacks %q:\n%v", p, err)
		}
	}
}

func columns(t *rapid.T, least int) []normalize.Column {
	n := rapid.IntRange(least, 30).Draw(t, "clusters")
	cols := make([]normalize.Column, rapid.IntRange(1, 4).Draw(t, "metrics"))
	for i := range cols {
		cols[i] = col(string(rune('a'+i)), rapid.SliceOfN(rapid.Float64Range(0, 1e6), n, n).Draw(t, "values")...)
	}
	return cols
}

func TestNormalizingKeepsTheOrderWithinAMetricAndTheInput(t *testing.T) {
	e := 0.01
	for name, f := range map[string]func([]normalize.Column) ([]normalize.Column, error){
		"none":   normalize.None,
		"minMax": normalize.MinMax,
		"robust": func(c []normalize.Column) ([]normalize.Column, error) { return normalize.Robust(c, &e) },
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			in := columns(t, 0)
			before := make([]normalize.Column, len(in))
			for i, c := range in {
				before[i] = col(c.ID, slices.Clone(c.Values)...)
			}
			out, err := f(in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, in, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("the input changed\n%s", d)
			}
			for c := range in {
				for i, x := range in[c].Values {
					if y := out[c].Values[i]; !(y >= 0) {
						t.Fatalf("%v became %v", x, y)
					}
					for j := range i {
						if x < in[c].Values[j] && out[c].Values[i] > out[c].Values[j] {
							t.Fatalf("%v < %v became %v > %v", x, in[c].Values[j], out[c].Values[i], out[c].Values[j])
						}
					}
				}
			}
		}))
	}
}

// What a share of the fleet is must not depend on who joins: the additivity that Robust lacks.
func TestAnEmptyClusterChangesNoOthersReferenceShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := columns(t, 1)
		refs := anchors(t, in)
		before, err := normalize.Reference(in, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range in {
			in[i].Values = append(slices.Clone(c.Values), 0)
		}
		after, err := normalize.Reference(in, refs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range before {
			want := append(slices.Clone(before[i].Values), 0)
			if d := cmp.Diff(want, after[i].Values); d != "" {
				t.Fatalf("metric %q (-want +got)\n%s", before[i].ID, d)
			}
		}
	})
}

// TestClustersWithoutLoadMeasureNobody: those that have a load are measured against each other, however many have none.
func TestClustersWithoutLoadMeasureNobody(t *testing.T) {
	offset := 0.01
	robust := func(cols []normalize.Column) ([]normalize.Column, error) { return normalize.Robust(cols, &offset) }
	for name, by := range map[string]func([]normalize.Column) ([]normalize.Column, error){"robust": robust, "minMax": normalize.MinMax, "none": normalize.None} {
		alone := []normalize.Column{col("a", 10, 20, 30, 40), col("b", 0, 1, 0, 3)}
		want, err := normalize.OfLoaded(alone, by)
		if err != nil {
			t.Fatal(err)
		}
		beside := []normalize.Column{col("a", 0, 10, 0, 20, 30, 40), col("b", 0, 0, 0, 1, 0, 3)}
		beside[0].Values, beside[1].Values = append(beside[0].Values, make([]float64, 100)...), append(beside[1].Values, make([]float64, 100)...)
		got, err := normalize.OfLoaded(beside, by)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			w := slices.Concat([]float64{0, want[i].Values[0], 0}, want[i].Values[1:], make([]float64, 100))
			if diff := cmp.Diff(w, got[i].Values); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", name, want[i].ID, diff)
			}
		}
		if plain, err := by(alone); err != nil || !cmp.Equal(plain, want) {
			t.Errorf("%s of a fleet in which all carry something is another: %v", name, err)
		}
	}
	if _, err := normalize.OfLoaded([]normalize.Column{col("a", 0, -1)}, normalize.MinMax); err == nil {
		t.Error("a value below 0 is taken")
	}
	if none, err := normalize.OfLoaded([]normalize.Column{col("a", 0, 0)}, normalize.MinMax); err != nil || !cmp.Equal(none, []normalize.Column{col("a", 0, 0)}) {
		t.Errorf("nobody with a load: %v, %v", none, err)
	}
}
