package webhook

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/site"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

const (
	memoryClusters = 7500
	ownLimit       = 26 << 10 // KiB, of the process itself: 22.5 MiB on a quiet machine, 24.2 where four others share its two cores and garbage is collected later
	fileLimit      = 48 << 10 // KiB, of its file: how many of its pages are mapped is the kernel's choice, which takes them back when it needs them
	memoryWrites   = 200
	memoryPlans    = 10
)

// TestTheWebhookIsSmallUnderTheLargestPlan runs the built command against a real API server, with the largest plan that
// fits into a ConfigMap, while that is rewritten and Secrets are written through the webhook.
func TestTheWebhookIsSmallUnderTheLargestPlan(t *testing.T) {
	binary := builtAsShipped(t)
	env := fixture.StartWithWebhook(t)
	planner := rest.CopyConfig(env.Config)
	planner.Impersonate = rest.ImpersonationConfig{UserName: site.PlannerUser, Groups: []string{"system:masters"}}
	admin, asPlanner := clientOf(t, env.Config), clientOf(t, planner)
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := asPlanner.CoreV1().ConfigMaps("argocd").Create(t.Context(), largePlan(t, 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pid := runWebhook(t, binary, fixture.KubeconfigOf(t, env), &env.WebhookInstallOptions).pid
	report := func(when string) {
		t.Logf("%s: resident %.1f MiB, %.1f of them the program's own file, at most %.1f MiB", when, float64(memoryOf(t, pid, "VmRSS"))/1024,
			float64(memoryOf(t, pid, "RssFile"))/1024, float64(memoryOf(t, pid, "VmHWM"))/1024)
	}
	report("with the plan read")
	writeSecrets(t, admin)
	report(fmt.Sprintf("after %d writes of Secrets", memoryWrites))
	for revision := int64(2); revision <= memoryPlans; revision++ {
		if _, err := asPlanner.CoreV1().ConfigMaps("argocd").Update(t.Context(), largePlan(t, revision), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	report(fmt.Sprintf("after %d plans", memoryPlans))
	writeSecrets(t, admin)
	report("at the end")
	file := memoryOf(t, pid, "RssFile")
	if own := memoryOf(t, pid, "VmHWM") - file; own >= ownLimit {
		t.Errorf("%d KiB of its own were resident, want less than %d throughout", own, ownLimit)
	}
	if file >= fileLimit {
		t.Errorf("%d KiB of its file are resident, want less than %d", file, fileLimit)
	}
}

// builtAsShipped builds the command.
func builtAsShipped(t *testing.T) string {
	t.Helper()
	if err := site.DependOnSources(t.Context()); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "ballast")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "ballast/cmd/ballast")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building ballast: %v: %s", err, out)
	}
	return binary
}

func clientOf(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func memoryCluster(i int) string { return fmt.Sprintf("cluster-%075d", i) } // 83 characters

// largePlan is the ConfigMap as the planner writes it.
func largePlan(t *testing.T, revision int64) *corev1.ConfigMap {
	t.Helper()
	p := plan.Plan{
		Revision: revision, Mode: plan.Enforce, PlannerUser: site.PlannerUser, Replicas: 16, ControllerReplicas: 16, MaxReplicas: 16,
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: "argocd", Name: "argocd-application-controller", Container: "application-controller"},
		Clusters: map[string]plan.Row{},
	}
	for i := range memoryClusters {
		p.Clusters[memoryCluster(i)] = plan.Row{Replica: (i + int(revision)) % 10, Load: "0.13"}
	}
	text, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: site.PlanConfigMap, Annotations: map[string]string{
			plan.AnnotationRevision: strconv.FormatInt(revision, 10), plan.AnnotationDigest: plan.Digest(text),
		}},
		Data: map[string]string{plan.KeyPlan: text},
	}
}

// runWebhook runs the command until the test ends, and gives its process when it is ready.
func runWebhook(t *testing.T, binary, kubeconfig string, serving *envtest.WebhookInstallOptions, more ...string) webhookProcess {
	t.Helper()
	metrics, health := fixture.FreePort(t), fixture.FreePort(t)
	var stderr bytes.Buffer
	cmd := exec.Command(binary, append([]string{"webhook", "--namespace=argocd", "--bind-address=" + serving.LocalServingHost, "--port=" + strconv.Itoa(serving.LocalServingPort),
		"--metrics-port=" + metrics, "--health-port=" + health, "--cert-dir=" + serving.LocalServingCertDir, "--lame-duck=0s"}, more...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "KUBECONFIG="+kubeconfig), &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the webhook ended with %v: %s", err, stderr.String())
		}
	})
	p := webhookProcess{cmd.Process.Pid, net.JoinHostPort(serving.LocalServingHost, metrics), net.JoinHostPort(serving.LocalServingHost, health)}
	awaitReady(t, p.health)
	return p
}

// webhookProcess is a webhook that runs by itself, with its plain ports.
type webhookProcess struct {
	pid             int
	metrics, health string
}

// awaitReady waits until the webhook with that health port serves.
func awaitReady(t *testing.T, health string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := site.Poll(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("it is not ready: %s", response.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// writeSecrets creates cluster Secrets of 4 KiB, dry, with a wrong shard: each comes back with that of a plan's row.
func writeSecrets(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for i := range memoryWrites {
		name := memoryCluster(i)
		got, err := client.CoreV1().Secrets("argocd").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data:       map[string][]byte{"name": []byte(name), "server": []byte("https://" + name), "config": bytes.Repeat([]byte("x"), 4<<10), "shard": []byte("15")},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || string(got.Data[plan.ShardKey]) == "15" {
			t.Fatalf("writing Secret %q: shard %q was not put right: %v", name, got.Data[plan.ShardKey], err)
		}
	}
}

// memoryOf is a line of the process's status, in KiB.
func memoryOf(t *testing.T, pid int, field string) int {
	t.Helper()
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(rest, "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("process %d has no %s", pid, field)
	return 0
}
