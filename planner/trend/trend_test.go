package trend_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/gz"
	"ballast/planner/plan"
	"ballast/planner/trend"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func level(at time.Time, fullest, mean plan.Load) trend.Level {
	return trend.Level{At: at, Fullest: fullest, Mean: mean, Replicas: 3}
}

func TestALevelIsWhatReplicasCarry(t *testing.T) {
	got := trend.Of([]plan.Replica{{TotalLoad: 30}, {TotalLoad: 60}, {}}, noon)
	if diff := cmp.Diff(level(noon, 60, 30), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (trend.Trend{}).Take(trend.Of(nil, noon), "u"); len(got.Levels) != 0 {
		t.Errorf("of no replica there are the levels %v", got.Levels)
	}
}

func TestTheWorstOfAQuarterIsKept(t *testing.T) {
	var got trend.Trend
	for i, l := range []trend.Level{
		level(noon.Add(time.Minute), 5, 4), level(noon.Add(2*time.Minute), 9, 3),
		level(noon.Add(14*time.Minute), 7, 6), level(noon.Add(16*time.Minute), 2, 1),
	} {
		if got = got.Take(l, "u"); i == 0 && !got.Levels[0].At.Equal(noon) {
			t.Errorf("the first is of %s", got.Levels[0].At)
		}
	}
	want := trend.Trend{Unit: "u", Levels: []trend.Level{level(noon, 9, 3), level(noon.Add(trend.Every), 2, 1)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATrendBeginsAnew(t *testing.T) {
	before := trend.Trend{}.Take(level(noon, 5, 4), "u").Take(level(noon.Add(time.Hour), 6, 4), "u")
	for name, test := range map[string]struct {
		now  trend.Level
		unit string
		want []trend.Level
	}{
		"in another unit": {level(noon.Add(2*time.Hour), 1, 1), "v", []trend.Level{level(noon.Add(2*time.Hour), 1, 1)}},
		"after a week": {level(noon.Add(trend.Kept), 1, 1), "u",
			[]trend.Level{level(noon.Add(time.Hour), 6, 4), level(noon.Add(trend.Kept), 1, 1)}},
		"a clock that went back": {level(noon.Add(20*time.Minute), 1, 1), "u",
			[]trend.Level{level(noon, 5, 4), level(noon.Add(trend.Every), 1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, before.Take(test.now, test.unit).Levels); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever a clock and loads do, a trend is in its order and within a week, comes back as it was packed, and packs to little.
func TestATrendIsBoundedAndComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, got := noon, trend.Trend{}
		for range rapid.IntRange(0, 60).Draw(t, "cycles") {
			at = at.Add(time.Duration(rapid.Int64Range(-int64(30*time.Minute), int64(30*time.Hour)).Draw(t, "after")))
			l := trend.Level{At: at, Replicas: rapid.IntRange(-1, 20).Draw(t, "replicas"),
				Fullest: plan.Load(rapid.Int64Range(-1, math.MaxInt64).Draw(t, "fullest")), Mean: plan.Load(rapid.Int64Range(0, 1<<40).Draw(t, "mean"))}
			got = got.Take(l, rapid.SampledFrom([]string{"u", "u", "u", "v"}).Draw(t, "unit"))
		}
		for i, l := range got.Levels {
			newest := got.Levels[len(got.Levels)-1].At
			if i > 0 && !l.At.After(got.Levels[i-1].At) || newest.Sub(l.At) >= trend.Kept {
				t.Fatalf("level %d is of %s, the newest of %s", i, l.At, newest)
			}
		}
		packed, err := got.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back trend.Trend
		if err := back.UnmarshalBinary(packed); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, back); diff != "" {
			t.Fatalf("(-packed +back):\n%s", diff)
		}
	})
}

// A full week of the largest loads has room, and one of a real fleet is small beside the history's 900 KiB.
func TestAWeekIsSmall(t *testing.T) {
	for name, test := range map[string]struct {
		load func(i int) plan.Load
		most int
	}{
		"of the largest loads": {func(int) plan.Load { return math.MaxInt64 }, 2 << 10},
		"of a real fleet":      {func(i int) plan.Load { return plan.Load(6e7 + 3e7*math.Sin(float64(i*i))) }, 16 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			var week trend.Trend
			for i := range 1000 {
				week = week.Take(level(noon.Add(time.Duration(i)*trend.Every), test.load(i), test.load(i+1)), "u")
			}
			packed, err := week.MarshalBinary()
			if err != nil || len(week.Levels) != 672 || len(packed) > test.most {
				t.Errorf("%d levels take %d bytes: %v", len(week.Levels), len(packed), err)
			}
		})
	}
}

func TestWhatIsNoTrendIsRefused(t *testing.T) {
	bounds := gz.Bounds{Bytes: 1 << 20, Nested: 1 << 10}
	type saved struct {
		Unit                    string
		From                    int64
		Fullest, Mean, Replicas []int64
	}
	one := []int64{1}
	for name, s := range map[string]saved{
		"lists of other lengths":   {From: 1, Fullest: one, Mean: one},
		"a load below 0":           {From: 1, Fullest: []int64{-1}, Mean: one, Replicas: one},
		"replicas below 0":         {From: 1, Fullest: one, Mean: one, Replicas: []int64{-1}},
		"a time before all others": {From: -1, Fullest: one, Mean: one, Replicas: one},
		"a time beyond all clocks": {From: math.MaxInt64, Fullest: one, Mean: one, Replicas: one},
		"more than a week":         {From: 1, Fullest: make([]int64, 673), Mean: make([]int64, 673), Replicas: make([]int64, 673)},
	} {
		t.Run(name, func(t *testing.T) {
			packed, err := bounds.PackJSON(s)
			if err != nil {
				t.Fatal(err)
			}
			before := trend.Trend{}.Take(level(noon, 5, 4), "u")
			got := before
			if err := got.UnmarshalBinary(packed); err == nil || !cmp.Equal(before, got) {
				t.Errorf("%v is taken, error %v", got, err)
			}
		})
	}
}

func FuzzTrend(f *testing.F) {
	packed, err := trend.Trend{}.Take(level(noon, 5, 4), "u").Take(level(noon.Add(time.Hour), 5, 4), "u").MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		var read trend.Trend
		if read.UnmarshalBinary(packed) != nil {
			return
		}
		if len(read.Levels) > 672 {
			t.Fatalf("%d levels are read", len(read.Levels))
		}
		if _, err := read.Take(level(noon, 5, 4), read.Unit).MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	})
}
