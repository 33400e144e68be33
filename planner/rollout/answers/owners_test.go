package answers

import (
	"math"
	"testing"

	"ballast/planner/observed"
)

// TestNearsLimit: nine tenths of the limit is near, whatever numbers a template or a pod has.
func TestNearsLimit(t *testing.T) {
	const gib, eib = 1 << 30, 1 << 60
	for name, test := range map[string]struct {
		memory, limit int64
		want          bool
	}{
		"far":                   {gib, 2 * gib, false},
		"just below":            {899, 1000, false},
		"at nine tenths":        {900, 1000, true},
		"above":                 {3 * gib, 2 * gib, true},
		"no limit":              {gib, 0, false},
		"not told":              {0, gib, false},
		"a limit of 1Ei":        {gib, eib, false},
		"a limit of 128Pi":      {gib, 1 << 57, false},
		"the largest limit":     {gib, math.MaxInt64, false},
		"near the largest":      {math.MaxInt64 / 100 * 95, math.MaxInt64, true},
		"a use beyond its host": {math.MaxInt64, gib, true},
	} {
		if got := NearsLimit(observed.Pod{Memory: test.memory, MemoryLimit: test.limit}); got != test.want {
			t.Errorf("%s: near %t, want %t", name, got, test.want)
		}
	}
}
