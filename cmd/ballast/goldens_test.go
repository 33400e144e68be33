package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// logAlone is the output of a command that runs until it is told to end: what it does is in its metrics and events.
const logAlone = "a log alone"

// recorded is where each command's whole output on a fixed fleet stands: in a golden file, or in the test that compares it.
func recorded() map[string]string {
	return map[string]string{
		"audit":          "audit/testdata/table.golden",
		"calibrate":      "calibrate/testdata/memory.golden",
		"certs":          logAlone,
		"config check":   "TestConfigCheck",
		"config convert": "config/testdata/an-Hvpa.golden",
		"config default": "config/testdata/default.golden",
		"config explain": "TestConfigExplainPrintsTheRulesThatHold",
		"doctor":         "doctor/testdata/healthy.golden",
		"evacuate":       "evacuate/testdata/begins.golden",
		"explain":        "explain/testdata/explain.golden",
		"freeze":         "freeze/testdata/frozen.golden",
		"plan":           "plan/testdata/long.golden",
		"planner":        logAlone,
		"rebase":         "rebase/testdata/asked.golden",
		"replay":         "replay/testdata/table.golden",
		"resume":         "freeze/testdata/resumed-after-a-trip.golden",
		"rollback":       "rollback/testdata/difference.golden",
		"status":         "status/testdata/quiet.golden",
		"uninstall":      "uninstall/testdata/nothing-but-the-clusters.golden",
		"version":        "TestVersionSaysWhatItIsProvenWith",
		"watch":          "TestWatchFindsOrphansFromThePodsAlone",
		"webhook":        logAlone,
		"whatif":         "whatif/testdata/added.golden",
	}
}

// TestEachCommandsOutputIsRecorded: a new command is, too.
func TestEachCommandsOutputIsRecorded(t *testing.T) {
	if diff := cmp.Diff(leaves(newRootCommand()), slices.Sorted(maps.Keys(recorded()))); diff != "" {
		t.Errorf("-commands +recorded:\n%s", diff)
	}
	for command, where := range recorded() {
		switch {
		case where == logAlone:
		case strings.HasPrefix(where, "Test"):
			if !hasTest(t, where) {
				t.Errorf("%s: there is no test %s", command, where)
			}
		default:
			if text, err := os.ReadFile(where); err != nil || len(text) == 0 {
				t.Errorf("%s: %d bytes, %v", command, len(text), err)
			}
		}
	}
}

// leaves are the commands that do something, by their words after ballast, sorted.
func leaves(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		switch below := leaves(sub); {
		case len(below) == 0:
			names = append(names, sub.Name())
		default:
			for _, name := range below {
				names = append(names, sub.Name()+" "+name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func hasTest(t *testing.T, name string) (found bool) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || declared.Match(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEachGoldenFileIsRead by a test of its package, which names it, with words for its dashes.
func TestEachGoldenFileIsRead(t *testing.T) {
	quoted, files := regexp.MustCompile(`"[^"\n]+"`), 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".golden" {
			return err
		}
		files++
		tests, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(path)), "*_test.go"))
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(d.Name(), ".golden")
		named := func(s string) bool { return strings.ReplaceAll(strings.Trim(s, `"`), " ", "-") == name }
		for _, test := range tests {
			text, err := os.ReadFile(test)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(quoted.FindAllString(string(text), -1), named) {
				return nil
			}
		}
		t.Errorf("no test of its package reads %s: remove it, or bring its test back", path)
		return nil
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
}
