package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
