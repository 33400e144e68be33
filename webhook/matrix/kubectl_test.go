package matrix

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"ballast/planner/plan"
)

// command is one of kubectl's, with its own output, and the warnings under it.
type command struct {
	name             string
	args             []string
	editor           string
	stdout, warnings string
}

// kubectl is what a person sees.
func (s *site) kubectl(t *testing.T) {
	for kind, resource := range map[string]schema.GroupVersionResource{plan.StatefulSet: statefulSets, plan.Deployment: deployments} {
		t.Run(kind, func(t *testing.T) { s.kubectlWorkload(t, kind, resource) })
	}
	t.Run("clusters", s.kubectlClusters)
}

// file writes an object where kubectl finds it.
func file(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *site) runCommands(t *testing.T, commands []command) {
	t.Helper()
	for _, step := range commands {
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
}

func (s *site) kubectlWorkload(t *testing.T, kind string, resource schema.GroupVersionResource) {
	s.decide(t, fleet(kind, 1), "")
	s.remove(resource)(t, workload)
	right, wrong := file(t, named(controller(kind, 4, "16"), workload)), file(t, named(controller(kind, 9, "9"), workload))
	short := strings.ToLower(kind)
	named := short + ".apps/" + workload
	bothSaid := "Warning: " + replicasSaid + "\nWarning: " + envSaid + "\n"
	s.runCommands(t, []command{
		{"apply", []string{"apply", "-f", right}, "", named + " created\n", ""},
		{"scale", []string{"scale", short, workload, "--replicas=9"}, "", named + " scaled\n", "Warning: " + replicasSaid + "\n"},
		{"scale with a precondition", []string{"scale", short, workload, "--current-replicas=4", "--replicas=9"}, "", named + " scaled\n", "Warning: " + replicasSaid + "\n"},
		{"apply again", []string{"apply", "-f", wrong}, "", named + " configured\n", bothSaid},
		{"apply on the server", []string{"apply", "--server-side", "--force-conflicts", "-f", wrong}, "", named + " serverside-applied\n", bothSaid},
		{"replace", []string{"replace", "-f", wrong}, "", named + " replaced\n", bothSaid},
		{"set env", []string{"set", "env", short, workload, "ARGOCD_CONTROLLER_REPLICAS=9", "-c", "renamed"}, "", named + " env updated\n", "Warning: " + envSaid + "\n"},
		{"edit", []string{"edit", short, workload}, "sed -i 's/replicas: 4/replicas: 9/'", named + " edited\n", "Warning: " + replicasSaid + "\n"},
	})
	held, err := s.dynamic(t, s.admin).Resource(resource).Namespace(namespace).Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"replicas": "4", "env": planned}, workloadFields(held)); diff != "" {
		t.Errorf("the workload at the end (-want +got):\n%s", diff)
	}
}

func (s *site) kubectlClusters(t *testing.T) {
	s.decide(t, fleet(plan.StatefulSet, 1), "")
	s.remove(secrets)(t, "c-04")
	cluster, moved := file(t, named(secret("3"), "c-04")), file(t, named(secret("1"), "c-04"))
	shardSaid := `Warning: ballast: shard 1 was asked, 3 stays (plan 1); to pin, add "c-04: 1" to data.pins of ConfigMap ballast-plan` + "\n"
	s.runCommands(t, []command{
		{"a Secret", []string{"apply", "-f", cluster}, "", "secret/c-04 created\n", ""},
		{"a Secret moved", []string{"apply", "-f", moved}, "", "secret/c-04 configured\n", shardSaid},
		{"a Secret replaced", []string{"replace", "-f", moved}, "", "secret/c-04 replaced\n", shardSaid},
		{"a Secret edited", []string{"edit", "secret", "c-04"}, "sed -i 's/shard: Mw==/shard: MQ==/'", "secret/c-04 edited\n", shardSaid},
		{"a row edited", []string{"edit", "configmap", planName}, "sed -i 's/c-05: {replica: 3/c-05: {replica: 1/'", "configmap/" + planName + " edited\n", "Warning: ballast: these rows became pins in data.pins: c-05: 1\n"},
	})
	client := s.dynamic(t, s.admin)
	kept, err := client.Resource(secrets).Namespace(namespace).Get(t.Context(), "c-04", metav1.GetOptions{})
	if err != nil || shardOf(kept)["shard"] != "3" {
		t.Errorf("the Secret at the end: shard %v, %v", shardOf(kept), err)
	}
	stored, err := client.Resource(configMaps).Namespace(namespace).Get(t.Context(), planName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pins := planFields(stored)["pins"]; pins != "c-05: 1\n" {
		t.Errorf("pins at the end: %q", pins)
	}
}
