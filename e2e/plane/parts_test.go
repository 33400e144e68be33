package plane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

func TestTheHashOfABuildFollowsItsSources(t *testing.T) {
	e2e := t.TempDir()
	for _, module := range []string{"kube", "prometheus", "tools/cert-manager"} {
		if err := os.MkdirAll(filepath.Join(e2e, module), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		h, err := planeSet.sourceHash(e2e)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(e2e, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := hash()
	write("kube/README.md", "no source")
	if hash() != before {
		t.Error("the hash follows a file that is no source")
	}
	for _, name := range []string{"kube/go.mod", "prometheus/go.sum", "tools/cert-manager/main.go"} {
		write(name, "x")
		if after := hash(); after == before {
			t.Errorf("the hash does not follow %s", name)
		} else {
			before = after
		}
	}
}

func TestABuildWaitsForTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "build.lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(impatient, path, &told); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(told.String(), "waiting") {
		t.Errorf("the lock while held: got %v and %q, want a told wait", err, told.String())
	}
	unlock()
	again, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAFailedBuildLeavesNothing(t *testing.T) {
	cache, e2e := t.TempDir(), t.TempDir()
	for _, module := range []string{"kube", "prometheus", "tools"} { // no go.mod in it
		if err := os.MkdirAll(filepath.Join(e2e, module), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := planeSet.buildAll(t.Context(), e2e, filepath.Join(cache, "whole"), io.Discard); err == nil {
		t.Fatal("a build of nothing succeeded")
	}
	if left, err := os.ReadDir(cache); len(left) > 0 || err != nil {
		t.Errorf("left: got %v, %v, want nothing", left, err)
	}
}

func TestAPodIPHasItsLoopbackAddress(t *testing.T) {
	n := &network{n: 64}
	for ip, want := range map[string]string{"10.64.0.1": "127.64.0.1", "10.64.3.255": "127.64.3.255", "10.65.0.1": "", "127.64.0.1": "", "": "", "::1": ""} {
		if got, err := n.loopback(ip); got != want || (err == nil) != (want != "") {
			t.Errorf("loopback(%q): got %q, %v, want %q", ip, got, err, want)
		}
	}
}

// probed runs the probes of a container against a server whose health the test
// sets.
func probed(t *testing.T, healthy *atomic.Bool, c *corev1.Container) <-chan verdict {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(number)}}
	return startProbes(t.Context(), c, host)
}

func httpProbe(failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("web")}},
		PeriodSeconds: 1, FailureThreshold: failures,
	}
}

func TestReadinessWaitsForStartup(t *testing.T) {
	var healthy atomic.Bool
	verdicts := probed(t, &healthy, &corev1.Container{StartupProbe: httpProbe(30), ReadinessProbe: httpProbe(1)})
	select {
	case v := <-verdicts:
		t.Fatalf("a verdict before the startup: %+v", v)
	case <-time.After(3 * eager):
	}
	healthy.Store(true)
	if v := <-verdicts; v.kind != readiness || v.err != nil {
		t.Errorf("the first verdict: got %+v, want readiness", v)
	}
}

func TestAFailureIsCountedInPeriods(t *testing.T) {
	var healthy atomic.Bool
	began := time.Now()
	v := <-probed(t, &healthy, &corev1.Container{StartupProbe: httpProbe(2)})
	if v.kind != startup || v.err == nil || time.Since(began) < time.Second {
		t.Errorf("got %+v after %s, want a failed startup after a period", v, time.Since(began))
	}
}
