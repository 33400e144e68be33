package plan

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/assets"
	"ballast/planner/cycle"
	"ballast/planner/plan"
)

// TestThePatchIsAppliedAsItsFirstLineSays, by kubectl on a real API server: each Secret has its shard, and all else as it was; the
// workload has its replicas and env.
func TestThePatchIsAppliedAsItsFirstLineSays(t *testing.T) {
	s := fixture.StartSite(t)
	in := fixture.SeenCycle(t, "elected-move")
	in.Workload.Namespace, in.Workload.Name, in.Workload.Container = "argocd", fixture.ControllerName, "application-controller"
	set := fixture.QuietWorld().Workload.(*appsv1.StatefulSet)
	set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HOME", Value: "/home"}, {Name: plan.EnvReplicas, Value: "9"}}
	s.Makes(t, set)
	before := map[string]map[string][]byte{}
	for i := range in.Discovered.Secrets {
		of := in.Discovered.Secrets[i]
		secret := &corev1.Secret{Data: map[string][]byte{"name": []byte(of.Cluster), "server": []byte(of.Server), "config": []byte("{}"),
			"shard": []byte("7")}}
		secret.Namespace, secret.Name, secret.Labels = "argocd", of.Name, map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}
		s.Makes(t, secret)
		before[of.Name] = secret.Data
	}
	out := cycle.Run(in)
	var text bytes.Buffer
	fixture.MustDo(t, writeAnswer(&text, "patch", in, out))
	file := filepath.Join(t.TempDir(), "patch.yaml")
	fixture.MustDo(t, os.WriteFile(file, text.Bytes(), 0o600))
	binaries, err := assets.Build(t.Context(), os.Stderr)
	fixture.MustDo(t, err)
	const first = "# kubectl apply --server-side --force-conflicts -f FILE\n"
	if !bytes.HasPrefix(text.Bytes(), []byte(first)) {
		t.Fatalf("the first line is not %q", first)
	}
	apply := exec.CommandContext(t.Context(), binaries.Path(assets.Kubectl), "--kubeconfig", s.Alice,
		"apply", "--server-side", "--force-conflicts", "-f", file)
	if said, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	a, err := answered(in, out)
	fixture.MustDo(t, err)
	want := before
	for _, o := range a.secrets {
		want[o.name]["shard"] = []byte(strconv.Itoa(o.replica))
	}
	got := map[string]map[string][]byte{}
	var list corev1.SecretList
	fixture.MustDo(t, s.Planner.List(t.Context(), &list, client.InNamespace("argocd"),
		client.MatchingLabels{plan.SecretTypeLabel: plan.SecretTypeCluster}))
	for _, secret := range list.Items {
		got[secret.Name] = secret.Data
	}
	if diff := cmp.Diff(want, got); diff != "" || len(a.secrets) < 20 {
		t.Errorf("of %d Secrets that are written, data is (-want +got):\n%s", len(a.secrets), diff)
	}
	fixture.MustDo(t, s.Planner.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	env := []corev1.EnvVar{{Name: "HOME", Value: "/home"}, {Name: plan.EnvReplicas, Value: strconv.Itoa(a.replicas)}}
	if diff := cmp.Diff(env, set.Spec.Template.Spec.Containers[0].Env); diff != "" || *set.Spec.Replicas != int32(a.replicas) {
		t.Errorf("replicas are %d, env (-want +got):\n%s", *set.Spec.Replicas, diff)
	}
}
