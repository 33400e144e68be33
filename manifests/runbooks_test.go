package manifests

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"ballast/planner/plan"
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

// TestTheAlertOfInputNamesItsMends: who is woken for a coverage that stays low reads what ends it.
func TestTheAlertOfInputNamesItsMends(t *testing.T) {
	alerts := shippedRules(t).alerts()
	i := slices.IndexFunc(alerts, func(a alert) bool { return a.Alert == "BallastInputRefused" })
	if i < 0 {
		t.Fatal("there is no such alert")
	}
	said := strings.Join(strings.Fields(alerts[i].Annotations["description"]), " ")
	for _, mend := range []string{"LowCoverage names the clusters without a value, and until when", "have Prometheus scrape every pod",
		"delete the Secrets of clusters that are no more", "lower poll.minCoverage", plan.AnnotationAcceptDiscovery} {
		if !strings.Contains(said, mend) {
			t.Errorf("it says %q, without %q", said, mend)
		}
	}
}

// TestTheReadmesAddressOfRunbooksIsEveryAlerts, of both installs, with each alert's own heading.
func TestTheReadmesAddressOfRunbooksIsEveryAlerts(t *testing.T) {
	const dir = "testdata/runbooks"
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	kustomization, err := os.ReadFile(dir + "/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(kustomization), "\npatches:\n")
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString("patches:\n"+block, "    $1")
	if block == "" || !strings.Contains(string(readme), indented) {
		t.Errorf("README.md does not show\n%s", indented)
	}
	rules := map[string]int{}
	for _, doc := range bytes.Split(build(t, dir), []byte("\n---\n")) {
		var built struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Groups []struct {
					Rules []struct {
						Alert       string
						Annotations map[string]string
					}
				}
			}
		}
		if err := yaml.Unmarshal(doc, &built); err != nil || built.Kind != "PrometheusRule" {
			continue
		}
		for _, group := range built.Spec.Groups {
			for _, rule := range group.Rules {
				rules[built.Metadata.Name]++
				want := "https://wiki.example/ballast#" + strings.ToLower(rule.Alert)
				if got := rule.Annotations["runbook_url"]; got != want {
					t.Errorf("%s points at %q, want %q", rule.Alert, got, want)
				}
			}
		}
	}
	if rules["ballast"] < 20 || rules["ballast-watch"] != 4 {
		t.Errorf("alerts by rule: %v", rules)
	}
}
