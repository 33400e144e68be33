package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/webhook/rawjson"
)

const manyNotes = 243 << 10 // bytes: a body that the budget of small ones takes

// notesOf are annotations: so many bytes of the same entry, and a last one.
func notesOf(entry, last string) rawjson.Node {
	return rawjson.Node("{" + strings.Repeat(entry, manyNotes/len(entry)) + last + "}")
}

// floodsOfNotes are what whoever reaches the port may fill a body with.
func floodsOfNotes() map[string]string {
	return map[string]string{
		"others":            `"argoproj.io.ballast/x":"",`,
		"unknown":           `"ballast.argoproj.io/x":"",`,
		"known":             `"ballast.argoproj.io/pin":"",`,
		"escaped":           `"\u0062allast.argoproj.io/x":"",`,
		"others' escaped":   `"\u0062":"",`,
		"known and escaped": `"\u0062allast.argoproj.io/pin":"",`,
	}
}

// TestManyNotesCostNoMemory: of 243 KB of annotations a few are copied, whatever they are called.
func TestManyNotesCostNoMemory(t *testing.T) {
	const limit = maxKnownNotes + maxEscapedNotes + 16 // a copy each, and the map
	for name, entry := range floodsOfNotes() {
		notes := notesOf(entry, `"ballast.argoproj.io/unmanaged":"true"`)
		if n := testing.AllocsPerRun(5, func() { Notes(notes) }); n > limit {
			t.Errorf("%s: %d bytes of annotations are read with %.0f allocations, want at most %d", name, len(notes), n, limit)
		}
	}
}

// TestKnownNotesAreReadBehindAnyNumberOfOthers, as an API server sends them: in order, none twice, and as many as it
// takes.
func TestKnownNotesAreReadBehindAnyNumberOfOthers(t *testing.T) {
	var b strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&b, `"ballast.argoproj.io/a%06d":"",`, i)
	}
	want := map[string]string{}
	for i := range maxUnknownNotes {
		want[fmt.Sprintf("ballast.argoproj.io/a%06d", i)] = ""
	}
	for _, name := range slices.Sorted(maps.Keys(known())) {
		fmt.Fprintf(&b, "%q:%q,", name, "of "+name)
		want[name] = "of " + name
	}
	got := Notes(rawjson.Node("{" + strings.TrimSuffix(b.String(), ",") + "}"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNotesAreReadAsTheyAreWritten, and the API server's way is not the only one.
func TestNotesAreReadAsTheyAreWritten(t *testing.T) {
	const pin, odd = "ballast.argoproj.io/pin", "ballast.argoproj.io/odd"
	for name, tc := range map[string]struct {
		annotations string
		want        map[string]string
	}{
		"none":                {`{}`, nil},
		"no object":           {`["ballast.argoproj.io/pin"]`, nil},
		"another group's":     {`{"ballast.argoproj.iox/pin":"1","x":"y"}`, nil},
		"null is none":        {`{"ballast.argoproj.io/pin":null}`, nil},
		"known and unknown":   {`{"` + pin + `":"1","` + odd + `":"2"}`, map[string]string{pin: "1", odd: "2"}},
		"the last of two":     {`{"` + pin + `":"1","` + pin + `":"2"}`, map[string]string{pin: "2"}},
		"escaped":             {`{"\u0062allast.argoproj.io\/pin":"1"}`, map[string]string{pin: "1"}},
		"a name with no end":  {`{"` + odd + strings.Repeat("x", maxNote) + `":"1"}`, map[string]string{"": "1"}},
		"a group and no name": {`{"ballast.argoproj.io/":"1"}`, map[string]string{"ballast.argoproj.io/": "1"}},
	} {
		if diff := cmp.Diff(tc.want, Notes(rawjson.Node(tc.annotations))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BenchmarkReadNotes compares them with annotations of others, of the same size.
func BenchmarkReadNotes(b *testing.B) {
	for name, entry := range floodsOfNotes() {
		b.Run("notes="+strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			notes := notesOf(entry, `"ballast.argoproj.io/unmanaged":"true"`)
			b.SetBytes(int64(len(notes)))
			b.ReportAllocs()
			for b.Loop() {
				Notes(notes)
			}
		})
	}
}
