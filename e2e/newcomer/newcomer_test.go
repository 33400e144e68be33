package newcomer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ballast/e2e/assets"
	"ballast/e2e/site"
)

// shared is ballast, built of this checkout once for all tests, as README.md says.
var shared struct {
	dir  string
	once sync.Once
	err  error
}

func TestMain(m *testing.M) {
	var err error
	if shared.dir, err = os.MkdirTemp("", "ballast-newcomer-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(shared.dir)
	os.Exit(code)
}

func built(t *testing.T) string {
	t.Helper()
	file := filepath.Join(shared.dir, "ballast")
	shared.once.Do(func() { shared.err = asTheReadmeSays(context.WithoutCancel(t.Context()), file) })
	must(t, shared.err)
	return file
}

// asTheReadmeSays gets the binary by README.md's one line, and copies it: whoever makes the next one replaces the checkout's.
func asTheReadmeSays(ctx context.Context, file string) error {
	const line, checkout = "make build && export PATH=$PWD/bin:$PATH", "../.."
	readme, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		return fmt.Errorf("reading how to get the binary: %w", err)
	}
	if !strings.Contains(string(readme), "`"+line+"`") {
		return fmt.Errorf("README.md does not say %q", line)
	}
	if err := site.DependOnSources(ctx); err != nil {
		return err
	}
	get := exec.CommandContext(ctx, "bash", "-c", line+` && cp "$(command -v ballast)" "$0"`, file)
	get.Dir, get.Env = checkout, append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=") // of a make that runs this test
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, out)
	}
	return nil
}

func TestANewcomerWithKustomize(t *testing.T) { walkIt(t, kustomize()) }

func TestANewcomerWithHelm(t *testing.T) {
	command, err := assets.BuildHelm(t.Context(), os.Stderr)
	must(t, err)
	walkIt(t, helm(command))
}

// byHelmAlone are commands that run where ballast makes its certificates itself.
func byHelmAlone() []string { return []string{"certs"} }

// TestEachCommandIsWalked: a new command is a step of the way, too. walkIt holds each step to the commands that it names.
func TestEachCommandIsWalked(t *testing.T) {
	walked := byHelmAlone()
	for _, s := range steps() {
		walked = append(walked, s.commands...)
	}
	same(t, "commands", tree(t, built(t)), alone(walked))
}

// headed are the steps of docs/quick-start.md, by the heading of each.
func headed(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^\d+\. \*\*([^*]+?)\.?\*\*`).FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ToLower(m[1]))
	}
	return names
}

// TestTheQuickStartIsWalked: its headings are the steps of the walk, in their order. To steer is in docs/runbooks.md, and walked too.
func TestTheQuickStartIsWalked(t *testing.T) {
	text, err := os.ReadFile("../../docs/quick-start.md")
	must(t, err)
	var walked []string
	for _, s := range steps() {
		if s.name != "steer" {
			walked = append(walked, s.name)
		}
	}
	if got := headed(string(text)); !slices.Equal(got, walked) {
		t.Errorf("docs/quick-start.md has the steps %q, and %q are walked", got, walked)
	}
}

// tree is every command that does something, by its words after ballast.
func tree(t *testing.T, ballast string, path ...string) []string {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), ballast, append(slices.Clone(path), "--help")...).Output()
	must(t, err)
	names := subcommands(string(help))
	if len(names) == 0 {
		return []string{strings.Join(path, " ")}
	}
	var all []string
	for _, name := range names {
		all = append(all, tree(t, ballast, append(slices.Clone(path), name)...)...)
	}
	return alone(all)
}
