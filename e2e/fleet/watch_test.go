package fleet

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/google/go-cmp/cmp"
)

func runningPod(sts *appsv1.StatefulSet, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: sts.Namespace, UID: "uid", Labels: sts.Spec.Template.Labels},
		Spec:       sts.Spec.Template.Spec,
		Status: corev1.PodStatus{PodIP: "10.64.0.7", ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

// until asks at every change until the condition holds.
func until(t *testing.T, changed <-chan struct{}, holds func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("it did not happen within two minutes")
		}
	}
}

func TestWatchFollowsTheAPIServer(t *testing.T) {
	f := New(Options{Clusters: 2, Replicas: 2})
	objects := f.Installation()
	for _, s := range f.Secrets() {
		objects = append(objects, s)
	}
	client := fake.NewClientset(objects...)
	e := f.NewExporter(time.Now)
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if err := e.Watch(t.Context(), client, notify); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"prod-eu-1": {}, "prod-us-1": {}, "in-cluster": {}}, e.Owners()); diff != "" {
		t.Errorf("without pods (-want +got):\n%s", diff)
	}
	for _, pod := range []string{Workload + "-0", Workload + "-1"} {
		if _, err := client.CoreV1().Pods("argocd").Create(t.Context(), runningPod(f.StatefulSet(), pod), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range f.Secrets() {
		s.Data["shard"] = []byte("1")
		if _, err := client.CoreV1().Secrets("argocd").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	one := []string{Workload + "-1"}
	want := map[string][]string{"prod-eu-1": one, "prod-us-1": one, "in-cluster": {Workload + "-0"}}
	until(t, changed, func() bool { return cmp.Equal(want, e.Owners()) })

	argocd, err := client.CoreV1().ConfigMaps("argocd").Get(t.Context(), configMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	argocd.Data = map[string]string{"cluster.inClusterEnabled": "false"}
	if _, err := client.CoreV1().ConfigMaps("argocd").Update(t.Context(), argocd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(want, func(name string, _ []string) bool { return name == "in-cluster" })
	until(t, changed, func() bool { return cmp.Equal(want, e.Owners()) })
}

func TestWriteTargets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "targets.json")
	for _, target := range []string{"127.0.0.1:1", "127.0.0.1:2"} {
		if err := WriteTargets(file, []Target{{Targets: []string{target}, Labels: map[string]string{"pod": "c-0"}}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"targets":["127.0.0.1:2"],"labels":{"pod":"c-0"}}]`; string(got) != want {
		t.Errorf("file %s, want %s", got, want)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want the file alone", entries, err)
	}
	if err := WriteTargets(filepath.Join(t.TempDir(), "none", "f"), nil); err == nil {
		t.Error("a missing folder is no error")
	}
}

func TestPrometheusConfig(t *testing.T) {
	got, err := PrometheusConfig("/tmp/targets.json", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := `global:
  scrape_interval: 2000ms
  scrape_timeout: 2000ms
scrape_configs:
- file_sd_configs:
  - files:
    - /tmp/targets.json
    refresh_interval: 5s
  job_name: argocd
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
