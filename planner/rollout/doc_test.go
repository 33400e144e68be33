package rollout

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheDocHasEveryStage holds the table for readers to the one that the code goes by.
func TestTheDocHasEveryStage(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	mode := ""
	var documented, known []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllStringSubmatch(string(text), -1) {
		if head := regexp.MustCompile(`^(default|live|x0y) +stage `).FindStringSubmatch(line[1]); head != nil {
			mode = head[1]
			continue
		}
		if row := regexp.MustCompile(`^(?:[a-z]+ ?[a-z]*)? +([A-Z][a-z]+) `).FindStringSubmatch(line[1]); row != nil && mode != "" {
			documented = append(documented, mode+" "+row[1])
		}
	}
	for _, s := range stages() {
		known = append(known, s.mode+" "+string(s.stage))
	}
	slices.Sort(documented)
	slices.Sort(known)
	if diff := cmp.Diff(known, slices.Compact(documented)); diff != "" {
		t.Errorf("stages (-code +doc):\n%s", diff)
	}
}
