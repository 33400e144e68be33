package sim

import (
	"hash/fnv"
	"testing"

	"pgregory.net/rapid"
)

// TestADrawIsFNVs: the seeds of lives that are kept as tests stand for what they did only while a draw is what it was.
func TestADrawIsFNVs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		if got := fnv1a(fnvBasis, text); got != h.Sum64() {
			t.Fatalf("%q is %x, and by hash/fnv %x", text, got, h.Sum64())
		}
	})
}
