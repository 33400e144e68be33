package measure

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/poll"
)

// The peer halts for all clusters at one without data, and never notices that a metric has stopped.
func TestHoldingAndAgeing(t *testing.T) {
	last := LastGood{}
	cycle := func(now time.Time, samples ...poll.Sample) Table {
		t.Helper()
		table, err := Join([]poll.Metric{apps()}, abc, answer(samples...), last, Options{MinCoverage: 0.6, MaxDrop: 1, MaxAge: 10 * time.Minute}, now)
		if err != nil {
			t.Fatal(err)
		}
		last = NewLastGood(table, last)
		return table
	}
	cycle(noon, poll.Sample{Key: "https://a", Value: 1, At: noon}, poll.Sample{Key: "https://b", Value: 2, At: noon}, poll.Sample{Key: "https://c", Value: 3, At: noon})
	// The scrape of c has stopped: its range query still answers, with samples that grow old.
	later := noon.Add(20 * time.Minute)
	table := cycle(later, poll.Sample{Key: "https://a", Value: 5, At: later}, poll.Sample{Key: "https://b", Value: 6, At: later}, poll.Sample{Key: "https://c", Value: 2.5, At: noon.Add(time.Minute)})
	if diff := cmp.Diff(Column{ID: "apps", Query: "q", Values: []float64{5, 6, 3}, Flags: []Flag{Fresh, Fresh, Held},
		SampledAt: []int64{later.UnixMilli(), later.UnixMilli(), noon.UnixMilli()}}, table.Columns[0], cmpopts.IgnoreUnexported(Column{})); diff != "" {
		t.Errorf("with one cluster's samples old (-want +got):\n%s", diff)
	}
	if table.Frozen {
		t.Error("one cluster without data has frozen the rest")
	}
	// c is not counted on any more: only a and b were measured last time.
	table = cycle(later.Add(time.Minute), poll.Sample{Key: "https://a", Value: 5, At: later}, poll.Sample{Key: "https://b", Value: 6, At: later})
	if table.Frozen || len(table.Problems) != 1 || table.Problems[0].Kind != HeldLong {
		t.Errorf("a cluster that is held counts as lost coverage: %v", table.Problems)
	}
	// Then Prometheus forgets everything: nothing changes, however often.
	for range 3 {
		table = cycle(later.Add(time.Hour))
		if diff := cmp.Diff([]float64{5, 6, 3}, table.Columns[0].Values); diff != "" || !table.Frozen {
			t.Errorf("with nothing answered, frozen %v (-want +got):\n%s", table.Frozen, diff)
		}
	}
}

func TestAFallenTotalIsBelievedAfterHalfAnHour(t *testing.T) {
	last := lastly()
	for _, step := range []struct {
		after      time.Duration
		wantFrozen bool
	}{
		{0, true}, {29 * time.Minute, true}, {-time.Hour, true}, {-31 * time.Minute, true}, {-30 * time.Minute, false}, {0, false},
	} {
		now := noon.Add(step.after)
		table, err := Join([]poll.Metric{apps()}, abc, answer(poll.Sample{Key: "https://a", Value: 1}, poll.Sample{Key: "https://b", Value: 1}, poll.Sample{Key: "https://c", Value: 1}), last, usual, now)
		if err != nil {
			t.Fatal(err)
		}
		if table.Frozen != step.wantFrozen {
			t.Errorf("%v after noon: frozen %v, want %v", step.after, table.Frozen, step.wantFrozen)
		}
		last = NewLastGood(table, last)
	}
}

// What is kept is a table of its own: of a cluster that is gone, too, and whatever is asked now.
func TestWhatIsKeptIsATable(t *testing.T) {
	kept := LastGood{IDs: []string{"a", "gone"}, Columns: []LastColumn{
		{ID: "apps", Values: []float64{1, 7}, At: []int64{60, 30}, Measured: []bool{true, false}}, {ID: "no longer asked", Values: []float64{1, 1}, At: []int64{1, 1}}}}
	half := 0.5
	got := map[string][]string{}
	table := kept.Table([]poll.Metric{{ID: "apps"}, {ID: "new", NoData: &half}, {ID: "without"}})
	for _, c := range table.Columns {
		for i, s := range table.Shards {
			got[c.ID] = append(got[c.ID], fmt.Sprint(s.ID, " ", c.Values[i], " ", c.Flags[i], " ", c.SampledAt[i]))
		}
	}
	want := map[string][]string{"apps": {"a 1 Held 60000", "gone 7 Held 30000"}, "new": {"a 0.5 NoData 0", "gone 0.5 NoData 0"}, "without": {"a 0 Missing 0", "gone 0 Missing 0"}}
	if diff := cmp.Diff(want, got); diff != "" || !table.Frozen {
		t.Errorf("frozen %t (-want +got):\n%s", table.Frozen, diff)
	}
}
