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
	files := 0
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
		for _, test := range tests {
			text, err := os.ReadFile(test)
			if err != nil {
				return err
			}
			if slices.Contains(goldensOf(string(text)), name) {
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

var (
	golden = regexp.MustCompile(`fixture\.Golden\(t, ("[^"\n]+"|[^"\n])`)
	// A table's key or value, or an entry of a row or a list: what a test that names its golden by a variable ranges over.
	ranged = regexp.MustCompile(`(?:[{,]|: )\s*"([^"\n]+)"\s*[:,}]`)
)

// goldensOf are the golden files that the tests of a file may read: by each of its functions that reads any those that it names there,
// and where it names one by a variable what that may range over.
func goldensOf(text string) (names []string) {
	for _, function := range strings.Split(text, "\nfunc ") {
		byVariable := false
		for _, m := range golden.FindAllStringSubmatch(function, -1) {
			if name, literal := strings.CutPrefix(m[1], `"`); literal {
				names = append(names, strings.TrimSuffix(name, `"`))
			} else {
				byVariable = true
			}
		}
		if !byVariable {
			continue
		}
		for at := 0; ; {
			m := ranged.FindStringSubmatchIndex(function[at:])
			if m == nil {
				break
			}
			names = append(names, strings.ReplaceAll(function[at+m[2]:at+m[3]], " ", "-"))
			at += m[3] // the next one may begin by what ends this one
		}
	}
	return names
}

func TestNoQuotedWordStandsForAReaderOfAGolden(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"by its name":     {"\nfunc TestA(t *testing.T) {\n\tx(\"json\")\n\tfixture.Golden(t, \"table\", out)\n}", []string{"table"}},
		"by a variable":   {"\nfunc TestA(t *testing.T) {\n\tfor name := range map[string]int{\n\t\t\"a plan\": 1,\n\t} {\n\t\tfixture.Golden(t, name, x(\"json\"))\n\t}\n}", []string{"a-plan"}},
		"another's words": {"\nfunc TestA(t *testing.T) {\n\tfixture.Golden(t, \"table\", out)\n}\n\nfunc TestB(t *testing.T) {\n\ty := map[string]int{\"json\": 1}\n}", []string{"table"}},
		"no reader":       {"\nfunc TestB(t *testing.T) {\n\ty := map[string]int{\"json\": 1}\n}", nil},
	} {
		if got := goldensOf(test.text); !slices.Equal(test.want, got) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
