package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ballast/planner/plan"
)

// documents are the files that people read, with their text.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../manifests/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	if len(texts) < 8 {
		t.Fatalf("only %d documents were found; the test looks in the wrong place", len(texts))
	}
	return texts
}

// TestTheArchitectureNamesEveryPackage, and none that is not there.
func TestTheArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			named[strings.Trim(name, "`")] = true
		}
	}
	there := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		if _, nested := os.Stat(filepath.Join(path, "go.mod")); err == nil && d.IsDir() && nested == nil && path != "../.." {
			return fs.SkipDir // a module of its own
		}
		if err == nil && strings.HasSuffix(path, ".go") && !strings.Contains(path, "testdata") {
			there[strings.TrimPrefix(dir, "../../")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(there, named); diff != "" {
		t.Errorf("packages (-there +named):\n%s", diff)
	}
}

// tests are the packages of each test, fuzz target and benchmark, by name.
func tests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	exists := map[string]map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			if exists[m[1]] == nil {
				exists[m[1]] = map[string]bool{}
			}
			exists[m[1]][strings.TrimPrefix(filepath.Dir(path), "../../")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return exists
}

// A row of docs/enforcement.md is worth as much as the test that it names.
func TestTheDocumentsNameTestsThatExist(t *testing.T) {
	exists := tests(t)
	begins := func(prefix string) bool {
		for name := range exists {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	}
	seen := 0
	for file, text := range documents(t) {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z0-9]\\w*)(\\.\\.\\.)?").FindAllStringSubmatch(text, -1) {
			seen++
			if exists[m[1]] == nil && (m[2] == "" || !begins(m[1])) {
				t.Errorf("%s names %s, and there is no such test", file, m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d tests are named; the test reads the documents wrongly", seen)
	}
}

func TestTheDocumentsNameMakeTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for file, text := range documents(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^ {4}|^)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			seen[m[1]] = true
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
				t.Errorf("%s names make %s, and the Makefile has no such target", file, m[1])
			}
		}
	}
	for _, target := range []string{"build", "demo", "test", "image", "soak", "bench", "golden"} {
		if !seen[target] {
			t.Errorf("no document names make %s; the test reads them wrongly", target)
		}
	}
}

// pflag takes whatever stands in back-quotes in a flag's usage for the name of its value.
func TestHelpCallsEveryValueByOneWord(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]*$`)
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); !word.MatchString(name) {
				t.Errorf("%s --%s calls its value %q", cmd.CommandPath(), f.Name, name)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRootCommand())
}

// TestEveryExitCodeIsDocumented: the page names each code that a command's help names, and no other.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `ballast (\\w+)[^`]*` \\| (\\d) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2]
	}
	said := map[string]string{}
	for _, cmd := range newRootCommand().Commands() {
		help := strings.Join(strings.Fields(cmd.Long+" "+cmd.Flags().FlagUsages()), " ")
		if !strings.Contains(help, "exit code") {
			continue
		}
		for _, m := range regexp.MustCompile(`\b(?:with|it is|code is|without faults,|all is well,|code) ([23])\b`).FindAllStringSubmatch(help, -1) {
			said[cmd.Name()] = m[1]
		}
	}
	if diff := cmp.Diff(documented, said); diff != "" {
		t.Errorf("(-the page +help):\n%s", diff)
	}
}

// TestSecuritySaysHowToReport: in private, with what stands there: commands, flags, files and the break-glass are ballast's own.
func TestSecuritySaysHowToReport(t *testing.T) {
	all := documents(t)
	text := strings.Join(strings.Fields(all["../../SECURITY.md"]), " ")
	for _, said := range []string{
		"private security advisory", "Do not open a public issue", "Never send a kubeconfig, a token, or a cluster Secret", "within a week",
		"kubectl -n argocd annotate configmap ballast-plan " + plan.AnnotationEnforcement + "=off",
	} {
		if !strings.Contains(text, said) {
			t.Errorf("SECURITY.md does not say %q", said)
		}
	}
	if !strings.Contains(all["../../README.md"], "(SECURITY.md)") {
		t.Error("README.md does not lead there")
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`ballast (\\w+)(?: --([a-z-]+))?").FindAllStringSubmatch(text, -1) {
		cmd, _, err := newRootCommand().Find([]string{m[1]})
		if err != nil || m[2] != "" && cmd.Flags().Lookup(m[2]) == nil {
			t.Errorf("SECURITY.md names %s, which is no command: %v", m[0], err)
		}
		named[m[1]] = true
	}
	if diff := cmp.Diff(map[string]bool{"version": true, "plan": true, "audit": true, "uninstall": true}, named); diff != "" {
		t.Errorf("commands (-want +named):\n%s", diff)
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1)
	for _, m := range links {
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("SECURITY.md leads to %s: %v", m[1], err)
		}
	}
	if len(links) == 0 {
		t.Error("SECURITY.md leads nowhere; the test reads it wrongly")
	}
}
