package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// quoted is what stands in back-quotes.
var quoted = regexp.MustCompile("`([^`]+)`")

// misnamed are the tests of a text that are not in the package that is named last before them; each needs one.
func misnamed(text string, exists map[string]map[string]bool) (wrong []string) {
	in := ""
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		name, prefix := strings.CutSuffix(m[1], "...")
		if !regexp.MustCompile(`^(Test|Fuzz|Benchmark)\w+$`).MatchString(name) {
			if info, err := os.Stat("../../" + name); err == nil && info.IsDir() {
				in = name
			}
			continue
		}
		found := false
		for test, packages := range exists {
			same := test == name || prefix && strings.HasPrefix(test, name)
			found = found || same && packages[in]
		}
		if !found {
			wrong = append(wrong, fmt.Sprintf("%s is not in %q", name, in))
		}
	}
	return wrong
}

// faults are what is wrong with tables of hazards: rows of which some are not closed, have no four cells, stand twice or out of
// order, or whose tests are in other packages.
func faults(text string, exists map[string]map[string]bool) (wrong []string, rows int) {
	last := 0
	for line := range strings.SplitSeq(text, "\n") {
		m := regexp.MustCompile(`^\| *(\d+) `).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rows++
		say := func(what string) { wrong = append(wrong, m[1]+": "+what) }
		n, err := strconv.Atoi(m[1])
		if err != nil || n <= last {
			say(fmt.Sprintf("it stands after %d", last))
		}
		last = max(last, n)
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		if !strings.HasSuffix(line, " |") || len(cells) != 4 {
			say("it is not closed, or has not four cells")
			continue
		}
		for _, test := range misnamed(cells[3], exists) {
			say(test)
		}
	}
	return wrong, rows
}

// TestHazardsStandInOrderAndNameTheirTests: merges put lines of two sides side by side.
func TestHazardsStandInOrderAndNameTheirTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/hazards.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := tests(t)
	wrong, rows := faults(string(text), exists)
	if diff := cmp.Diff([]string(nil), wrong); diff != "" || rows < 190 {
		t.Errorf("%d rows; -want +got:\n%s", rows, diff)
	}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"as it is to be":  {"| 1 | a | b | `planner/partition` `TestHazard3...`, `cmd/ballast` `TestHelpCallsEveryValueByOneWord` |", nil},
		"twice":           {"| 1 | a | b | - |\n| 1 | a | b | - |", []string{"1: it stands after 1"}},
		"out of order":    {"| 2 | a | b | - |\n| 1 | a | b | - |", []string{"1: it stands after 2"}},
		"not closed":      {"| 1 | a | b | -", []string{"1: it is not closed, or has not four cells"}},
		"a cell too few":  {"| 1 | a | - |", []string{"1: it is not closed, or has not four cells"}},
		"another package": {"| 1 | a | b | `planner/plan` `TestHazard3...` |", []string{`1: TestHazard3 is not in "planner/plan"`}},
		"no package":      {"| 1 | a | b | `TestHazard3...` |", []string{`1: TestHazard3 is not in ""`}},
	} {
		if wrong, _ := faults(test.text, exists); !cmp.Equal(test.want, wrong) {
			t.Errorf("%s: %q, want %q", name, wrong, test.want)
		}
	}
}

// TestTheRulesNameTestsInTheirPackages, where a package stands right before its test.
func TestTheRulesNameTestsInTheirPackages(t *testing.T) {
	exists := tests(t)
	for _, name := range []string{"enforcement.md", "threat-model.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		wrong, seen := misplaced(string(text), exists)
		if seen < 5 {
			t.Errorf("%s names %d packages before their tests; the test reads it wrongly", name, seen)
		}
		for _, what := range wrong {
			t.Errorf("%s: %s", name, what)
		}
	}
	for text, want := range map[string][]string{
		"`cmd/ballast` `TestHelpCallsEveryValueByOneWord`":  nil,
		"`cmd/balast` `TestHelpCallsEveryValueByOneWord`":   {`TestHelpCallsEveryValueByOneWord is not in ""`},
		"`e2e/Crash` `TestHelpCallsEveryValueByOneWord`":    {`TestHelpCallsEveryValueByOneWord is not in ""`},
		"`e2e/crash_` `TestHelpCallsEveryValueByOneWord`":   {`TestHelpCallsEveryValueByOneWord is not in ""`},
		"`e2e/crash` `TestHelpCallsEveryValueByOneWord`":    {`TestHelpCallsEveryValueByOneWord is not in "e2e/crash"`},
		"`make test`: `TestHelpCallsEveryValueByOneWord`":   nil, // no package is named
		"`cmd/ballast`, `TestHelpCallsEveryValueByOneWord`": nil,
	} {
		if wrong, _ := misplaced(text, exists); !cmp.Equal(want, wrong) {
			t.Errorf("%s: %q, want %q", text, wrong, want)
		}
	}
}

// misplaced are the tests of a text right before which another package stands than theirs, or something that is none.
func misplaced(text string, exists map[string]map[string]bool) (wrong []string, seen int) {
	for _, m := range regexp.MustCompile("`[^`\\s]+` `(Test|Fuzz|Benchmark)\\w+`").FindAllString(text, -1) {
		seen++
		wrong = append(wrong, misnamed(m, exists)...)
	}
	return wrong, seen
}
