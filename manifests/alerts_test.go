package manifests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"ballast/certs"
)

const (
	alertsDir  = "components/alerts"
	alertsRule = alertsDir + "/prometheus-rule.yaml"
	plainRules = alertsDir + "/ballast.rules.yaml"
)

// ruleObject is what ballast uses of monitoring.coreos.com/v1 PrometheusRule; its groups are Prometheus's own.
type (
	ruleObject struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              ruleGroups `json:"spec"`
	}
	ruleGroups struct {
		Groups []ruleGroup `json:"groups"`
	}
	ruleGroup struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	}
	alert struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for,omitempty"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
)

// podMonitor is what ballast uses of monitoring.coreos.com/v1 PodMonitor.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port string `json:"port"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

func (g ruleGroups) alerts() []alert {
	var all []alert
	for _, group := range g.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func readStrict(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, to); err != nil {
		t.Fatalf("decoding %s: %v", path, err)
	}
}

func shippedRules(t *testing.T) ruleGroups {
	t.Helper()
	var r ruleObject
	readStrict(t, alertsRule, &r)
	return r.Spec
}

// TestAlertsAreInstalledBesideBallast in another namespace, where both kinds of pods are scraped at a port that they have.
func TestAlertsAreInstalledBesideBallast(t *testing.T) {
	var rest [][]byte
	rules, monitor := ruleObject{}, podMonitor{}
	for _, doc := range bytes.Split(build(t, "testdata/alerts"), []byte("\n---\n")) {
		var err error
		switch {
		case bytes.Contains(doc, []byte("kind: PrometheusRule\n")):
			err = yaml.UnmarshalStrict(doc, &rules)
		case bytes.Contains(doc, []byte("kind: PodMonitor\n")):
			err = yaml.UnmarshalStrict(doc, &monitor)
		default:
			rest = append(rest, doc)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	release := map[string]string{"rule": rules.Labels["release"], "monitor": monitor.Labels["release"]}
	if diff := cmp.Diff(map[string]string{"rule": "my-prometheus", "monitor": "my-prometheus"}, release); diff != "" {
		t.Errorf("labels -want +got:\n%s", diff)
	}
	got := []string{rules.APIVersion, rules.Name, rules.Namespace, monitor.APIVersion, monitor.Name, monitor.Namespace}
	if diff := cmp.Diff([]string{"monitoring.coreos.com/v1", "ballast", namespace, "monitoring.coreos.com/v1", "ballast", namespace}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(shippedRules(t), rules.Spec); diff != "" {
		t.Errorf("-written +installed:\n%s", diff)
	}
	in := decode(t, bytes.Join(rest, []byte("\n---\n")))
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	scraped := map[string][]string{}
	for name, d := range in.Deployments {
		if !selector.Matches(labels.Set(d.Spec.Template.Labels)) || d.Namespace != monitor.Namespace {
			continue
		}
		for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
			if len(monitor.Spec.Endpoints) == 1 && p.Name == monitor.Spec.Endpoints[0].Port {
				scraped[name] = append(scraped[name], p.Name)
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{"ballast-planner": {"metrics"}, "ballast-webhook": {"metrics"}}, scraped); diff != "" {
		t.Errorf("scraped -want +got:\n%s", diff)
	}
}

// plainText is what the file for Prometheus without the operator must hold: the spec with its comments.
func plainText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(alertsRule)
	if err != nil {
		t.Fatal(err)
	}
	_, spec, found := strings.Cut(string(text), "\nspec:\n")
	if !found {
		t.Fatalf("%s has no spec", alertsRule)
	}
	return "# For a Prometheus without the operator: the groups of prometheus-rule.yaml, from which `make golden` writes this file.\n" +
		regexp.MustCompile(`(?m)^  `).ReplaceAllString(spec, "")
}

// TestThePlainRulesAreTheSame: the file for Prometheus without the operator is the PrometheusRule's spec, word for word.
func TestThePlainRulesAreTheSame(t *testing.T) {
	want := plainText(t)
	if *update {
		if err := os.WriteFile(plainRules, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(plainRules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got (go test ./manifests -update writes it):\n%s", diff)
	}
	var plain ruleGroups
	readStrict(t, plainRules, &plain)
	if diff := cmp.Diff(shippedRules(t), plain); diff != "" {
		t.Errorf("-operator's +plain:\n%s", diff)
	}
}

// TestEveryAlertSaysWhatToDo with commands that there are, and in words that do not change while it fires.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	command := regexp.MustCompile("`(ballast|kubectl) ([a-z]+)(?: ([a-z]+))?")
	known, names := ballastCommands(t), map[string]bool{}
	for _, a := range shippedRules(t).alerts() {
		summary, description := a.Annotations["summary"], a.Annotations["description"]
		if !regexp.MustCompile(`^Ballast([A-Z][a-z]+)+$`).MatchString(a.Alert) || names[a.Alert] {
			t.Errorf("%q is no name of its own", a.Alert)
		}
		names[a.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) || len(a.Labels) != 1 {
			t.Errorf("%s has the labels %v", a.Alert, a.Labels)
		}
		if n := len(summary); n < 20 || n > 120 || len(a.Annotations) != 3 || a.Annotations["runbook_url"] == "" {
			t.Errorf("%s: a summary of %d characters, and annotations %v", a.Alert, n, a.Annotations)
		}
		if strings.Contains(description, "{{") {
			t.Errorf("%s: the description is a template", a.Alert)
		}
		commands := command.FindAllStringSubmatch(description, -1)
		if len(commands) == 0 {
			t.Errorf("%s names no command", a.Alert)
		}
		for _, c := range commands {
			if c[1] == "ballast" && (!known[c[2]] || c[3] != "" && !known[c[3]]) {
				t.Errorf("%s: there is no command %s`", a.Alert, c[0])
			}
		}
	}
}

// ballastCommands are the words that cmd/ballast uses for its commands.
func ballastCommands(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, text := range sources(t, "../cmd/ballast/*") {
		for _, found := range regexp.MustCompile(`Use:\s+"([a-z]+)`).FindAllStringSubmatch(text, -1) {
			words[found[1]] = true
		}
	}
	return words
}

// sources are the Go files of a folder without its tests.
func sources(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// TestTheReadmesLabelIsTheOneThatIsTested in testdata/alerts.
func TestTheReadmesLabelIsTheOneThatIsTested(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	kustomization, err := os.ReadFile("testdata/alerts/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, patch, _ := strings.Cut(string(kustomization), "\npatches:\n")
	if indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(patch, "    $1"); patch == "" || !strings.Contains(string(readme), indented) {
		t.Errorf("README.md does not show\n%s", indented)
	}
}

func TestTheReadmeListsEveryAlert(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, a := range shippedRules(t).alerts() {
		want = append(want, a.Alert+" "+a.Labels["severity"])
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Ballast[A-Za-z]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1]+" "+row[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-shipped +listed:\n%s", diff)
	}
}

func TestACertificateExpiresSoonAsTheCommandsMeanIt(t *testing.T) {
	want := fmt.Sprintf(" < %.0f", certs.ExpiresSoonBefore.Seconds())
	for _, a := range shippedRules(t).alerts() {
		if a.Alert == "BallastCertificateExpiring" && !strings.HasSuffix(a.Expr, want) {
			t.Errorf("%q does not end in %q", a.Expr, want)
		}
	}
}
