package history_test

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"ballast/planner/change/harm"
	"ballast/planner/cycle/memory"
	"ballast/planner/store/history"
)

// TestWhatATripHoldsOutlivesTheNames: the part with the clusters' names, which whoever makes thousands of long ones lets grow, is left out
// first, and the marks of what a trip holds stay.
func TestWhatATripHoldsOutlivesTheNames(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var m memory.Memory
	m.Changes.Pinned = map[string]time.Time{}
	for i := range 7000 {
		a, b := sha512.Sum512(fmt.Append(nil, i)), sha512.Sum512(fmt.Append(nil, -1-i))
		m.Changes.Pinned[hex.EncodeToString(a[:])+hex.EncodeToString(b[:61])] = now
	}
	m.Changes.TripMoved = []string{"prod-eu", "prod-us"}
	m.Changes.Trip = &harm.Trip{At: now, Reason: harm.OOMKilled, Why: "it was", Replicas: []int{1}, Moved: 2}
	parts, _ := m.Parts(nil)
	data, dropped, err := history.Content{Parts: parts, Anew: memory.MadeAnew()}.Encode()
	if err != nil || !slices.Equal(dropped.Parts, []string{"changes.json.gz"}) {
		t.Fatalf("dropped %v, %v", dropped.Parts, err)
	}
	kept, problems := history.Decode(data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	next, told := memory.Of(kept.Parts)
	if trip := next.Changes.Trip; len(told) > 0 || trip == nil || !trip.Bounds(next.Changes.TripMoved) {
		t.Errorf("the next leader's trip is %+v, of %v; %v", trip, next.Changes.TripMoved, told)
	}
}
