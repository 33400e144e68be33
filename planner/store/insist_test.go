package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/plan"
	"ballast/planner/plan/people"
)

// TestAWriteByContentTestsAllThatIsRead, however many bytes JSON makes of it, and no more than leaves the plan its room.
func TestAWriteByContentTestsAllThatIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		most, read int
		char       string
	}{
		"a cordon":           {mostWord, plan.MaxNoteBytes, "1"},
		"brackets":           {mostWord, plan.MaxNoteBytes, "<"},
		"control characters": {mostWord, plan.MaxNoteBytes, "\x01"},
		"quotes":             {mostWord, plan.MaxNoteBytes, `"`},
		"line separators":    {mostWord, plan.MaxNoteBytes, "\u2028"},
		"pins":               {mostPins, people.MaxPinsBytes, "a"},
		"brackets in pins":   {mostPins, people.MaxPinsBytes, "<"},
	} {
		t.Run(name, func(t *testing.T) {
			longest := strings.Repeat(c.char, c.read/len(c.char))
			want := []operation{{"test", "/data/k", longest}}
			if diff := cmp.Diff(want, still("/data/", "k", map[string]string{"k": longest}, c.most)); diff != "" {
				t.Errorf("the longest that is read is not tested (-want +got), %d bytes", len(diff))
			}
			if tested := still("/data/", "k", map[string]string{"k": strings.Repeat(c.char, 7*c.read)}, c.most); tested != nil {
				t.Errorf("%d bytes that nobody reads are tested", 7*c.read)
			}
		})
	}
	if tested := still("/data/", "k", map[string]string{"k": "\xff"}, mostWord); tested != nil {
		t.Errorf("what is no text is tested: %v", tested)
	}
	if diff := cmp.Diff([]operation{{"test", "/data/k", json.RawMessage("null")}}, still("/data/", "k", nil, mostWord)); diff != "" {
		t.Errorf("what is not there (-want +got):\n%s", diff)
	}
}

// TestPinsAreTheSameWhateverTheirComments are, and others where any value differs; of what has a problem the text alone tells.
func TestPinsAreTheSameWhateverTheirComments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pins := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}x`), rapid.IntRange(0, 9), 1, 5).Draw(t, "pins")
		comment := rapid.StringMatching(`( *#[ -~]{0,9}\n){1,3}`)
		text := func(name string, add int) string {
			var b strings.Builder
			for _, cluster := range slices.Sorted(maps.Keys(pins)) {
				fmt.Fprintf(&b, "%s%s:  %d # %s\n", comment.Draw(t, name), cluster, pins[cluster]+add, name)
			}
			return b.String()
		}
		a, b, other := text("a", 0), text("b", 0), text("other", 1)
		if !samePins(a, b) || samePins(a, other) || samePins(a, "") {
			t.Fatalf("%q and %q are the same: %t; and %q: %t", a, b, samePins(a, b), other, samePins(a, other))
		}
		if samePins(a+"? [\n", b+"? [\n") || !samePins(a+"? [\n", a+"? [\n") {
			t.Fatal("pins that cannot be read are the same by more than their text, or not by it")
		}
	})
}
