package config

import (
	"testing"
	"time"
)

func TestDurationsAreWrittenWithoutZeroUnits(t *testing.T) {
	for text, want := range map[string]string{
		"60s": "1m", "90s": "1m30s", "1h": "1h", "24h": "24h", "7d": "168h", "1500ms": "1s500ms", "0": "0s", "1d12h": "36h",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%s is written %s (%v), want %s", text, d, err, want)
		}
	}
	for d, want := range map[Duration]string{Duration(time.Microsecond): "1µs", Duration(-time.Minute): "-1m0s"} {
		if d.String() != want {
			t.Errorf("%d is written %s, want %s", int64(d), d, want)
		}
	}
}

func TestValuesAreRefusedWithTheirMend(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"duration":   {new(Duration).UnmarshalText([]byte("1 minute")), "is not a length of time: write it like 90s, 1h30m or 7d"},
		"percentage": {new(Percent).UnmarshalText([]byte("+5%")), "is not a percentage: write a whole number and the sign, like 50%"},
		"decimal":    {new(Decimal).UnmarshalText([]byte("01")), `is not a decimal number: write it like "0.9", with at most 15 digits before the point and 12 behind`},
		"replicas":   {new(Replicas).UnmarshalJSON([]byte("1.5")), "is neither a number of replicas, nor workload, nor null"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.err == nil || c.err.Error() != c.want {
				t.Errorf("got %v, want %s", c.err, c.want)
			}
		})
	}
}

func TestNumbersOfValues(t *testing.T) {
	for name, c := range map[string]struct{ got, want float64 }{
		"a decimal":             {Decimal("0.25").Float(), 0.25},
		"a negative decimal":    {Decimal("-3").Float(), -3},
		"the empty decimal":     {Decimal("").Float(), 0},
		"a percentage's share":  {Percent(45).Share(), 0.45},
		"no percentage's share": {Percent(0).Share(), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", name, c.got, c.want)
		}
	}
}
