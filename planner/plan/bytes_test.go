package plan

import (
	"math"
	"testing"
)

func TestBytesForPeople(t *testing.T) {
	for b, want := range map[Bytes]string{0: "0 B", 5: "5 B", 999: "999 B", 1000: "0.977 KiB", 1 << 20: "1 MiB", 3 << 29: "1.5 GiB", math.MaxInt64: "8 EiB"} {
		if got := b.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(b), got, want)
		}
	}
	for name, test := range map[string]struct{ got, want Bytes }{
		"a share":         {Bytes(1000).Share(950_000_000), 950},
		"rounded down":    {Bytes(3).Share(500_000_000), 1},
		"more than it":    {Bytes(1000).Share(8 * LoadUnit), 8000},
		"too much":        {Bytes(math.MaxInt64).Share(2 * LoadUnit), math.MaxInt64},
		"a sum":           {Bytes(3).Plus(4), 7},
		"a sum that ends": {Bytes(math.MaxInt64 - 1).Plus(4), math.MaxInt64},
	} {
		if test.got != test.want {
			t.Errorf("%s: %d, want %d", name, test.got, test.want)
		}
	}
	if b, err := NewBytes(1.5e9 + 0.4); err != nil || b != 1_500_000_000 {
		t.Errorf("%d, %v", b, err)
	}
	for _, no := range []float64{-1, math.NaN(), math.Inf(1), 1e19} {
		if b, err := NewBytes(no); err == nil {
			t.Errorf("%v bytes are %d", no, b)
		}
	}
}
