package clash

import (
	"slices"
	"testing"
)

// TestAClashOfThousandsOfPinsIsFoundInTime: who may pin has room for some four thousand, and each look takes all clusters.
func TestAClashOfThousandsOfPinsIsFoundInTime(t *testing.T) {
	var rules []rule
	for i := range 4000 {
		rules = append(rules, rule{cluster: i})
	}
	looks := 0
	got := shrink(rules, func(some []rule) bool {
		looks++
		first := slices.ContainsFunc(some, func(r rule) bool { return r.cluster == 17 })
		return first && slices.ContainsFunc(some, func(r rule) bool { return r.cluster == 3001 })
	})
	if want := []rule{{cluster: 17}, {cluster: 3001}}; !slices.Equal(got, want) || looks > 100 {
		t.Errorf("%v after %d looks, want %v", got, looks, want)
	}
}
