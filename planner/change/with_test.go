package change

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBothLedgersCountTogether: what each has within a window is used of it, whatever their order, and neither is changed.
func TestBothLedgersCountTogether(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	rates := []Rate{{Percent: 50, Period: time.Hour}, {Percent: 50, Period: 24 * time.Hour}}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (l Ledger) {
			at := now.Add(-30 * time.Hour)
			for range rapid.IntRange(0, 12).Draw(t, label) {
				if at = at.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "minutes")) * time.Minute); at.After(now) {
					break
				}
				l = l.Add(at, Failover, rapid.IntRange(1, 9).Draw(t, "moves"))
			}
			return l
		}
		a, b := draw("known"), draw("unknown")
		both, ofA, ofB := Look(a.With(b), rates, 1000, now), Look(a, rates, 1000, now), Look(b, rates, 1000, now)
		for i, w := range both.Windows {
			if want := ofA.Windows[i].Used + ofB.Windows[i].Used; w.Used != want {
				t.Fatalf("%d are used within %s, want %d", w.Used, w.Rate.Period, want)
			}
		}
	})
}
