package probe

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probed runs the probes of a container against a server whose health the test
// sets.
func probed(t *testing.T, healthy *atomic.Bool, c *corev1.Container) <-chan Verdict {
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
	return Start(t.Context(), c, host)
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
	if v := <-verdicts; v.Kind != Readiness || v.Err != nil {
		t.Errorf("the first verdict: got %+v, want readiness", v)
	}
}

func TestAFailureIsCountedInPeriods(t *testing.T) {
	var healthy atomic.Bool
	began := time.Now()
	v := <-probed(t, &healthy, &corev1.Container{StartupProbe: httpProbe(2)})
	if v.Kind != Startup || v.Err == nil || time.Since(began) < time.Second {
		t.Errorf("got %+v after %s, want a failed startup after a period", v, time.Since(began))
	}
}
