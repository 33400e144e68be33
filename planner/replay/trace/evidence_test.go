package trace

import (
	"errors"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steps is a source of some steps.
type steps struct {
	header Header
	rest   []Step
}

func (s *steps) Header() Header { return s.header }
func (s *steps) Share() float64 { return 0 }
func (s *steps) Next() (Step, error) {
	if len(s.rest) == 0 {
		return Step{}, io.EOF
	}
	first := s.rest[0]
	s.rest = s.rest[1:]
	return first, nil
}

func TestWhatATraceSaysIsCounted(t *testing.T) {
	at := func(minutes int) time.Time { return nine.Add(time.Duration(minutes) * time.Minute) }
	for name, test := range map[string]struct {
		of   []Step
		want Evidence
	}{
		"nothing":  {nil, Evidence{}},
		"one step": {[]Step{{At: at(0), Values: [][]float64{{1, nan}, {2, 3}}}}, Evidence{Steps: 1, Samples: 3, Missing: 1, Long: time.Minute}},
		"a gap": {[]Step{{At: at(0), Values: [][]float64{{1}}}, {At: at(1), Values: [][]float64{{nan}}}, {At: at(12), Values: [][]float64{{5}}}},
			Evidence{Steps: 3, Samples: 2, Missing: 1, Gaps: 1, Gap: 10 * time.Minute, Long: 13 * time.Minute}},
		"two, and steps that come early": {[]Step{{At: at(0)}, {At: at(3)}, {At: at(3).Add(time.Second)}, {At: at(10)}},
			Evidence{Steps: 4, Gaps: 2, Gap: 2*time.Minute + 5*time.Minute + 59*time.Second, Long: 11 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Counted{Source: &steps{Header{Step: time.Minute, Metrics: []string{"load"}}, test.of}}
			read, err := All(c)
			if err != nil || len(read) != len(test.of) {
				t.Fatalf("%d steps of %d, %v", len(read), len(test.of), err)
			}
			same(t, test.want, c.Evidence())
			if _, err := c.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("after its end: %v", err)
			}
			same(t, test.want, c.Evidence())
		})
	}
}

// Whatever is read, each value counts once, and what is said and what is a gap make up no more than all of the time.
func TestEachValueCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var of []Step
		values, now := 0, nine
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			row := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, nan}), 0, 5).Draw(t, "values")
			values += len(row)
			now = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * time.Second)
			of = append(of, Step{At: now, Values: [][]float64{row}})
		}
		c := &Counted{Source: &steps{Header{Step: time.Minute}, of}}
		if _, err := All(c); err != nil {
			t.Fatal(err)
		}
		e := c.Evidence()
		if e.Steps != len(of) || e.Samples+e.Missing != values || e.Gap+time.Minute > max(e.Long, time.Minute) || e.Gap < 0 || e.Gaps > e.Steps {
			t.Errorf("%+v of %d steps with %d values", e, len(of), values)
		}
	})
}
