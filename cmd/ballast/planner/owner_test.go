package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/cmd/ballast/fixture"
	"ballast/e2e/apiserver"
	"ballast/e2e/site"
	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/patchable"
	"ballast/planner/plan"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// planning is a running `ballast planner`.
type planning struct {
	t               *testing.T
	metrics, health string
	end             func() // returns when it has ended

	mu  sync.Mutex
	log []string
}

// startPlanner runs a planner on that API server as the command does, with its own configuration.
func startPlanner(t *testing.T, server *rest.Config, identity, planMap string) *planning {
	t.Helper()
	text := fmt.Sprintf("apiVersion: ballast.argoproj.io/v1alpha1\nkind: PlannerConfig\nplan: {configMap: %s, history: %s-history}\npoll: {prometheus: {url: \"http://127.0.0.1:%s\", timeout: 1s}}\n", planMap, planMap, fixture.FreePort(t))
	return startConfigured(t, server, identity, text, prometheus.NewRegistry())
}

// startConfigured runs a planner by that configuration, with its metrics in that registry.
func startConfigured(t *testing.T, server *rest.Config, identity, text string, registry *prometheus.Registry) *planning {
	t.Helper()
	p := &planning{t: t, metrics: fixture.FreePort(t), health: fixture.FreePort(t)}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	healthPort, bad := strconv.Atoi(p.health)
	metricsPort, worse := strconv.Atoi(p.metrics)
	if err := errors.Join(bad, worse); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	app := &plannerApp{rest: rest.CopyConfig(server), stop: stop, metrics: telemetry.NewMetrics(registry),
		options: &options{config: file, bindAddress: "127.0.0.1", metricsPort: metricsPort, healthPort: healthPort, identity: identity, grace: grace},
		log:     funcr.New(func(_, args string) { p.write(args) }, funcr.Options{})}
	for _, step := range []func() error{app.loadConfig, func() error { return app.findTarget(ctx) }, func() error { return app.assemble(ctx) }} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- app.manager.Start(ctx) }()
	p.end = sync.OnceFunc(func() {
		stop(nil)
		if err := <-ended; err != nil {
			t.Errorf("planner %s ended with %v", identity, err)
		}
	})
	t.Cleanup(p.end)
	return p
}

func (p *planning) write(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, line)
}

func (p *planning) logged(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(strings.Join(p.log, "\n"), text)
}

// asks is what a readiness check answers; empty for a planner that does not listen yet.
func (p *planning) asks(check string) (status int, body string) {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", p.health)+check, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// grace is how long a given-up Lease stays its installation's: long enough for a standby that looks every two seconds,
// on a busy machine too.
const grace = 30 * time.Second

// addController makes Argo CD's namespace and the application-controller in it.
func addController(t *testing.T, c client.Client, replicas int32) {
	t.Helper()
	fixture.MustDo(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}}))
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	fixture.MustDo(t, c.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fixture.ControllerName, Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Image: "argocd",
				Env: []corev1.EnvVar{{Name: plan.EnvReplicas, Value: strconv.Itoa(int(replicas))}}}}}}},
	}))
}

// TestASecondInstallationStandsBy: of two installations on one workload only one plans, the other says who owns it, and
// plans when the first is gone for good.
func TestASecondInstallationStandsBy(t *testing.T) {
	server := apiserver.Start(t)
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	addController(t, c, 2)
	for _, planMap := range []string{"ballast-plan", "other-plan"} { // as each installation's manifests ship it
		fixture.MustDo(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: store.KeyName(planMap)}}))
	}
	planned := func(name string) bool {
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: name}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return !apierrors.IsNotFound(err)
	}

	first := startPlanner(t, server, "planner-a", "ballast-plan")
	fixture.WaitFor(t, "the first installation plans", func() bool { return planned("ballast-plan") })
	second := startPlanner(t, server, "planner-b", "other-plan")
	var refusal string
	fixture.WaitFor(t, "the second installation is not ready, and says why", func() bool {
		_, refusal = second.asks("/readyz/owner")
		return strings.Contains(refusal, `is held by "planner-a_`)
	})
	user := "admin"
	for _, says := range []string{`Lease "argocd/ballast-argocd-application-controller"`, `which plans in ConfigMap "argocd/ballast-plan" as "` + user + `"`,
		`this instance would plan in "argocd/other-plan" as "` + user + `", so it stands by and writes nothing`} {
		if !strings.Contains(refusal, says) {
			t.Errorf("it says %q, without %q", refusal, says)
		}
	}
	if status, _ := second.asks("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("the second installation is as ready as %d", status)
	}
	fixture.WaitFor(t, "the first installation is ready", func() bool { status, _ := first.asks("/readyz"); return status == http.StatusOK })
	for _, port := range []string{first.metrics, first.health} {
		if !fixture.SendsHead(t, net.JoinHostPort("127.0.0.1", port), "GET / HTTP/1.1\r\nHost: a\r\nx: "+strings.Repeat("y", 64<<10)) {
			t.Errorf("port %s took a head of 64 KiB, as whoever reaches the pod may send many", port)
		}
	}
	fixture.WaitFor(t, "the second installation logs it", func() bool { return second.logged("the target is another installation's; standing by") })
	fixture.WaitFor(t, "an event on the workload and on its own plan says so", func() bool {
		return cmp.Equal([]string{"ConfigMap other-plan", "StatefulSet " + fixture.ControllerName}, eventsOf(t, c, "OwnedElsewhere", `is held by "planner-a_`))
	})
	standby := startPlanner(t, server, "planner-c", "ballast-plan")
	fixture.WaitFor(t, "a second replica of the first installation is ready", func() bool { status, _ := standby.asks("/readyz"); return status == http.StatusOK })
	first.end()
	fixture.WaitFor(t, "the first installation goes on with its other replica", func() bool { return standby.logged("leading") })
	if planned("other-plan") || second.logged(`"leading"`) {
		t.Error("the second installation planned, too")
	}

	standby.end()
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: "argocd", Name: site.Lease}
	fixture.MustDo(t, c.Get(t.Context(), key, &lease))
	gone := lease.Spec.RenewTime.Time
	fixture.WaitFor(t, "the second installation plans when the first is gone for good", func() bool { return planned("other-plan") })
	at := time.Now() // the Lease's own AcquireTime is when the attempt began, before the Lease was read and judged
	fixture.MustDo(t, c.Get(t.Context(), key, &lease))
	if at.Before(gone.Add(time.Second+grace)) || !strings.HasPrefix(*lease.Spec.HolderIdentity, "planner-b_") {
		t.Errorf("%s leads from %s on; the first installation went at %s, and its claim lasts a second and %s", *lease.Spec.HolderIdentity, at, gone, grace)
	}
	fixture.WaitFor(t, "it is ready then", func() bool { status, _ := second.asks("/readyz"); return status == http.StatusOK })
}

// eventsOf are the objects with an event of that reason whose note holds that text, sorted.
func eventsOf(t *testing.T, c client.Client, reason, text string) []string {
	t.Helper()
	var list eventsv1.EventList
	fixture.MustDo(t, c.List(t.Context(), &list, client.InNamespace("argocd")))
	about := map[string]bool{}
	for _, e := range list.Items {
		if e.Reason == reason && strings.Contains(e.Note, text) {
			about[e.Regarding.Kind+" "+e.Regarding.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(about))
}

// TestEveryEventPassesTheGate, also one that is not the loop's: what a Lease says is in it.
func TestEveryEventPassesTheGate(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	newEmitter(recorder, config.Default())(discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "controller"}, telemetry.Event{
		Type: corev1.EventTypeWarning, Reason: "OwnedElsewhere", Workload: true,
		Message: "held by \"\x1b[2J\u202eplanner\" of https://u:s3cr3t@host\nand " + strings.Repeat("a", 2000)})
	for range 2 {
		got := <-recorder.Events
		note := strings.TrimPrefix(got, "Warning OwnedElsewhere ")
		if begins := `held by "\u001b[2J\u202eplanner" of https://***@host; and aaa`; !strings.HasPrefix(note, begins) || len(note) > 1000 {
			t.Errorf("%d bytes: %q", len(note), note)
		}
	}
}

// actions keeps the actions of events.
type actions struct{ seen []string }

func (a *actions) Eventf(_, _ runtime.Object, _, _, action, _ string, _ ...any) {
	a.seen = append(a.seen, action)
}

// regarded keeps what events are about.
type regarded struct{ seen []string }

func (r *regarded) Eventf(about, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	o := about.(metav1.Object)
	r.seen = append(r.seen, fmt.Sprint(reason, " on ", about.GetObjectKind().GroupVersionKind().Kind, " ", o.GetNamespace(), "/", o.GetName(), " ", o.GetUID()))
}

// TestAnEventOfASecretIsOnThatAlone: the plan ConfigMap would be flooded by a rollout's.
func TestAnEventOfASecretIsOnThatAlone(t *testing.T) {
	recorder := &regarded{}
	newEmitter(recorder, config.Default())(discover.Workload{Kind: "StatefulSet", Namespace: "argocd", Name: "controller", UID: "w"},
		telemetry.Event{Reason: "ClusterMoved", Secret: telemetry.SecretRef{Name: "prod-eu", UID: "u"}}, telemetry.Event{Reason: "PlanWritten", Workload: true})
	want := []string{"ClusterMoved on Secret argocd/prod-eu u", "PlanWritten on ConfigMap argocd/ballast-plan ", "PlanWritten on StatefulSet argocd/controller w"}
	if diff := cmp.Diff(want, recorder.seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEventsThatDifferAreShownApart: the recorder makes a series of what has the same reason and action, with the first message.
func TestEventsThatDifferAreShownApart(t *testing.T) {
	recorder := &actions{}
	emit := newEmitter(recorder, config.Default())
	for _, message := range []string{"c1 has no owner", "c2 has no owner", "c1 has no owner"} {
		emit(discover.Workload{}, telemetry.Event{Type: corev1.EventTypeWarning, Reason: "Orphaned", Message: message})
	}
	if diff := cmp.Diff([]string{"Plan-bd19f04f", "Plan-ae998ef4", "Plan-bd19f04f"}, recorder.seen); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestNoTimeInTheLeaseKeepsPlannersFromLeading: whoever may write Leases brings times that JSON does not have, which the API server stores
// for whoever brings them. Who reads the Lease by JSON never takes it again.
func TestNoTimeInTheLeaseKeepsPlannersFromLeading(t *testing.T) {
	server := apiserver.Start(t)
	server.ContentType, server.AcceptContentTypes = "", "" // as a pod's own is
	c, err := client.New(server, client.Options{})
	fixture.MustDo(t, err)
	const namespace, name = "default", "ballast-controller"
	cfg := config.Default()
	cfg.Target.Namespace = namespace
	for what, patch := range map[string]string{
		"renewed then":       `{"spec":{"renewTime":"9999-12-31T23:59:59.000000-12:00"}}`,
		"taken then":         `{"spec":{"acquireTime":"9999-12-31T23:59:59.000000-12:00"}}`,
		"written by manager": `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"coordination.k8s.io/v1","time":"9999-12-31T23:59:59-12:00","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`,
	} {
		t.Run(what, func(t *testing.T) {
			app := &plannerApp{rest: server, options: &options{identity: "a", grace: grace}, target: plan.Target{Name: "controller"}, user: "u", log: logr.Discard()}
			owner, err := app.newOwner(cfg)
			fixture.MustDo(t, err)
			record := resourcelock.LeaderElectionRecord{HolderIdentity: owner.Identity(), LeaseDurationSeconds: 15, AcquireTime: metav1.Now(), RenewTime: metav1.Now()}
			fixture.MustDo(t, owner.Create(t.Context(), record))
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			defer func() { fixture.MustDo(t, c.Delete(context.WithoutCancel(t.Context()), lease)) }()
			fixture.MustDo(t, c.Patch(t.Context(), lease.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
			read, _, err := owner.Get(t.Context())
			fixture.MustDo(t, err)
			fixture.MustDo(t, owner.Update(t.Context(), *read))
			fixture.MustDo(t, c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
			if patchable.HoldsBeyondJSON(lease.ManagedFields) || patchable.BeyondJSON(lease.Spec.RenewTime.Time) || patchable.BeyondJSON(lease.Spec.AcquireTime.Time) {
				t.Errorf("what it brought stands: %+v", lease)
			}
		})
	}
}
