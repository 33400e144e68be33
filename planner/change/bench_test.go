package change

import (
	"encoding/json"
	"testing"
	"time"
)

// BenchmarkWeek is the budget's part of a cycle of 10,000 clusters, some of which moved in every minute of a week.
func BenchmarkWeek(b *testing.B) {
	rates := []Rate{{10, time.Hour}, {25, 24 * time.Hour}, {100, 7 * 24 * time.Hour}}
	var l Ledger
	now := start
	for range 7 * 24 * 60 {
		now = now.Add(time.Minute)
		l = append(l, Record{now, 1, Balance}, Record{now, 1, Healing})
	}
	l = l.Kept(now, rates)
	data, err := json.Marshal(l)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		kept := l.Kept(now, rates).Add(now, Balance, 1)
		if Look(kept, rates, 10_000, now).Left < 0 {
			b.Fatal("below none")
		}
	}
	b.ReportMetric(float64(len(l)), "records")
	b.ReportMetric(float64(len(data)), "jsonBytes")
}
