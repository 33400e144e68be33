package assets

import (
	"strings"
	"testing"
	"time"
)

// TestABuildThatWouldBeCutOffIsRefused at once, with what to do instead.
func TestABuildThatWouldBeCutOffIsRefused(t *testing.T) {
	for timeout, refused := range map[time.Duration]bool{0: false, 10 * time.Minute: true, 15*time.Minute - 1: true, 15 * time.Minute: false, 35 * time.Minute: false} {
		err := planeSet.enough(timeout)
		if (err != nil) != refused {
			t.Errorf("%s: %v", timeout, err)
		}
		if err != nil && !strings.Contains(err.Error(), "ends this package after "+timeout.String()+": run `make binaries` first") {
			t.Errorf("%s: %v", timeout, err)
		}
	}
	if deadline, ok := t.Deadline(); ok != (testTimeout() > 0) || ok && time.Until(deadline) > testTimeout() {
		t.Errorf("this test ends after %s, and by its deadline at %s (%t)", testTimeout(), deadline, ok)
	}
}
