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
	table := TableOf(kept, []poll.Metric{{ID: "apps"}, {ID: "new", NoData: &half}, {ID: "without"}})
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

// TestWhatNobodyWorksOnMayOnlyRise: while its replica was down a cluster's load halved, and levelling made room for more beside it.
func TestWhatNobodyWorksOnMayOnlyRise(t *testing.T) {
	last := LastGood{}
	minutes := 0
	cycle := func(after int, unserved bool, value float64) (float64, int) {
		t.Helper()
		minutes += after
		now := noon.Add(time.Duration(minutes) * time.Minute)
		table, err := Join([]poll.Metric{apps()}, abc, answer(poll.Sample{Key: "https://a", Value: value, At: now}, poll.Sample{Key: "https://b", Value: 5, At: now},
			poll.Sample{Key: "https://c", Value: 5, At: now}), last, Options{MinCoverage: 0.6, MaxDrop: 1, MaxAge: 10 * time.Minute, Standings: Standings{{Unserved: unserved}, {}, {}}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if c := table.Columns[0]; table.Frozen || len(table.Problems) > 0 || c.Flags[0] != Fresh || c.Values[1] != 5 {
			t.Fatalf("frozen %t, %v, flags %v, values %v", table.Frozen, table.Problems, c.Flags, c.Values)
		}
		last = throughTheHistory(t, NewLastGood(table, last))
		return table.Columns[0].Values[0], int(now.Sub(time.UnixMilli(table.Columns[0].SampledAt[0])).Minutes())
	}
	for i, step := range []struct {
		after    int
		unserved bool
		says     float64
		want     float64
		age      int // minutes
	}{
		{0, false, 10, 10, 0},
		{1, false, 8, 8, 0}, // it falls while somebody works on it
		{1, true, 4, 8, 1},
		{5, true, 0, 8, 6},
		{1, true, 9, 9, 0}, // it may rise
		{1, true, 3, 9, 1},
		{1, false, 3, 3, 0}, // somebody works on it again
		{1, true, 2, 3, 1},
		{24*60 - 2, true, 2, 3, 24*60 - 1},
		{1, true, 2, 2, 0}, // for a day
	} {
		if got, age := cycle(step.after, step.unserved, step.says); got != step.want || age != step.age {
			t.Errorf("step %d: %v, %d min old, want %v, %d min old", i, got, age, step.want, step.age)
		}
	}
}
