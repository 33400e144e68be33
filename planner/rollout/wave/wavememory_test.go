package wave

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/rollout/basis"
)

// TestAWaveKeepsToTheMemory: what arrives counts before what leaves, and what exceeds a replica's memory goes last, and alone.
func TestAWaveKeepsToTheMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &selection{now: make([]plan.Load, 3), least: make([]plan.Load, 3), ceiling: 1 << 40, memory: 10}
		for range 3 {
			d.inUse = append(d.inUse, plan.Bytes(rapid.IntRange(0, 12).Draw(t, "in use")))
		}
		var free []Unit
		for i := range rapid.IntRange(1, 6).Draw(t, "units") {
			u := Unit{Unit: placement.Unit{Names: []string{string(rune('a' + i))}, Home: rapid.IntRange(0, 2).Draw(t, "to")}, connected: true}
			u.Load, u.Memory = plan.Load(rapid.IntRange(1, 9).Draw(t, "load")), plan.Bytes(rapid.IntRange(0, 6).Draw(t, "takes"))
			u.from = (u.Home + 1) % 3
			free = append(free, u)
		}
		for first := true; len(free) > 0; first = false {
			i := d.next(free, first, 100, func(Unit) bool { return true })
			if i < 0 {
				break
			}
			u := free[i]
			free = slices.Delete(free, i, i+1)
			lacks, before := d.lacks(u), d.inUse[u.Home]
			if lacks > 0 && (!first || slices.ContainsFunc(free, func(other Unit) bool { return d.lacks(other) < lacks })) {
				t.Fatalf("%+v goes, and lacks %d, the first: %v, beside %+v", u, lacks, first, free)
			}
			d.take(u)
			if d.inUse[u.Home] != before+u.Memory {
				t.Fatalf("%d bytes in use, %d before %+v came", d.inUse[u.Home], before, u)
			}
			if lacks > 0 {
				break // alone
			}
			if u.Memory > 0 && before > 0 && d.inUse[u.Home] > d.memory {
				t.Fatalf("%d bytes in use of %d", d.inUse[u.Home], d.memory)
			}
		}
	})
}

// TestWhatARowTakesIsInUse: by the rows, and nothing where nobody knows the memory.
func TestWhatARowTakesIsInUse(t *testing.T) {
	o := basis.Options{Memory: 10, Bytes: map[string]plan.Bytes{"a": 1, "b": 2, "c": 3}}
	c := Chooser{Basis: &basis.Basis{Plan: plan.Plan{Clusters: map[string]plan.Row{"a": {Replica: 0}, "b": {Replica: 1}, "c": {Replica: 1}}}, Options: o}}
	if got := c.inUse(3); !slices.Equal(got, []plan.Bytes{1, 5, 0}) {
		t.Errorf("%v", got)
	}
	c.Options.Memory = 0
	if got := c.inUse(3); got != nil {
		t.Errorf("%v", got)
	}
}
