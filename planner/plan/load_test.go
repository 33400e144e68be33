package plan

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLoadRefusesWhatIsNoLoad(t *testing.T) {
	for name, index := range map[string]float64{"NaN": math.NaN(), "infinite": math.Inf(1), "negative": -0.1, "too large": 2e9} {
		t.Run(name, func(t *testing.T) {
			if l, err := NewLoad(index); err == nil {
				t.Errorf("NewLoad(%v) = %v, want an error", index, l)
			}
		})
	}
}

func TestLoadDisplay(t *testing.T) {
	for want, index := range map[string]float64{"0": 0, "1.82": 1.8249, "0.41": 0.41, "0.000213": 0.00021349, "5120": 5120, "12.3": 12.34, "1": 1, "100": 99.96} {
		l, err := NewLoad(index)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Display(); got != want {
			t.Errorf("Display of %v = %q, want %q", index, got, want)
		}
	}
}

func TestLoadTextIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Load(rapid.Int64Min(0).Draw(t, "load"))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Load
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%s read back as %d (%v), want %d", text, got, err, want)
		}
	})
}

func TestASumOfTwoLoadsNeverTurnsNegative(t *testing.T) {
	for _, test := range []struct{ a, b, want Load }{{1, 2, 3}, {0, 0, 0}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64 - 1, 1, math.MaxInt64}, {9_000_000_000 * LoadUnit, 9_000_000_000 * LoadUnit, math.MaxInt64}} {
		if got := test.a.Plus(test.b); got != test.want {
			t.Errorf("%d and %d are %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestSumLoadsRefusesOverflow(t *testing.T) {
	if sum, err := SumLoads(math.MaxInt64, 1); err == nil {
		t.Errorf("SumLoads = %d, want an error", sum)
	}
	if sum, err := SumLoads(LoadUnit, LoadUnit/2); err != nil || sum != 3*LoadUnit/2 {
		t.Errorf("SumLoads(1, 0.5) = %v, %v, want 1.5", sum, err)
	}
}
