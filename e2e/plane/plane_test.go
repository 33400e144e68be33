package plane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const controllers = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: argocd-application-controller, namespace: FLEET}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  serviceName: controllers
  selector: {matchLabels: {app.kubernetes.io/name: argocd-application-controller}}
  template:
    metadata: {labels: {app.kubernetes.io/name: argocd-application-controller}}
    spec:
      containers: [{name: application-controller, image: none}]
`

func TestAStatefulSetBecomesReadyAndItsPodsFallIll(t *testing.T) {
	fleet := namespace(t, "fleet")
	apply(t, strings.ReplaceAll(controllers, "FLEET", fleet))
	kubectl(t, "rollout", "status", "-n", fleet, "statefulset/argocd-application-controller", "--timeout=2m")
	const pod = "pod/argocd-application-controller-1"
	for _, state := range []string{"NotReady", "OOMKilled"} {
		kubectl(t, "annotate", "-n", fleet, pod, "plane.ballast/state="+state)
		kubectl(t, "wait", "-n", fleet, pod, "--for=condition=Ready=false", "--timeout=2m")
		kubectl(t, "annotate", "-n", fleet, pod, "plane.ballast/state-")
		kubectl(t, "wait", "-n", fleet, pod, "--for=condition=Ready", "--timeout=2m")
	}
	got := kubectl(t, "get", "-n", fleet, pod, "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].lastState.terminated.reason}")
	if want := "1 OOMKilled"; got != want {
		t.Errorf("restarts and last state: got %q, want %q", got, want)
	}
	kubectl(t, "scale", "-n", fleet, "statefulset/argocd-application-controller", "--replicas=1")
	kubectl(t, "wait", "-n", fleet, pod, "--for=delete", "--timeout=2m")
}

func TestAPersonWritesAndTheAuditLogNamesThem(t *testing.T) {
	people := namespace(t, "people")
	kubectl(t, "create", "rolebinding", "-n", people, "alice", "--clusterrole=edit", "--group=platform")
	alice, err := shared.KubeconfigFor("alice", "platform")
	if err != nil {
		t.Fatal(err)
	}
	// RBAC follows its informers, a moment behind the write.
	eventually(t, 2*time.Minute, "alice writes", func() error {
		_, _, err := shared.Kubectl(t.Context(), alice, "create", "secret", "generic", "-n", people, "of-alice", "--from-literal=a=b")
		return err
	})
	if _, _, err := shared.Kubectl(t.Context(), alice, "create", "namespace", "of-alice"); err == nil {
		t.Error("alice may create a namespace: RBAC is off")
	}
	events := auditEvents(t, func(e auditv1.Event) bool {
		return e.Verb == "create" && e.ObjectRef != nil && e.ObjectRef.Resource == "secrets" && e.ObjectRef.Namespace == people && e.ObjectRef.Name == "of-alice" && e.ResponseStatus.Code == 201
	})
	if len(events) != 1 || events[0].User.Username != "alice" {
		t.Errorf("audit events of the write: got %+v, want one by alice", events)
	}
}

func auditEvents(t *testing.T, match func(auditv1.Event) bool) []auditv1.Event {
	t.Helper()
	f, err := os.Open(shared.AuditLogPath())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []auditv1.Event
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if match(e) {
			events = append(events, e)
		}
	}
	return events
}

func TestPrometheusRemembersAPast(t *testing.T) {
	var past strings.Builder
	now := time.Now()
	past.WriteString("# TYPE work gauge\n")
	for ago := 2 * time.Hour; ago > 0; ago -= 30 * time.Second {
		fmt.Fprintf(&past, "work{cluster=\"prod\"} 7 %d\n", now.Add(-ago).Unix())
	}
	past.WriteString("# EOF\n")
	server, err := shared.StartPrometheus(t.Context(), PrometheusOptions{OpenMetrics: strings.NewReader(past.String())})
	if err != nil {
		t.Fatal(err)
	}
	got, err := body(t, server+"/api/v1/query?query="+url.QueryEscape(`quantile_over_time(0.95, work{cluster="prod"}[1h])`))
	if err != nil || !strings.Contains(got, `"7"`) {
		t.Errorf("query: got %s (%v), want the value 7", got, err)
	}
	shared.StopPrometheus()
	if _, err := body(t, server+"/-/ready"); err == nil {
		t.Error("a stopped Prometheus answers")
	}
}

func TestStopEndsEveryProcessAndTwoPlanesLiveSideBySide(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	second, err := Start(ctx, Options{Binaries: shared.binaries, Log: os.Stderr, Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Stop()
	if second.network.N == shared.network.N {
		t.Errorf("both planes hold number %d", second.network.N)
	}
	if _, _, err := second.Kubectl(ctx, "", "get", "nodes"); err != nil {
		t.Error(err)
	}
	began := time.Now()
	cancel() // as ^C does; the Stop that follows waits for the one this begins
	second.Stop()
	t.Logf("stopped in %s", time.Since(began))
	processes := second.Processes()
	if len(processes) < 5 {
		t.Errorf("processes: got %v, want at least the five parts", processes)
	}
	for _, p := range processes {
		if alive(p.PID) {
			t.Errorf("process %d of %q is alive after the stop", p.PID, p.Name)
		}
	}
	if _, err := os.Stat(second.Dir()); err == nil {
		t.Errorf("the plane's folder is still there")
	}
}

func TestAChildDiesWithAKilledParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), role+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !alive(pid) {
		t.Fatalf("the child %q does not live (%v)", line, err)
	}
	if err := syscall.Kill(parent.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed: always an error
	eventually(t, 2*time.Minute, "the child's end", func() error {
		if alive(pid) {
			return fmt.Errorf("process %d lives", pid)
		}
		return nil
	})
}
