package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ballast/planner/change/harm"
	"ballast/planner/sim"
)

// longNames are as long as people like, and none has much in common with another.
func longNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		var b strings.Builder
		for k := 0; b.Len() < 250; k++ {
			sum := sha256.Sum256(fmt.Append(nil, i, k))
			b.WriteString(hex.EncodeToString(sum[:]))
		}
		names[i] = b.String()[:250]
	}
	slices.Sort(names)
	return names
}

func times(names []string, at time.Time) map[string]time.Time {
	m := map[string]time.Time{}
	for _, name := range names {
		m[name] = at
	}
	return m
}

// tripped is the memory of a trip for memory behind waves that moved some of those clusters.
func tripped(names []string, moved int) Memory {
	var m Memory
	m.Changes.Moved = times(names, sim.Epoch)
	m.Changes.TripMoved = slices.Clone(names[:moved])
	m.Changes.Trip = &harm.Trip{At: sim.Epoch, Reason: harm.OOMKilled, Why: "it was", Replicas: []int{1}, Moved: moved}
	m.Changes.Failed, m.Changes.Suspect = times(names[:3], sim.Epoch), times(names[3:5], sim.Epoch.Add(time.Hour))
	return m
}

// full is what a history with room for no more keeps: its largest part goes first (planner/store/history).
func full(t *testing.T, m Memory, before map[string][]byte) (kept map[string][]byte, dropped []string) {
	t.Helper()
	kept, stale := m.Parts(before)
	if len(stale) > 0 {
		t.Fatalf("stale: %v", stale)
	}
	if len(kept[partChanges]) > 900_000 {
		delete(kept, partChanges)
		dropped = append(dropped, partChanges)
	}
	return kept, dropped
}

// TestAFullHistoryKeepsWhatATripHolds: the part with the clusters' names outgrows it where somebody makes thousands of long ones, and the
// next leader would stop every failover, and forget which clusters replicas died of.
func TestAFullHistoryKeepsWhatATripHolds(t *testing.T) {
	names := longNames(7000)
	m := tripped(names, 3000)
	kept, dropped := full(t, m, nil)
	if diff := cmp.Diff([]string{partChanges}, dropped); diff != "" {
		t.Fatalf("dropped (-want +got):\n%s", diff)
	}
	got, problems := Of(kept)
	if len(problems) > 0 || got.Changes.Trip == nil || !got.Changes.Trip.Bounds(got.Changes.TripMoved) {
		t.Fatalf("the trip bounds nothing: %+v; %v", got.Changes.Trip, problems)
	}
	if say := got.Changes.Stay().String(); say != ", and of those neither off replica 1 nor the 3000 clusters that moved before that" {
		t.Errorf("before the names are known it says %q", say)
	}
	want := Changes{Trip: m.Changes.Trip, TripMoved: m.Changes.TripMoved, Failed: m.Changes.Failed, Suspect: m.Changes.Suspect}
	next := got.Changes.Named(slices.Values(names))
	if diff := cmp.Diff(want, next, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("with the names (-want +got):\n%.2000s", diff)
	}
	again, _ := full(t, Memory{Changes: next}, kept) // the part that was left out is there again
	if back, _ := Of(again); !slices.Equal(back.Changes.TripMoved, m.Changes.TripMoved) {
		t.Errorf("the leader after the next one reads %d names", len(back.Changes.TripMoved))
	}
}

// TestAMarkOutlivesItsCluster: who deletes the Secret of what killed a replica, and makes it anew, has it held again.
func TestAMarkOutlivesItsCluster(t *testing.T) {
	m := tripped([]string{"a", "b", "c", "d", "e"}, 2)
	parts, _ := m.Parts(nil)
	delete(parts, partChanges)
	got, _ := Of(parts)
	c := got.Changes.Named(slices.Values([]string{"a", "c"}))
	if !c.Trip.Bounds(c.TripMoved) || !c.Stay().Holds("a", 0) || c.Stay().Holds("c", 0) {
		t.Errorf("it holds %v", c.Stay())
	}
	parts, _ = Memory{Changes: c}.Parts(nil)
	got, _ = Of(parts)
	if c = got.Changes.Named(slices.Values([]string{"a", "b", "c"})); !slices.Equal(c.TripMoved, []string{"a", "b"}) {
		t.Errorf("what came back is not held: %v", c.TripMoved)
	}
	c.TripMoved, c.Trip.Moved = []string{mark("a"), "a", "b"}, 3 // it came back, and moved again
	if c = c.Named(slices.Values([]string{"a"})); !slices.Equal(c.TripMoved, []string{"a", "b"}) || c.Trip.Moved != 2 {
		t.Errorf("one cluster counts twice: %v, %d", c.TripMoved, c.Trip.Moved)
	}
}

// TestMarksSpeakForTheirOwnTripAlone: a planner of an older version keeps a part that it does not know as it is.
func TestMarksSpeakForTheirOwnTripAlone(t *testing.T) {
	m := tripped([]string{"a", "b", "c", "d", "e"}, 2)
	marked, _ := m.Parts(nil)
	for name, test := range map[string]struct {
		later Memory
		drops bool // the history has no room for the names
		want  []string
	}{
		"an older version's history":               {m, false, []string{"a", "b"}},
		"another trip of as many":                  {tripAt(m, time.Minute), true, nil},
		"another trip, and there is room":          {tripAt(m, time.Minute), false, []string{"a", "b"}},
		"no trip any more":                         {Memory{}, true, nil},
		"the same trip, and the names had no room": {m, true, []string{mark("a"), mark("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			parts, _ := test.later.Parts(nil)
			parts[partMarks] = marked[partMarks]
			if test.drops {
				delete(parts, partChanges)
			}
			got, problems := Of(parts)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got.Changes.TripMoved); diff != "" || len(problems) > 0 {
				t.Errorf("%v (-want +got):\n%s", problems, diff)
			}
		})
	}
	parts, _ := Memory{}.Parts(marked)
	if got, _ := Of(map[string][]byte{partMarks: parts[partMarks]}); len(got.Changes.Failed) > 0 {
		t.Errorf("what is over is remembered: %v", got.Changes.Failed)
	}
	if parts, _ := (Memory{}).Parts(nil); parts[partMarks] != nil {
		t.Error("a part of nothing")
	}
}

func tripAt(m Memory, later time.Duration) Memory {
	trip := *m.Changes.Trip
	trip.At = trip.At.Add(later)
	m.Changes.Trip = &trip
	return m
}

// TestMarksAreBounded: of as many clusters as are planned they take a quarter of the history, of more a trip keeps none.
func TestMarksAreBounded(t *testing.T) {
	names := make([]string, mostMoved+1)
	for i := range names {
		names[i] = fmt.Sprintf("c%06d", i)
	}
	failed := map[string]time.Time{}
	for i, name := range names {
		failed[name] = sim.Epoch.Add(time.Duration(i) * time.Second)
	}
	for moved, kept := range map[int]int{mostMoved: mostMoved, mostMoved + 1: 0} {
		m := tripped(names, moved)
		m.Changes.Failed, m.Changes.Suspect = failed, failed
		parts, _ := m.Parts(nil)
		if n := len(parts[partMarks]); n > 300<<10 {
			t.Errorf("marks of %d take %d bytes", moved, n)
		}
		got, _ := Of(map[string][]byte{partLimits: parts[partLimits], partMarks: parts[partMarks]})
		if n := len(got.Changes.TripMoved); n != kept {
			t.Errorf("of %d that moved %d are kept, want %d", moved, n, kept)
		}
		c := got.Changes.Named(slices.Values(names))
		if _, last := c.Failed[names[mostMoved]]; len(c.Failed) != mostFailed || len(c.Suspect) != mostFailed || !last {
			t.Errorf("%d failed over, the last one among them: %t, and %d are suspect", len(c.Failed), last, len(c.Suspect))
		}
	}
}
