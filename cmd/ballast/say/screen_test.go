package say

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAViewTakesThePlaceOfTheOneBefore(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{raw: &b, clean: Clean(&b), size: func() (int, int, error) { return 0, 0, errors.New("unknown") }}
	for _, view := range []string{"one\n", "two \x1b[2J\n"} {
		if err := s.Show([]byte(view)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "\x1b[H\x1b[2Jone\n\x1b[H\x1b[2Jtwo \\u001b[2J\n"; b.String() != want {
		t.Errorf("it writes %q, want %q", b.String(), want)
	}
}

func TestAFileIsNoScreen(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []interface{ Write([]byte) (int, error) }{f, Clean(f), &bytes.Buffer{}} {
		if s := ScreenOf(w); s != nil {
			t.Errorf("%T is one: %v", w, s)
		}
	}
}

func TestAViewIsCroppedToTheTerminal(t *testing.T) {
	for name, test := range map[string]struct {
		view          string
		width, height int
		want          string
	}{
		"it fits":                     {"a\nb\nc\n", 10, 4, "a\nb\nc\n"},
		"one row too few":             {"a\nb\nc\n", 10, 3, "a\n... and 2 lines that this terminal has no room for\n"},
		"a long line takes two rows":  {"0123456789x\nb\nc\n", 10, 5, "0123456789x\nb\nc\n"},
		"and then one is without":     {"0123456789x\nb\nc\n", 10, 4, "0123456789x\n... and 2 lines that this terminal has no room for\n"},
		"characters, not bytes":       {"ößößößößöß\nb\n", 10, 3, "ößößößößöß\nb\n"},
		"a size that nobody can tell": {"a\nb\n", 0, 0, "a\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, string(crop([]byte(test.view), test.width, test.height))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsShownFitsTheTerminal, but for the sentence that says what is missing, where the terminal is narrower than that.
func TestWhatIsShownFitsTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("aö ")), 0, 150, -1), 1, 12).Draw(t, "lines")
		view := strings.Join(lines, "\n") + "\n"
		width, height := rapid.IntRange(60, 100).Draw(t, "width"), rapid.IntRange(2, 14).Draw(t, "height")
		got := string(crop([]byte(view), width, height))
		rows := 0
		for _, l := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			rows += max(1, (len([]rune(l))+width-1)/width)
		}
		if rows > height-1 {
			t.Fatalf("%d rows of %d in\n%s", rows, height, got)
		}
		if got != view && !strings.Contains(got, "no room for") {
			t.Fatalf("it is cut without a word:\n%s", got)
		}
	})
}
