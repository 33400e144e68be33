package partition_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/partition"
)

// TestRankIsASort: whatever the keys, it is what comparing each with each would make of them.
func TestRankIsASort(t *testing.T) {
	key := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3), rapid.SampledFrom([]uint64{0, 255, 256, 1 << 56, math.MaxUint64}))
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(key, 0, 300).Draw(t, "keys")
		all := make([]partition.Ranked, len(keys))
		for i, k := range keys {
			all[i] = partition.Ranked{Key: k, Item: int32(i)}
		}
		tie := func(a, b int32) int { return cmp.Or(cmp.Compare(a%7, b%7), cmp.Compare(a, b)) }
		want := slices.Clone(all)
		slices.SortFunc(want, func(a, b partition.Ranked) int { return cmp.Or(cmp.Compare(a.Key, b.Key), tie(a.Item, b.Item)) })
		partition.Rank(all, tie)
		if diff := gocmp.Diff(want, all); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}
