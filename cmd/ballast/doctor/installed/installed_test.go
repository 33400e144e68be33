package installed

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"ballast/cmd/ballast/fixture"
)

// What anybody may have written is read without a crash.
func TestWhateverACABundleHoldsIsRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if why := bundleFault(time.Now(), []byte(fixture.Hostile(r))); why == "" {
			r.Error("a bundle of no certificate is taken for one")
		}
	})
}
