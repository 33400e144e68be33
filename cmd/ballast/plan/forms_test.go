package plan

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"ballast/cmd/ballast/fixture"
	"ballast/planner/cycle"
)

// Each form of the answer, of one saved cycle; and what of it is a Secret names every cluster's owner in the candidate.
func TestAnswersGolden(t *testing.T) {
	in := fixture.SeenCycle(t, "elected-move")
	out := cycle.Run(in)
	var text strings.Builder
	for _, form := range []string{"helm-values", "external-secrets", "patch"} {
		var b bytes.Buffer
		fixture.MustDo(t, writeAnswer(&b, form, in, out))
		text.WriteString("$ ballast plan -o " + form + "\n" + b.String())
	}
	fixture.Golden(t, "answers", text.String())
	owner := map[string]int{}
	for _, r := range out.Candidate.Replicas {
		for _, l := range r.LoadIndexes {
			owner[l.Shard.ID] = r.ID
		}
	}
	a, err := answered(in, out)
	fixture.MustDo(t, err)
	if len(a.secrets) == 0 || a.replicas != len(out.Candidate.Replicas) {
		t.Errorf("%d Secrets on %d replicas", len(a.secrets), a.replicas)
	}
	for _, s := range a.secrets {
		if s.replica != owner[s.name] {
			t.Errorf("%s goes to %d, want %d", s.name, s.replica, owner[s.name])
		}
	}
	labelled := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	for _, object := range a.externalSecrets() {
		got, _, err := unstructured.NestedStringMap(decoded(t, object), "spec", "target", "template", "metadata", "labels")
		fixture.MustDo(t, err)
		if diff := cmp.Diff(labelled, got); diff != "" {
			t.Errorf("labels of the template, without which Argo CD loses the cluster (-want +got):\n%s", diff)
		}
	}
	for _, object := range append(a.patches(), a.externalSecrets()...) {
		if _, err := yaml.Marshal(object); err != nil {
			t.Error(err)
		}
	}
}

// decoded is an object as the API server gets it.
func decoded(t *testing.T, object map[string]any) (read map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	fixture.MustDo(t, err)
	fixture.MustDo(t, yaml.Unmarshal(text, &read))
	return read
}

func TestNoEvidenceIsNoAnswer(t *testing.T) {
	if _, err := answered(fixture.SeenCycle(t, "elected-move"), cycle.Outcome{}); err == nil {
		t.Error("there is one")
	}
}
