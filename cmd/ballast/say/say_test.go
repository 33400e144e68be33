package say_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/say"
)

func TestErrorsAreSaidLineByLine(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"one line":      {errors.New("no plan"), "ballast: no plan\n"},
		"with its mend": {errors.New("no plan\nis ballast installed?\n"), "ballast: no plan\n  is ballast installed?\n"},
		"hostile":       {fmt.Errorf("reading %w", errors.New("a\x1b[2J\nballast: all is well\r\nx http://u:p@h")), "ballast: reading a\\u001b[2J\n  ballast: all is well \n  x http://***@h\n"},
		"told already":  {fmt.Errorf("x: %w", say.ExitQuietly(2, errors.New("3 moves"))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			say.Error(&b, test.err)
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"any error":   {errors.New("x"), 1},
		"one's own":   {say.ExitWith(3, errors.New("x")), 3},
		"an answer":   {say.ExitQuietly(2, errors.New("x")), 2},
		"wrapped":     {fmt.Errorf("y: %w", say.ExitWith(3, errors.New("x"))), 3},
		"around one":  {say.ExitWith(4, fmt.Errorf("y: %w", os.ErrNotExist)), 4},
		"interrupted": {fmt.Errorf("y: %w", os.ErrDeadlineExceeded), 1},
	} {
		if got := say.ExitCode(test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestACleanWriterKeepsCharactersWhole(t *testing.T) {
	const text = "größe █ \x1b[2J 集群\tß\n"
	for size := 1; size < 8; size++ {
		var b bytes.Buffer
		w := say.Clean(&b)
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
				t.Fatalf("wrote %d: %v", n, err)
			}
		}
		if want := "größe █ \\u001b[2J 集群\tß\n"; b.String() != want {
			t.Errorf("in pieces of %d bytes: %q, want %q", size, b.String(), want)
		}
	}
}

// TestYAMLSaysWhatJSONSays, without a server's credentials.
func TestYAMLSaysWhatJSONSays(t *testing.T) {
	result := struct {
		Revision int64             `json:"revision"`
		Moves    []string          `json:"moves"`
		Server   string            `json:"server"`
		Pins     map[string]int    `json:"pins"`
		Words    map[string]string `json:"words"`
	}{17, []string{}, "https://admin:s3cr3t@a.example.org", map[string]int{"dev": 2}, map[string]string{"yes": "no: \"maybe\"", "control": "\x1b[2J"}}
	var y, j bytes.Buffer
	fixture.MustDo(t, say.As(say.AsYAML, &y, result))
	fixture.MustDo(t, say.As(say.AsJSON, &j, result))
	const want = `moves: []
pins:
  dev: 2
revision: 17
server: https://***@a.example.org
words:
  control: "\e[2J"
  "yes": 'no: "maybe"'
`
	if diff := cmp.Diff(want, y.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := yaml.YAMLToJSON(y.Bytes())
	fixture.MustDo(t, err)
	var fromYAML, fromJSON any
	fixture.MustDo(t, json.Unmarshal(again, &fromYAML))
	fixture.MustDo(t, json.Unmarshal(j.Bytes(), &fromJSON))
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("YAML says something else (-JSON +YAML):\n%s", diff)
	}
}

func TestWhatAnybodyWroteIsPrintedOnOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"why":                    "why",
		" a\nb\tc\r ":            "a b c",
		"\x1b[31mred":            `\u001b[31mred`,
		strings.Repeat("ö", 301): strings.Repeat("ö", 299) + "…",
		"a\xffb":                 "a\ufffdb",
		"http://u:p@h":           "http://***@h",
	} {
		if got := say.OneLine(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
}
