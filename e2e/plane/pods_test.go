package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ballast/e2e/plane/network"
)

// issued is a chain as ballast ships it: a self-signed root, a CA under it, an
// issuer of that CA, and the serving certificate.
const issued = `
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: root, namespace: HOOK}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: ca, namespace: HOOK}
spec: {isCA: true, commonName: hook-ca, secretName: ca, privateKey: {algorithm: ECDSA}, issuerRef: {name: root}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: ca, namespace: HOOK}
spec: {ca: {secretName: ca}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: HOOK}
spec: {secretName: serving, dnsNames: [hook.HOOK.svc], privateKey: {algorithm: ECDSA}, issuerRef: {name: ca}}
`

const hook = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: hook, namespace: HOOK}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: HOOK}
data: {ready: "true", name: settings}
---
apiVersion: v1
kind: Secret
metadata: {name: note, namespace: HOOK}
stringData: {text: first}
---
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: HOOK}
spec: {selector: {app.kubernetes.io/name: ballast}, ports: [{port: 443, targetPort: https}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hook, namespace: HOOK}
spec:
  replicas: 2
  selector: {matchLabels: {app.kubernetes.io/name: ballast}}
  template:
    metadata: {labels: {app.kubernetes.io/name: ballast}}
    spec:
      serviceAccountName: hook
      terminationGracePeriodSeconds: 10
      containers:
      - name: hook
        image: none
        args: ["--listen=$(POD_IP):9443", "--certs=/certs", "--settings=/etc/$(SETTINGS)"]
        ports: [{name: https, containerPort: 9443}]
        env:
        - {name: PLANE_TEST_ROLE, value: pod}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: SETTINGS, valueFrom: {configMapKeyRef: {name: settings, key: name}}}
        - {name: NOTE, value: /notes/text}
        readinessProbe: {httpGet: {path: /readyz, port: https, scheme: HTTPS}, periodSeconds: 1, failureThreshold: 2}
        livenessProbe: {tcpSocket: {port: https}, periodSeconds: 1, failureThreshold: 30} # a busy machine's pod is slow, not dead
        volumeMounts:
        - {name: certs, mountPath: /certs}
        - {name: settings, mountPath: /etc/settings}
        - {name: notes, mountPath: /notes}
      volumes:
      - {name: certs, secret: {secretName: serving}}
      - {name: settings, configMap: {name: settings}}
      - {name: notes, secret: {secretName: note}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook, annotations: {cert-manager.io/inject-ca-from: HOOK/ca}}
webhooks:
- name: hook.plane.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 2
  clientConfig: {service: {namespace: HOOK, name: hook, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: HOOKED}}
`

// startPods is once a plane, however often the test runs.
var startPods = sync.OnceValue(func() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := shared.StartCertManager(context.Background()); err != nil {
		return err
	}
	return shared.RunPods(context.Background(), self)
})

// installation is where the pods run and whose writes their webhook sees.
type installation struct{ namespace, hooked string }

func (h *installation) manifest(s string) string {
	return strings.NewReplacer("HOOKED", h.hooked, "HOOK", h.namespace).Replace(s)
}

// TestPodsRunForReal follows one installation through its life; the steps build
// on each other.
func TestPodsRunForReal(t *testing.T) {
	if err := startPods(); err != nil {
		t.Fatal(err)
	}
	h := &installation{namespace: namespace(t, "hook"), hooked: namespace(t, "hooked")}
	apply(t, h.manifest(hook))
	steps := []struct {
		name string
		run  func(*testing.T)
	}{
		{"pods wait for their missing secret", h.podsWait},
		{"a waiting pod can be deleted", h.waitingPodGoes},
		{"with the certificate issued they become ready by their probe", h.podsBecomeReady},
		{"the process is the service account", h.processIsServiceAccount},
		{"the API server calls them through the proxy", h.webhookIsCalled},
		{"a refused network fails the call", h.networkFails},
		{"a changed secret arrives in the volume", h.secretArrives},
		{"readiness follows the real probe", h.readinessFollows},
		{"readiness that another writer took comes back", h.readinessComesBack},
		{"a killed process is restarted", h.killedRestarts},
		{"a deleted pod ends gracefully before its object goes", h.deletedEndsGracefully},
	}
	for _, s := range steps {
		if !t.Run(s.name, s.run) {
			t.FailNow()
		}
	}
}

func (h *installation) podsWait(t *testing.T) {
	eventually(t, time.Minute, "the waiting message", func() error {
		got, _, err := shared.Kubectl(t.Context(), "", "get", "pods", "-n", h.namespace, "-o=jsonpath={.items[*].status.containerStatuses[*].state.waiting.message}")
		if err != nil || !strings.Contains(got, `secret "serving"`) {
			return errors.Join(fmt.Errorf("got %q", got), err)
		}
		return nil
	})
}

func (h *installation) waitingPodGoes(t *testing.T) {
	name := h.podNames(t)[0]
	kubectl(t, "delete", "pod", "-n", h.namespace, name, "--wait", "--timeout=2m")
	if pid := shared.PodPID(h.namespace, name); pid != 0 {
		t.Errorf("process: got %d of a pod that never started", pid)
	}
}

func (h *installation) podsBecomeReady(t *testing.T) {
	apply(t, h.manifest(issued))
	kubectl(t, "wait", "-n", h.namespace, "certificate/serving", "--for=condition=Ready", "--timeout=2m")
	kubectl(t, "rollout", "status", "-n", h.namespace, "deployment/hook", "--timeout=2m")
}

func (h *installation) processIsServiceAccount(t *testing.T) {
	eventually(t, time.Minute, "the name in the log", func() error {
		log, err := shared.PodLog(h.podNames(t)[0])
		if err != nil || !strings.Contains(log, "I am system:serviceaccount:"+h.namespace+":hook\n") {
			return errors.Join(fmt.Errorf("got %q", log), err)
		}
		return nil
	})
}

func (h *installation) webhookIsCalled(t *testing.T) {
	before := shared.Proxy().Connections(network.AllPods)
	eventually(t, time.Minute, "a write through the webhook", func() error { return h.write(t.Context(), "let-through", "") })
	eventually(t, time.Minute, "the webhook's refusal", func() error { // whose timeout is short
		err := h.write(t.Context(), "not-let-through", "refuse=yes")
		if err == nil {
			t.Fatal("a write to refuse was let through")
		}
		if !strings.Contains(err.Error(), "refused by hook-") {
			return err
		}
		return nil
	})
	if after := shared.Proxy().Connections(network.AllPods); after <= before {
		t.Errorf("connections through the proxy: got %d, had %d before", after, before)
	}
}

// write creates a ConfigMap by a server-side dry run, which calls the webhook
// and leaves nothing.
func (h *installation) write(ctx context.Context, name, label string) error {
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\n", name, h.hooked)
	if key, value, ok := strings.Cut(label, "="); ok {
		manifest = strings.Replace(manifest, "}", fmt.Sprintf(", labels: {%s: %q}}", key, value), 1)
	}
	_, _, err := shared.KubectlStdin(ctx, strings.NewReader(manifest), "", "create", "--dry-run=server", "-f", "-")
	return err
}

func (h *installation) networkFails(t *testing.T) {
	defer shared.Proxy().Allow(network.AllPods)
	for name, fail := range map[string]func(string){"refused": shared.Proxy().Refuse, "blackholed": shared.Proxy().Blackhole} {
		fail(network.AllPods)
		if err := h.write(t.Context(), name, ""); err == nil {
			t.Errorf("a write with the pods %s: got none, want an error", name)
		}
		shared.Proxy().Allow(network.AllPods)
	}
	eventually(t, time.Minute, "a write with the network back", func() error { return h.write(t.Context(), "back", "") })
}

func (h *installation) secretArrives(t *testing.T) {
	note := "https://" + net.JoinHostPort(h.podAddress(t, h.podNames(t)[0]), "9443") + "/note"
	if got, err := body(t, note); got != "first" {
		t.Fatalf("the note: got %q (%v), want %q", got, err, "first")
	}
	kubectl(t, "patch", "secret", "-n", h.namespace, "note", "-p", `{"stringData":{"text":"second"}}`)
	eventually(t, time.Minute, "the second note", func() error {
		if got, err := body(t, note); got != "second" {
			return errors.Join(fmt.Errorf("got %q", got), err)
		}
		return nil
	})
}

func (h *installation) readinessFollows(t *testing.T) {
	pod := "pod/" + h.podNames(t)[0]
	kubectl(t, "patch", "configmap", "-n", h.namespace, "settings", "-p", `{"data":{"ready":"false"}}`)
	kubectl(t, "wait", "-n", h.namespace, pod, "--for=condition=Ready=false", "--timeout=2m")
	kubectl(t, "patch", "configmap", "-n", h.namespace, "settings", "-p", `{"data":{"ready":"true"}}`)
	kubectl(t, "rollout", "status", "-n", h.namespace, "deployment/hook", "--timeout=2m")
}

func (h *installation) killedRestarts(t *testing.T) {
	name := h.podNames(t)[0]
	before := shared.PodPID(h.namespace, name)
	if err := shared.KillPod(t.Context(), h.namespace, name); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the restart", func() error {
		got := kubectl(t, "get", "pod", "-n", h.namespace, name, "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready} {.status.containerStatuses[0].lastState.terminated.exitCode}")
		if got != "1 true 137" {
			return fmt.Errorf("restarts, readiness and exit code: got %q", got)
		}
		return nil
	})
	if after := shared.PodPID(h.namespace, name); after == 0 || after == before || alive(before) {
		t.Errorf("processes: got %d after %d", after, before)
	}
}

// readinessComesBack after a write such as the node controller's.
func (h *installation) readinessComesBack(t *testing.T) {
	name := h.podNames(t)[0]
	kubectl(t, "patch", "pod", "-n", h.namespace, name, "--subresource=status", "--type=strategic",
		"-p", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady"}]}}`)
	eventually(t, time.Minute, "the pod to be ready again", func() error {
		got, _, err := shared.Kubectl(t.Context(), "", "get", "pod", "-n", h.namespace, name, `-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err != nil || got != "True" {
			return errors.Join(fmt.Errorf("got %q", got), err)
		}
		return nil
	})
}

func (h *installation) deletedEndsGracefully(t *testing.T) {
	name := h.podNames(t)[0]
	pid := shared.PodPID(h.namespace, name)
	kubectl(t, "delete", "pod", "-n", h.namespace, name, "--wait", "--timeout=2m")
	if alive(pid) {
		t.Errorf("process %d lives after its pod is gone", pid)
	}
	if log, err := shared.PodLog(name); !strings.Contains(log, "goodbye") {
		t.Errorf("log: got %q (%v), want a goodbye", log, err)
	}
	kubectl(t, "rollout", "status", "-n", h.namespace, "deployment/hook", "--timeout=2m")
}

func (h *installation) podNames(t *testing.T) []string {
	t.Helper()
	names := strings.Fields(kubectl(t, "get", "pods", "-n", h.namespace, "-o=jsonpath={.items[*].metadata.name}"))
	if len(names) == 0 {
		t.Fatal("there are no pods")
	}
	return names
}

func (h *installation) podAddress(t *testing.T, name string) string {
	t.Helper()
	address, err := shared.PodAddress(kubectl(t, "get", "pod", "-n", h.namespace, name, "-o=jsonpath={.status.podIP}"))
	if err != nil {
		t.Fatal(err)
	}
	return address
}
