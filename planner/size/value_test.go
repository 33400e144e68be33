package size

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func q(text string) resource.Quantity { return resource.MustParse(text) }

// readme is CPVPS's own example: 200m and 10m a core.
func readme() Rule {
	return Rule{Container: "c", List: Requests, Resource: CPU, Base: q("200m"), Slope: q("10m"), Input: "cores", Scope: Total,
		Segments: []Segment{{q("4"), q("4")}, {q("32"), q("8")}, {q("256"), q("64")}}}
}

func TestTheExampleOfCPVPS(t *testing.T) {
	for cores, want := range map[float64]string{3: "230m", 5: "280m", 33: "600m", 256: "2760m", 300: "3400m"} {
		if got := readme().Value(cores, true); got.String() != want {
			t.Errorf("%v cores: %s, want %s", cores, got.String(), want)
		}
	}
}

func TestWhatAFloatLosesIsForgiven(t *testing.T) {
	r := readme()
	r.Segments = nil
	cores := 4 * 50 * 2.3 // 459.99999999999994
	if got := r.Value(cores, true); got.String() != "4800m" {
		t.Errorf("%v cores: %s", cores, got.String())
	}
}

// TestMonotoneRulesNeverShrinkWhenTheInputGrows: whatever Wrong lets through and has no slope below 0 is monotone.
func TestMonotoneRulesNeverShrinkWhenTheInputGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRule().Draw(t, "rule")
		if len(r.Wrong()) > 0 {
			t.Skip(r.Wrong())
		}
		a, b := rapid.Float64Range(0, 400).Draw(t, "input"), rapid.Float64Range(0, 400).Draw(t, "input")
		low, high := r.Value(min(a, b), true), r.Value(max(a, b), true)
		if low.Cmp(high) > 0 {
			t.Fatalf("%v gives %s, %v gives %s", min(a, b), low.String(), max(a, b), high.String())
		}
	})
}

func anyQuantity(low, high int64) *rapid.Generator[resource.Quantity] {
	return rapid.Custom(func(t *rapid.T) resource.Quantity {
		return *resource.NewMilliQuantity(rapid.Int64Range(low, high).Draw(t, "milli"), resource.DecimalSI)
	})
}

func anyRule() *rapid.Generator[Rule] {
	return rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{Container: "c", List: Requests, Resource: CPU, Input: "x", Scope: Total,
			Base: anyQuantity(0, 5000).Draw(t, "base"), Slope: anyQuantity(1, 5000).Draw(t, "slope"), Per: anyQuantity(0, 4000).Draw(t, "per")}
		at := int64(0)
		for range rapid.IntRange(0, 4).Draw(t, "segments") {
			at += rapid.Int64Range(0, 60_000).Draw(t, "at")
			r.Segments = append(r.Segments, Segment{*resource.NewMilliQuantity(at, resource.DecimalSI), anyQuantity(1, 64_000).Draw(t, "every")})
		}
		if rapid.Bool().Draw(t, "quantized") {
			r.Quantum = &Quantum{Step: anyQuantity(1, 4000).Draw(t, "step"), Ratio: rapid.SampledFrom([]float64{0, 1, 1.5, 2}).Draw(t, "ratio")}
		}
		return r
	})
}

// TestAFinerSegmentAfterACoarserOneIsRefused, where it would give less than the input before it.
func TestAFinerSegmentAfterACoarserOneIsRefused(t *testing.T) {
	r := readme()
	r.Segments = []Segment{{q("0"), q("64")}, {q("10"), q("1")}}
	want := []Wrong{{"segments[1].every", "an input of 10 would give less than one just below it: 10 instead of 64"}}
	if diff := cmp.Diff(want, r.Wrong()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Segments[1].At = q("64") // there the two agree
	if wrong := r.Wrong(); len(wrong) > 0 {
		t.Errorf("refused: %v", wrong)
	}
}

func at(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }

// TestASpikeShorterThanTheWindowNeverScalesDown: nothing goes below what a sample of the window asks for.
func TestASpikeShorterThanTheWindowNeverScalesDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := readme()
		window := rapid.IntRange(30, 7200).Draw(t, "window")
		r.DelayDown.For = time.Duration(window) * time.Second
		type sample struct {
			at    int
			input float64
		}
		var s State
		var d Decision
		var current *resource.Quantity
		var samples []sample
		now := 0
		for range rapid.IntRange(2, 60).Draw(t, "samples") {
			now += rapid.IntRange(1, 400).Draw(t, "seconds")
			input := rapid.Float64Range(1, 400).Draw(t, "input")
			samples = append(samples, sample{now, input})
			s = reread(t, s.Observe(r, at(now), input))
			d, s = s.Decide(r, at(now), current)
			if current != nil && d.Value.Cmp(*current) < 0 {
				for _, one := range samples {
					if v := r.Value(one.input, true); now-one.at <= window && d.Value.Cmp(v) < 0 {
						t.Fatalf("at %d s down to %s, %d s ago %s was asked for", now, d.Value.String(), now-one.at, v.String())
					}
				}
			}
			value := d.Value
			current = &value
		}
	})
}

// reread takes a state through its JSON, which bounds it.
func reread(t interface{ Fatal(...any) }, s State) (back State) {
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || len(data) > 5000 {
		t.Fatal(len(data), err)
	}
	return back
}

func TestAStateSurvivesAClockThatWentBack(t *testing.T) {
	r := readme()
	r.DelayDown.For = 10 * time.Minute
	s := State{}.Observe(r, at(86_400), 300).Observe(r, at(0), 3)
	current := r.Value(300, true)
	d, s := s.Decide(r, at(1), &current)
	if d.Value.Cmp(current) != 0 || d.Held != HeldDelayDown {
		t.Errorf("at once: %s, held by %q", d.Value.String(), d.Held)
	}
	d, _ = s.Observe(r, at(602), 3).Decide(r, at(602), &current)
	if d.Value.String() != "230m" {
		t.Errorf("ten minutes later: %s", d.Value.String())
	}
}

func TestWhatIsNoNumberIsNoSample(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if diff := cmp.Diff(State{}, State{}.Observe(readme(), at(0), bad)); diff != "" {
			t.Errorf("%v is remembered: %s", bad, diff)
		}
		if got := readme().Value(bad, true); got.String() != "200m" {
			t.Errorf("%v gives %s", bad, got.String())
		}
	}
}
