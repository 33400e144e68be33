package size

import (
	"encoding/json"
	"math"
	"testing"
)

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"since":1700000000,"at":1700000060,"in":4,"window":[[1700000000,3,4]],"ring":[1,2,3],"value":"280m"}`), 8.0)
	f.Fuzz(func(t *testing.T, data []byte, input float64) {
		var s State
		if json.Unmarshal(data, &s) != nil {
			return
		}
		r := readme()
		r.DelayDown.For, r.DelayUp.For, r.Smoothing = MaxDelay, MaxDelay/2, &Smoothing{}
		most := q("100")
		r.Max = &most
		d, s := s.Observe(r, at(0), input).Decide(r, at(0), s.Value)
		if d.Computed.Sign() < 0 || d.Computed.Cmp(most) > 0 {
			t.Errorf("%v gives %s", input, d.Computed.String())
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}

func FuzzParseQuantity(f *testing.F) {
	for _, text := range []string{"200m", "10Mi", "1e3", "0.5", "9223372036854775807Ei", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quantity, err := ParseQuantity(text)
		if err != nil {
			return
		}
		r := Rule{Base: quantity, Slope: quantity, Input: "x"}
		if v := r.Value(math.MaxFloat64, true); v.Sign() < 0 {
			t.Errorf("%s gives %s", text, v.String())
		}
	})
}
