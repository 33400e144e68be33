package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestAPlainPortHoldsSoManyConnections and closes the oldest for a new one: who comes 45th after them finds room.
func TestAPlainPortHoldsSoManyConnections(t *testing.T) {
	const most, more = 256, 44
	listener, err := listenPlain("127.0.0.1", 0)
	mustDo(t, err)
	defer listener.Close()
	accepted := make([]net.Conn, most+more)
	for i := range accepted {
		dialled, err := net.Dial("tcp", listener.Addr().String())
		mustDo(t, err)
		defer dialled.Close()
		accepted[i], err = listener.Accept()
		mustDo(t, err)
	}
	var open []int
	for i, conn := range accepted {
		if _, err := conn.Write([]byte("x")); err == nil {
			open = append(open, i)
		}
		conn.Close()
	}
	if len(open) != most || open[0] != more {
		t.Errorf("%d connections are open, from the %dth on, want %d from the %dth on", len(open), open[0], most, more)
	}
}

// TestAPlainPortsCallsAreBounded in time and by their heads.
func TestAPlainPortsCallsAreBounded(t *testing.T) {
	s := plainServer(nil)
	got := []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout}
	want := []time.Duration{2 * time.Second, 10 * time.Second, 10 * time.Second, time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("times of a head, a call, an answer and between calls (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct{ head, want int }{
		"a head of 1 KiB":      {1 << 10, http.StatusOK},
		"a head below 8 KiB":   {8<<10 - 1, http.StatusOK},
		"a head beyond 8 KiB":  {8<<10 + 1<<9, http.StatusRequestHeaderFieldsTooLarge},
		"a head of a megabyte": {1 << 20, http.StatusRequestHeaderFieldsTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answeredTo(t, tc.head); got != tc.want {
				t.Errorf("status %d, want %d", got, tc.want)
			}
		})
	}
}

// answeredTo is the status that a plain port answers a head of so many bytes with.
func answeredTo(t *testing.T, head int) int {
	t.Helper()
	listener, err := listenPlain("127.0.0.1", 0)
	mustDo(t, err)
	s := plainServer(healthHandler(nil, nil))
	go func() { _ = s.Serve(listener) }()
	defer s.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	mustDo(t, err)
	defer conn.Close()
	const begins, ends = "GET /healthz HTTP/1.1\r\nHost: a\r\nx: ", "\r\n\r\n"
	go func() { // the server may close before all of it went
		_, _ = fmt.Fprint(conn, begins, strings.Repeat("y", head-len(begins)-len(ends)), ends)
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	mustDo(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

// TestTheMemoryIsBoundedBelowTheContainers, unless the environment says otherwise.
func TestTheMemoryIsBoundedBelowTheContainers(t *testing.T) {
	percent := debug.SetGCPercent(100)
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(before) })
	for name, tc := range map[string]struct {
		limit, want, container int64
		manifest, environment  string
	}{
		"the planner's":                    {plannerMemory, 420 << 20, 512 << 20, "planner.yaml", ""},
		"the webhook's":                    {webhookMemory, 200 << 20, 256 << 20, "webhook.yaml", ""},
		"the planner's by who operates it": {plannerMemory, before, 512 << 20, "planner.yaml", "1GiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.environment)
			debug.SetMemoryLimit(before)
			boundMemory(tc.limit)
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d", got, tc.want)
			}
			if got := containerMemory(t, tc.manifest); got != tc.container || tc.limit >= got {
				t.Errorf("the container has %d, want %d, and more than %d", got, tc.container, tc.limit)
			}
		})
	}
}

// containerMemory is the memory limit of the container that a manifest of the base runs.
func containerMemory(t *testing.T, manifest string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "base", manifest))
	mustDo(t, err)
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var d appsv1.Deployment
		if yaml.Unmarshal([]byte(doc), &d) == nil && d.Kind == "Deployment" {
			return d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
		}
	}
	t.Fatalf("%s has no Deployment", manifest)
	return 0
}
