package screen

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBar(t *testing.T) {
	tests := map[string]struct {
		value, most float64
		want        string
	}{
		"the most fills the width": {2, 2, strings.Repeat("█", 44)},
		"half of it":               {1, 2, strings.Repeat("█", 22)},
		"an eighth of a character": {1, 8 * 44, "▏"},
		"less is still seen":       {0.0001, 1, "▏"},
		"nothing is nothing":       {0, 1, ""},
		"nothing of nothing":       {0, 0, ""},
		"between two characters":   {1.5, 44, "█▌"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Bar(tt.value, tt.most); got != tt.want {
				t.Errorf("bar %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBarsKeepTheOrderOfTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		if a < b && utf8.RuneCountInString(Bar(a, 1)) > utf8.RuneCountInString(Bar(b, 1)) {
			t.Errorf("the bar of %v is longer than that of %v", a, b)
		}
		if utf8.RuneCountInString(Bar(a, 1)) > barWidth {
			t.Errorf("the bar of %v is wider than %d", a, barWidth)
		}
	})
}

func TestAScreenThatIsNoTerminalGetsPlainText(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{W: &b}
	s.Heading("1/7  A fleet")
	s.Check("it stands")
	s.Command("kubectl get pods")
	s.Seen("Warning: shard 1 was put back to 3\nsecret/x patched\n")
	s.Table([][]string{{"REPLICA", "SHARE"}, {"0", Bar(1, 2)}})
	want := `
1/7  A fleet
  ✓ it stands

  $ kubectl get pods
  Warning: shard 1 was put back to 3
  secret/x patched
  REPLICA   SHARE
  0         ██████████████████████
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestATerminalGetsColours(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{W: &b, tty: true, color: true}
	s.Check("it stands")
	s.Seen("Warning: look")
	want := "  \x1b[32m✓\x1b[0m it stands\n  \x1b[33mWarning: look\x1b[0m\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestBusyGivesTheErrorAndEndsItsLine(t *testing.T) {
	var b bytes.Buffer
	wrong := errors.New("wrong")
	if err := (&Screen{W: &b}).Busy("something", func() error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v, want %v", err, wrong)
	}
	if want := "  … something  0.0 s\n"; b.String() != want {
		t.Errorf("text %q, want %q", b.String(), want)
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "twelve chars": "twelve ch…"} {
		if got := clip(text, 10); got != want {
			t.Errorf("%q is clipped to %q, want %q", text, got, want)
		}
	}
}
