package say

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"pgregory.net/rapid"
)

func TestWhatALineBeginsWithIsColoured(t *testing.T) {
	for text, want := range map[string]string{
		"OK  webhook  as shipped\nFault  rights  none\n": "\x1b[32mOK\x1b[0m  webhook  as shipped\n\x1b[31mFault\x1b[0m  rights  none\n",
		"  ! poll: Fault in it\n":                        "\x1b[31m  !\x1b[0m poll: Fault in it\n",
		"OKAY\n Fault \nFaulty\n":                        "OKAY\n Fault \nFaulty\n",
		"Would be: more\n":                               "\x1b[1mWould be:\x1b[0m more\n",
		"Go on? [y/N] ":                                  "Go on? [y/N] ",
	} {
		if diff := cmp.Diff(want, (&painter{}).on(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// In whatever pieces a text is written, its colours are the same, and without them it is what it was.
func TestColoursChangeNoText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := []string{"Fault ", "Fau", "lt", "OK", " ", "  ! ", "note:", "\n", "\n\n", "x", "Would be:"}
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "text"), "") + "\n"
		whole, pieces, p := (&painter{}).on(text), "", &painter{}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = pieces+p.on(rest[:n]), rest[n:]
		}
		if whole != pieces {
			t.Fatalf("whole it is %q, in pieces %q", whole, pieces)
		}
		if got := strings.NewReplacer(red, "", green, "", yellow, "", bold, "", plain, "").Replace(whole); got != text {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}

// A last line that has no end is written all the same.
func TestWhatIsKeptIsWrittenAtTheEnd(t *testing.T) {
	for text, want := range map[string]string{"Fault": "Fault", "ends\n  ": "ends\n  ", "OK  a\nno": "\x1b[32mOK\x1b[0m  a\nno", "a \xc3": "a \ufffd", "": ""} {
		var out, errs strings.Builder
		cmd := &cobra.Command{}
		cmd.SetOut(&cleanWriter{w: &out, painter: &painter{}})
		cmd.SetErr(&cleanWriter{w: &errs})
		for _, w := range []io.Writer{cmd.OutOrStdout(), cmd.ErrOrStderr()} {
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
		}
		Flush(cmd)
		plainly := strings.NewReplacer(green, "", plain, "").Replace(want)
		if diff := cmp.Diff([]string{want, plainly}, []string{out.String(), errs.String()}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// Colours are a terminal's alone: a file, a pipe and CI get none, nor does whoever says so.
func TestNothingButATerminalGetsColours(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	To(Clean(f), "Fault  %s\n", "rights")
	text, err := os.ReadFile(f.Name())
	if err != nil || string(text) != "Fault  rights\n" || painterOf(f) != nil {
		t.Errorf("written is %q: %v", text, err)
	}
}
