package manifests

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryAlertHasARunbook, and no runbook is of an alert that is not there.
func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile("../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if want := "`kubectl -n argocd annotate configmap ballast-plan ballast.argoproj.io/enforcement=off`"; !strings.HasPrefix(first, want) {
		t.Errorf("it begins with %q, and not with break-glass", first)
	}
	var watch struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             ruleGroups
	}
	readStrict(t, "watch/alerts/alerts.yaml", &watch)
	var alerts []string
	for _, a := range slices.Concat(shippedRules(t).alerts(), watch.Spec.alerts()) {
		alerts = append(alerts, a.Alert)
		if want := "docs/runbooks.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s points at %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
	var headings []string
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		headings = append(headings, name)
		for _, word := range []string{"- **Means**: ", "- **Look at**: ", "- **Do**: "} {
			if strings.Count(body, "\n"+word) != 1 {
				t.Errorf("%s says %q %d times", name, word, strings.Count(body, "\n"+word))
			}
		}
	}
	slices.Sort(alerts)
	slices.Sort(headings)
	if diff := cmp.Diff(alerts, headings); diff != "" {
		t.Errorf("-alerts +runbooks:\n%s", diff)
	}
}
