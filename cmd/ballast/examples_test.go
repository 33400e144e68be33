package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ballast/cmd/ballast/fixture"
)

// mostExample is how large a file to try a command on may be: it is read in a browser, too.
const mostExample = 60 << 10

// TestTheExamplesRun: every command of docs/examples/README.md ends well from the checkout and writes each line that stands below it, and
// every file there is of one of them.
func TestTheExamplesRun(t *testing.T) {
	t.Chdir(fixture.Checkout(t))
	text, err := os.ReadFile("docs/examples/README.md")
	fixture.MustDo(t, err)
	found := regexp.MustCompile("(?s)```sh\n(ballast [^\n]+)\n```\n\n```text\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1)
	if blocks := strings.Count(string(text), "```sh\n"); len(found) != blocks || blocks < 4 {
		t.Fatalf("%d of %d commands stand alone, with lines of their output below", len(found), blocks)
	}
	ran := ""
	for _, m := range found {
		ran += m[1] + "\n"
		out, notes, failure := fixture.AsPerson(t, newRootCommand(), "", "", strings.Fields(m[1])[1:]...)
		want := ""
		if strings.HasPrefix(m[1], "ballast plan ") {
			want = "would change: 2 moves, ARGOCD_CONTROLLER_REPLICAS becomes 16 by one restart" // exit code 2
		}
		if failure != want {
			t.Errorf("%s ends with %q, want %q\n%s", m[1], failure, want, notes)
		}
		lines := strings.Split(out, "\n")
		for _, want := range strings.Split(m[2], "\n") {
			if !slices.Contains(lines, want) {
				t.Errorf("%s does not write\n%s\nbut\n%s", m[1], want, out)
			}
		}
	}
	files, err := os.ReadDir("docs/examples")
	fixture.MustDo(t, err)
	for _, file := range files {
		info, err := file.Info()
		fixture.MustDo(t, err)
		path := filepath.ToSlash(filepath.Join("docs", "examples", file.Name()))
		if info.Size() > mostExample {
			t.Errorf("%s has %d bytes, more than %d", path, info.Size(), mostExample)
		}
		if file.Name() != "README.md" && !strings.Contains(ran, path) {
			t.Errorf("%s is of no command", path)
		}
	}
}

// TestWhoeverBeginsIsLedToTheExamples by the pages that they read first.
func TestWhoeverBeginsIsLedToTheExamples(t *testing.T) {
	for file, link := range map[string]string{"README.md": "(docs/examples/README.md)", "docs/quick-start.md": "(examples/README.md)"} {
		text, err := os.ReadFile(fixture.Checkout(t, file))
		fixture.MustDo(t, err)
		if !strings.Contains(string(text), link) {
			t.Errorf("%s does not lead to docs/examples", file)
		}
	}
}
