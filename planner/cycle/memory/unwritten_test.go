package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was decided and not written changed no number of replicas and no size; what was seen stays.
func TestWhatIsNotWrittenChangedNothing(t *testing.T) {
	was := Memory{Counts: Counts{Start: Start{Replicas: 3, Load: 30}}, Sizes: Sizes{Killed: map[int]int64{0: 1}}}
	decided := Memory{Counts: Counts{Start: Start{Replicas: 5, Load: 50}}, Sizes: Sizes{Killed: map[int]int64{0: 2}, Peaks: map[int]Peak{0: {Bytes: 7}}}}
	want := was
	want.Sizes.Peaks = decided.Sizes.Peaks
	if diff := cmp.Diff(want, decided.Unwritten(was)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
