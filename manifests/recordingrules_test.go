package manifests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/planner/poll"
)

const recordingDir = "components/recording-rules"

// recordedGroups are groups of recording rules, as Prometheus reads them.
type recordedGroups struct {
	Groups []recordedGroup `json:"groups"`
}

type recordedGroup struct {
	Name     string `json:"name"`
	Interval string `json:"interval"`
	Rules    []struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	} `json:"rules"`
}

type recordedObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              recordedGroups `json:"spec"`
}

// TestTheRecordingRulesAreWhatTheQueriesAskFor: the rule of the component, and of the file for Prometheus without the operator, is
// the planner's, in the step of the planner's query.
func TestTheRecordingRulesAreWhatTheQueriesAskFor(t *testing.T) {
	var object recordedObject
	var plain recordedGroups
	readStrict(t, recordingDir+"/prometheus-rule.yaml", &object)
	readStrict(t, recordingDir+"/recording.rules.yaml", &plain)
	want := recordedGroups{[]recordedGroup{{Name: "ballast-load", Interval: "5m"}}}
	want.Groups[0].Rules = append(want.Groups[0].Rules, struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}{poll.EventsRule, poll.EventsRate})
	for name, got := range map[string]recordedGroups{"component": object.Spec, "file": plain} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTheRecordingRulesAreInstalledBesideBallast, in the namespace that it has there, and beside the alerts' rules.
func TestTheRecordingRulesAreInstalledBesideBallast(t *testing.T) {
	var got recordedObject
	for _, doc := range bytes.Split(build(t, "testdata/recording"), []byte("\n---\n")) {
		if bytes.Contains(doc, []byte("kind: PrometheusRule\n")) {
			if err := yaml.UnmarshalStrict(doc, &got); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"monitoring.coreos.com/v1", "ballast-recording", "gitops"}, []string{got.APIVersion, got.Name, got.Namespace}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheRecordingRulesRecordWhatPrometheusItselfEvaluates runs promtool over them.
func TestTheRecordingRulesRecordWhatPrometheusItselfEvaluates(t *testing.T) {
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range []string{recordingDir + "/recording.rules.yaml", "testdata/recording/recording.test.yaml"} {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "recording.rules.yaml"}, {"test", "rules", "recording.test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), binaries.Path("promtool"), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
