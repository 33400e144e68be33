package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReferencesInArgumentsAreExpanded(t *testing.T) {
	v := &variables{values: map[string]string{}}
	v.set("IP", "127.64.0.1")
	v.set("EMPTY", "")
	for in, want := range map[string]string{
		"--listen=$(IP):9443": "--listen=127.64.0.1:9443",
		"$(IP)$(IP)":          "127.64.0.1127.64.0.1",
		"[$(EMPTY)]":          "[]",
		"$(UNKNOWN)":          "$(UNKNOWN)",
		"$$(IP)":              "$(IP)",
		"$(IP":                "$(IP",
		"100$":                "100$",
		"$IP":                 "$IP",
	} {
		if got := v.expand(in); got != want {
			t.Errorf("expand(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestPathsOnMountsAreMoved(t *testing.T) {
	r := &podRunner{dir: "/pod"}
	c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{MountPath: "/etc/ballast"}, {MountPath: "/etc/ballast/certs/"}, {MountPath: "/tmp"}}}
	for in, want := range map[string]string{
		"/etc/ballast":               "/pod/etc/ballast",
		"--config=/etc/ballast/c":    "--config=/pod/etc/ballast/c",
		"--c=/etc/ballast/certs/a":   "--c=/pod/etc/ballast/certs/a",
		"/tmp/a:/tmp/b,/etc/ballast": "/pod/tmp/a:/pod/tmp/b,/pod/etc/ballast",
		"/etc/ballast2":              "/etc/ballast2",
		"/my/etc/ballast":            "/my/etc/ballast",
		"/etc/passwd":                "/etc/passwd",
		"":                           "",
	} {
		if got := r.rewrite(c, in); got != want {
			t.Errorf("rewrite(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestDownwardFields(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{"x/y": "z"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "c"},
		Status:     corev1.PodStatus{PodIP: "10.64.0.1"},
	}
	for path, want := range map[string]string{
		"metadata.name": "a", "metadata.namespace": "b", "metadata.labels['x/y']": "z",
		"spec.serviceAccountName": "c", "status.podIP": "127.64.0.1",
	} {
		if got, err := fieldValue(pod, path, "127.64.0.1"); got != want || err != nil {
			t.Errorf("fieldValue(%q): got %q, %v, want %q", path, got, err, want)
		}
	}
	if _, err := fieldValue(pod, "spec.nonsense", ""); err == nil {
		t.Error("an unknown field has a value")
	}
}

func TestDownwardResources(t *testing.T) {
	c := &corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("128Mi"), corev1.ResourceCPU: resource.MustParse("1500m"),
	}}}
	for name, tc := range map[string]struct{ resource, divisor, want string }{
		"bytes":             {"limits.memory", "0", "134217728"},
		"mebibytes":         {"limits.memory", "1Mi", "128"},
		"cores, rounded up": {"limits.cpu", "0", "2"},
		"unset request":     {"requests.cpu", "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resourceValue(c, &corev1.ResourceFieldSelector{Resource: tc.resource, Divisor: resource.MustParse(tc.divisor)})
			if got != tc.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	if got, err := resourceValue(&corev1.Container{}, &corev1.ResourceFieldSelector{Resource: "limits.cpu"}); got != "64" || err != nil {
		t.Errorf("an unset limit: got %q, %v, want the node's", got, err)
	}
}

func TestAVolumeIsSwappedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	for _, files := range []map[string]file{
		{"tls.crt": {data: []byte("1"), mode: 0o644}, "tls.key": {data: []byte("1"), mode: 0o400}},
		{"tls.crt": {data: []byte("2"), mode: 0o644}, "sub/ca.crt": {data: []byte("2"), mode: 0o644}},
	} {
		if err := swapFiles(dir, files); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, name := range []string{"tls.crt", "tls.key", "sub/ca.crt"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				got[name] = string(data)
			}
		}
		want := map[string]string{}
		for name, f := range files {
			want[name] = string(f.data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	if versions, err := filepath.Glob(filepath.Join(dir, "..version-*")); len(versions) != 1 {
		t.Errorf("versions left: got %v (%v), want one", versions, err)
	}
}
