package matrix

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"ballast/planner/plan"
)

// kubectl is what a person sees: each command's own output, and the warning under it.
func (s *site) kubectl(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(statefulSets)(t, workload)
	s.remove(secrets)(t, "c-04")
	dir := t.TempDir()
	file := func(name string, u *unstructured.Unstructured) string {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right, wrong := file("right.yaml", named(controller(plan.StatefulSet, 4, "16"), workload)), file("wrong.yaml", named(controller(plan.StatefulSet, 9, "9"), workload))
	cluster, moved := file("cluster.yaml", named(secret("3"), "c-04")), file("moved.yaml", named(secret("1"), "c-04"))
	const scaled = "statefulset.apps/" + workload + " scaled\n"
	const set = "/" + workload
	shardSaid := `Warning: ballast: shard 1 was asked, 3 stays (plan 1); to pin, add "c-04: 1" to data.pins of ConfigMap ballast-plan` + "\n"
	bothSaid := "Warning: " + replicasSaid + "\nWarning: " + envSaid + "\n"
	for _, step := range []struct {
		name             string
		args             []string
		editor           string
		stdout, warnings string
	}{
		{"apply", []string{"apply", "-f", right}, "", "statefulset.apps" + set + " created\n", ""},
		{"scale", []string{"scale", "statefulset", workload, "--replicas=9"}, "", scaled, "Warning: " + replicasSaid + "\n"},
		{"scale with a precondition", []string{"scale", "statefulset", workload, "--current-replicas=4", "--replicas=9"}, "", scaled, "Warning: " + replicasSaid + "\n"},
		{"apply again", []string{"apply", "-f", wrong}, "", "statefulset.apps" + set + " configured\n", bothSaid},
		{"apply on the server", []string{"apply", "--server-side", "--force-conflicts", "-f", wrong}, "", "statefulset.apps" + set + " serverside-applied\n", bothSaid},
		{"replace", []string{"replace", "-f", wrong}, "", "statefulset.apps" + set + " replaced\n", bothSaid},
		{"set env", []string{"set", "env", "statefulset", workload, "ARGOCD_CONTROLLER_REPLICAS=9", "-c", "renamed"}, "", "statefulset.apps" + set + " env updated\n", "Warning: " + envSaid + "\n"},
		{"edit", []string{"edit", "statefulset", workload}, "sed -i 's/replicas: 4/replicas: 9/'", "statefulset.apps" + set + " edited\n", "Warning: " + replicasSaid + "\n"},
		{"a Secret", []string{"apply", "-f", cluster}, "", "secret/c-04 created\n", ""},
		{"a Secret moved", []string{"apply", "-f", moved}, "", "secret/c-04 configured\n", shardSaid},
		{"a Secret replaced", []string{"replace", "-f", moved}, "", "secret/c-04 replaced\n", shardSaid},
		{"a row edited", []string{"edit", "configmap", planName}, "sed -i 's/c-05: {replica: 3/c-05: {replica: 1/'", "configmap/" + planName + " edited\n", "Warning: ballast: these rows became pins in data.pins: c-05: 1\n"},
	} {
		t.Run(step.name, func(t *testing.T) {
			cmd := exec.Command(s.binaries.Path("kubectl"), append([]string{"--kubeconfig", s.kubeconfig, "-n", namespace}, step.args...)...)
			cmd.Env = append(os.Environ(), "KUBE_EDITOR="+step.editor)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			if diff := cmp.Diff([]string{step.stdout, step.warnings}, []string{stdout.String(), stderr.String()}); diff != "" {
				t.Errorf("output and warnings (-want +got):\n%s", diff)
			}
		})
	}
	client := s.dynamic(t, s.admin)
	held, err := client.Resource(statefulSets).Namespace(namespace).Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"replicas": "4", "env": planned}, workloadFields(held)); diff != "" {
		t.Errorf("the workload at the end (-want +got):\n%s", diff)
	}
	stored, err := client.Resource(configMaps).Namespace(namespace).Get(t.Context(), planName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pins := planFields(stored)["pins"]; pins != "c-05: 1\n" {
		t.Errorf("pins at the end: %q", pins)
	}
}
