package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/version"
)

// asked runs the command, and gives the messages by result and check, and how it ended.
func asked(t *testing.T, kubeconfig string, args ...string) (map[string]string, string) {
	t.Helper()
	out, _, failure := fixture.AsPerson(t, fixture.RootOf(NewCommand()), kubeconfig, "", append([]string{"doctor", "-o", "json"}, args...)...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %q, %s", err, out, failure)
	}
	lines := map[string]string{}
	for _, f := range r.Findings {
		lines[string(f.Result)+" "+f.Check] += f.Message + strings.Join(f.Subjects, " ") + "\n"
	}
	return lines, failure
}

// On a real API server: what is there, what is missing, and what the person who asks may not see.
func TestDoctorOnARealAPIServer(t *testing.T) {
	s := fixture.StartSite(t)
	p := fixture.Steered(nil)
	s.Plans(t, p, nil)
	s.Fleet(t, p)
	file := filepath.Join(t.TempDir(), "ballast.yaml") // the workload has none of Argo CD's labels
	fixture.MustDo(t, os.WriteFile(file, []byte("apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\n"+
		"target: {namespace: argocd, kind: StatefulSet, name: "+fixture.ControllerName+"}\npoll: {prometheus: {url: \"http://127.0.0.1:1\"}}\n"), 0o600))
	got, failure := asked(t, s.Alice, "--config", file)
	holds := func(check, want string) {
		t.Helper()
		if !strings.Contains(got[check], want) {
			t.Errorf("%s is %q, want %q; all is %v", check, got[check], want, got)
		}
	}
	holds("OK Kubernetes", "tested with "+version.ProvenKubernetes)
	holds("OK workload", "StatefulSet "+fixture.ControllerName)
	holds("Warning autoscalers", "grow")
	holds("Fault metrics", "QueryFailed")
	holds("Fault rights", "patch secrets") // the site has no Role of ballast's
	if !strings.HasSuffix(failure, "to mend") {
		t.Errorf("it ended with %q", failure)
	}

	erin := s.Granted("erin", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "deployments"}, Verbs: []string{"get", "list"}})
	got, _ = asked(t, erin, "--config", file)
	holds("OK workload", "StatefulSet "+fixture.ControllerName)
	holds("Unknown autoscalers", "horizontalpodautoscalers.autoscaling may not be listed")
	holds("Unknown rights", "whether ballast is installed may not be read")
	holds("Unknown looking", "MutatingWebhookConfiguration ballast.argocd may not be read")

	frank := s.Granted("frank", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}})
	got, failure = asked(t, frank, "--config", file)
	holds("Fault workload", "plan needs get and list on secrets")
	if diff := cmp.Diff("1 fault to mend", strings.TrimPrefix(failure, "ballast: ")); diff != "" {
		t.Errorf("it ended with (-want +got):\n%s", diff)
	}
}
