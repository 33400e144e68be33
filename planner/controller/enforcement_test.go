package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/hooked"
	"ballast/planner/config"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/probe"
	"ballast/planner/sim"
	"ballast/planner/store"
	"ballast/planner/telemetry"
)

// TestTheProbeAsksForNoReplicasThatAreHeldNoMore: the webhook lets them pass where no planner ended a stop in time, and the next leader
// must not take it for broken.
func TestTheProbeAsksForNoReplicasThatAreHeldNoMore(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stopped := plan.Plan{Mode: plan.Enforce, Rollout: &plan.Rollout{Mode: plan.ModeX0Y, Stage: plan.Draining, Since: since}}
	runs := stopped
	runs.Replicas = 2
	for name, test := range map[string]struct {
		plan  plan.Plan
		after time.Duration
		free  bool
	}{
		"a stop":                     {stopped, plan.StopHeld, false},
		"one that nobody ended":      {stopped, plan.StopHeld + time.Second, true},
		"replicas that came back":    {runs, time.Hour, false},
		"a stop that begins in time": {stopped, -time.Hour, false},
	} {
		got := held(input.Inputs{Now: since.Add(test.after), InForce: &test.plan, Config: config.Default()}).View.Plan.FreeReplicas
		if got != test.free || test.plan.FreeReplicas {
			t.Errorf("%s: replicas are asked for: %t, want %t", name, !got, !test.free)
		}
	}
}

// probeSite is a fleet on a real API server with the real webhook, as a planner of the shipped rights sees it.
type probeSite struct {
	*hooked.Site
	*testing.T
	planner client.Client
	store   *store.Store
	w       *world
	loop    *Loop
	metrics *telemetry.Metrics
}

func startProbeSite(t *testing.T) *probeSite {
	t.Helper()
	s := &probeSite{Site: hooked.Start(t, hooked.Options{}), T: t, w: newWorld(3, 2, 1), metrics: telemetry.NewMetrics(prometheus.NewRegistry())}
	s.planner = s.Prober(probe.Warnings{})
	s.store = store.New(store.Options{Client: s.planner, Reader: s.planner, Namespace: hooked.Namespace, Plan: hooked.PlanConfigMap, History: "ballast-history"})
	s.loop = NewLoop(Options{Metrics: s.metrics, Log: logr.Discard(), Clock: clock.RealClock{},
		Probe: func(ctx context.Context, h probe.Held) probe.Result { return probe.Ask(ctx, s.planner, h) }})
	labels := map[string]string{"app": "controller"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "application-controller", Image: "argocd", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: plan.EnvReplicas, Value: "3"}}}}}}
	s.must(s.Admin.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "argocd-application-controller"},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}))
	for _, secret := range s.w.in.Discovered.Secrets {
		s.must(s.Admin.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: secret.Name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data:       map[string][]byte{"name": []byte(secret.Name), "server": []byte(secret.Server), "config": []byte("canary")},
		}))
	}
	s.w.cycle()
	s.writes()
	return s
}

func (s *probeSite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// writes writes the world's plan.
func (s *probeSite) writes() {
	s.Helper()
	base, err := s.store.Read(s.Context())
	s.must(err)
	written, err := s.store.WritePlan(s.Context(), base, *s.w.in.InForce, 0, store.Meta{})
	s.must(err)
	s.w.in.InForce = written.Document.Plan
}

// asks probes as a cycle does, and gives what people are told, by the webhook's short name; gauge is -1 where it is absent.
func (s *probeSite) asks() (unheld []string, gauge float64) {
	s.Helper()
	s.loop.asks.probed = probed{}
	in := s.w.in
	in.Enforcement, in.Unheld = s.loop.asks.enforcement(s.Context(), in, 0)
	if gauge = -1; testutil.CollectAndCount(s.metrics.Enforcement) > 0 {
		gauge = testutil.ToFloat64(s.metrics.Enforcement)
	}
	for _, p := range cycle.Run(in).Problems {
		if strings.Contains(p.Message, "canary") {
			s.Errorf("a Secret's data is told: %s", p.Message)
		}
		if p.Kind != "EnforcementDown" {
			continue
		}
		for _, webhook := range []string{"clusters", "controllers", "scale", "plan"} {
			if strings.Contains(p.Message, webhook+".ballast.argoproj.io") {
				unheld = append(unheld, webhook)
			}
		}
	}
	return unheld, gauge
}

// TestTheProbeFindsEachWebhookThatIsNotThere breaks the webhooks one by one.
func TestTheProbeFindsEachWebhookThatIsNotThere(t *testing.T) {
	s := startProbeSite(t)
	comes := func(t *testing.T, want []string, wantGauge float64) {
		t.Helper()
		var unheld []string
		var gauge float64
		hooked.Eventually(t, fmt.Sprintf("%q, gauge %v", want, wantGauge), func() bool {
			unheld, gauge = s.asks()
			return cmp.Equal(want, unheld) && gauge == wantGauge
		})
	}
	before := s.versions()
	comes(t, nil, 1)
	s.w.in.Workload.EnvReplicas = ptr.To("3")
	for name, test := range map[string]struct {
		change func(*admissionregistration.MutatingWebhook)
		want   []string
	}{
		"clusters. without a caBundle":    {without("clusters"), []string{"clusters"}},
		"controllers. without a caBundle": {without("controllers"), []string{"controllers"}},
		"scale. without a caBundle":       {without("scale"), []string{"scale"}},
		"plan. without a caBundle":        {without("plan"), []string{"plan"}},
		"no endpoints": {func(w *admissionregistration.MutatingWebhook) {
			w.ClientConfig.URL = ptr.To("https://127.0.0.1:1/" + strings.SplitN(w.Name, ".", 2)[0])
		}, []string{"clusters", "controllers", "scale", "plan"}},
	} {
		t.Run(name, func(t *testing.T) {
			stood := map[string]admissionregistration.WebhookClientConfig{}
			s.Webhooks(func(w *admissionregistration.MutatingWebhook) {
				stood[w.Name] = *w.ClientConfig.DeepCopy()
				test.change(w)
			})
			comes(t, test.want, 0)
			s.Webhooks(func(w *admissionregistration.MutatingWebhook) { w.ClientConfig = stood[w.Name] })
			comes(t, nil, 1)
		})
	}
	t.Run("where the replicas are people's", func(t *testing.T) {
		s.w.in.InForce.FreeReplicas = true
		s.w.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
		s.writes()
		comes(t, nil, 1)
		s.Webhooks(without("controllers"))
		comes(t, []string{"controllers"}, 0)
	})
	t.Run("where the workload opted out", func(t *testing.T) {
		s.w.in.Workload.Unmanaged = true
		comes(t, nil, 1) // nobody asks controllers., which is broken
		s.Webhooks(without("clusters"))
		comes(t, []string{"clusters"}, 0)
	})
	t.Run("where nothing but the plan is to be held", func(t *testing.T) {
		for i := range s.w.in.Discovered.Secrets {
			s.w.in.Discovered.Secrets[i].Unmanaged = true
		}
		comes(t, nil, 1)
		s.Webhooks(without("plan"))
		comes(t, []string{"plan"}, 0)
	})
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		t.Errorf("a probe changed something (-before +after):\n%s", diff)
	}
}

// TestTheProbeComesOnNewConnections: writes are enforced over connections that the API server has kept, while no webhook can be
// reached any more. One probe finds that, although it is given such a connection first.
func TestTheProbeComesOnNewConnections(t *testing.T) {
	s := startProbeSite(t)
	s.Refuse(true) // after the writes that made the fleet
	if got := s.scaled(); got != "3" || s.Connections() == 0 {
		t.Fatalf("a person's write over one of %d connections that were kept is answered with %s replicas, want the plan's 3", s.Connections(), got)
	}
	unheld, gauge := s.asks()
	if diff := cmp.Diff([]string{"clusters", "controllers", "scale", "plan"}, unheld); diff != "" || gauge != 0 {
		t.Errorf("gauge %v, webhooks that cannot be reached (-want +got):\n%s", gauge, diff)
	}
	s.Refuse(false)
	hooked.Eventually(t, "the webhook holds again", func() bool { unheld, gauge := s.asks(); return len(unheld) == 0 && gauge == 1 })
	before := s.Counter("apiserver_admission_webhook_fail_open_count{name=\"controllers.ballast.argoproj.io\",type=\"admit\"}")
	s.Webhooks(without("controllers"))
	hooked.Eventually(t, "the API server counts what it let pass", func() bool {
		s.scaled()
		return s.Counter("apiserver_admission_webhook_fail_open_count{name=\"controllers.ballast.argoproj.io\",type=\"admit\"}") > before
	})
}

// scaled is what a person's wrong number of replicas becomes, by a dry-run.
func (s *probeSite) scaled() string {
	s.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "argocd-application-controller"}}
	s.must(s.Admin.Patch(s.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)), client.DryRunAll))
	return strconv.Itoa(int(*set.Spec.Replicas))
}

// without takes the caBundle from a webhook.
func without(name string) func(*admissionregistration.MutatingWebhook) {
	return func(w *admissionregistration.MutatingWebhook) {
		if strings.HasPrefix(w.Name, name+".") {
			w.ClientConfig.CABundle = nil
		}
	}
}

func (s *probeSite) versions() map[string]string {
	s.Helper()
	versions := map[string]string{}
	var secrets corev1.SecretList
	s.must(s.Admin.List(s.Context(), &secrets, client.InNamespace(hooked.Namespace), client.HasLabels{plan.SecretTypeLabel}))
	for _, secret := range secrets.Items {
		versions[secret.Name] = secret.ResourceVersion
	}
	var set appsv1.StatefulSet
	s.must(s.Admin.Get(s.Context(), client.ObjectKey{Namespace: hooked.Namespace, Name: "argocd-application-controller"}, &set))
	versions["the workload"] = set.ResourceVersion
	return versions
}

// TestAProbeIsToldWhatIsHeld: the Secrets that may be written, and where each is held, by the pins of both sources.
func TestAProbeIsToldWhatIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		want   []string
	}{
		"all of it":               {func(*world) {}, []string{"c000 0", "c001 0", "c002 0"}},
		"a fleet without Secrets": {func(w *world) { w.in.Discovered.Secrets = nil }, nil},
		"Secrets that cannot be changed": {func(w *world) {
			w.in.Discovered.Secrets[0].Immutable, w.in.Discovered.Secrets[1].Unmanaged = true, true
		}, []string{"c002 0"}},
		"a Secret that cannot be written": {func(w *world) { w.in.Barred = map[string]string{"c000": "it is full"} }, []string{"c001 0", "c002 0"}},
		"a Secret without a shard": {func(w *world) {
			w.in.Discovered.Secrets[0].Shard = discover.ShardValue{}
		}, []string{"c001 0", "c002 0", "c000 0"}},
		"a Secret that no row names": {func(w *world) { w.add("new", 1) }, []string{"c000 0", "c001 0", "c002 0", "new unplanned"}},
		"pins of both sources": {func(w *world) {
			w.in.Pins, w.in.Discovered.Secrets[1].Pin = plan.Pins{"c000": 2}, "1"
		}, []string{"c000 2 pinned", "c001 1 pinned", "c002 0"}},
		"a twin that is older than the one that leads": {func(w *world) {
			first, second := &w.in.Discovered.Secrets[0], &w.in.Discovered.Secrets[1]
			second.Server, second.Pin, first.Created = first.Server, "1", epoch
			w.in.Memory.Servers = map[string]string{"c000": first.Server, "c001": sim.Server("c001")}
		}, []string{"c000 0", "c001 0", "c002 0"}},
		"two pins of one cluster": {func(w *world) {
			w.in.Pins, w.in.Discovered.Secrets[0].Pin = plan.Pins{"c000": 2}, "1"
		}, []string{"c000 2 pinned", "c001 0", "c002 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, 1, 1)
			w.cycle()
			for name, row := range w.in.InForce.Clusters {
				row.Replica = 0
				w.in.InForce.Clusters[name] = row
			}
			test.change(w)
			h := held(w.in)
			var got []string
			for _, name := range h.Secrets {
				said := name + " unplanned"
				if replica, _, planned := h.View.Effective(name); planned {
					said = name + " " + strconv.Itoa(replica)
				}
				if _, pinned := h.View.Pin(name); pinned {
					said += " pinned"
				}
				got = append(got, said)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Secrets (-want +got):\n%s", diff)
			}
			want := probe.Held{Workload: w.in.Workload, ConfigMap: "ballast-plan", Now: epoch}
			h.View, h.Secrets = nil, nil
			if diff := cmp.Diff(want, h); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnAnswerIsBelievedForAsLongAsItMay: one that failed is asked for again at once.
func TestAnAnswerIsBelievedForAsLongAsItMay(t *testing.T) {
	w := newWorld(1)
	w.cycle()
	asked, answer, time := 0, probe.Result{Asked: 2}, clocktesting.NewFakeClock(epoch)
	metrics := telemetry.NewMetrics(prometheus.NewRegistry())
	l := NewLoop(Options{Metrics: metrics, Log: logr.Discard(), Clock: time, Probe: func(context.Context, probe.Held) probe.Result { asked++; return answer }})
	says := func(want string) {
		t.Helper()
		holds, unheld := l.asks.enforcement(t.Context(), w.in, probeEvery)
		said := "unknown"
		if holds != nil {
			said = strconv.FormatBool(*holds)
		}
		if got := fmt.Sprintf("%s %v, asked %d times, %d gauges", said, unheld, asked, testutil.CollectAndCount(metrics.Enforcement)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	says("true [], asked 1 times, 1 gauges")
	time.Step(probeEvery - 1)
	says("true [], asked 1 times, 1 gauges")
	answer.Unheld = []string{"x is away", "y is away"}
	time.Step(1)
	says("false [x is away y is away], asked 2 times, 1 gauges")
	says("false [x is away y is away], asked 3 times, 1 gauges")
	answer = probe.Result{}
	says("unknown [], asked 4 times, 0 gauges")
	answer.Asked = 1
	says("true [], asked 5 times, 1 gauges")
	w.in.BreakGlass = true
	says("unknown [], asked 5 times, 0 gauges")
}

// TestWhatIsInstalledIsTold to people and by the metric, and stops nothing.
func TestWhatIsInstalledIsTold(t *testing.T) {
	changed := installation.Finding{Kind: installation.Changed, Subject: "plan.ballast.argoproj.io rules", Message: "the rules differ"}
	old := installation.Finding{Kind: installation.TooOld, Subject: "Kubernetes", Message: "upgrade Kubernetes"}
	for name, test := range map[string]struct {
		seen     installation.Seen
		err      error
		gauge    float64 // -1: absent
		problems []string
	}{
		"as shipped":            {installation.Seen{Matches: ptr.To(true)}, nil, 1, nil},
		"changed":               {installation.Seen{Matches: ptr.To(false), Findings: []installation.Finding{changed}}, nil, 0, []string{"rollout/WebhookConfigurationChanged/plan.ballast.argoproj.io rules: the rules differ"}},
		"unknown":               {installation.Seen{Findings: []installation.Finding{old}}, nil, -1, []string{"rollout/KubernetesTooOld/Kubernetes: upgrade Kubernetes"}},
		"known, and then asked": {installation.Seen{Matches: ptr.To(true)}, errors.New("the API server is away"), 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, 2, 1)
			w.cycle()
			metrics := telemetry.NewMetrics(prometheus.NewRegistry())
			var asked installation.Names
			l := NewLoop(Options{Metrics: metrics, Log: logr.Discard(), Clock: clock.RealClock{}, Installed: func(_ context.Context, n installation.Names) (installation.Seen, error) {
				asked = n
				return test.seen, test.err
			}})
			before := cycle.Run(w.in)
			w.in.Installation = l.asks.installation(t.Context(), w.in)
			after := cycle.Run(w.in)
			gauge := -1.0
			if testutil.CollectAndCount(metrics.Configured) > 0 {
				gauge = testutil.ToFloat64(metrics.Configured)
			}
			var told []string
			for _, p := range after.Problems {
				if p.Keeps {
					t.Errorf("%s keeps the plan from changing", p.Kind)
				}
				told = append(told, string(p.Phase)+"/"+p.Kind+"/"+p.Subject+": "+p.Message)
			}
			if diff := cmp.Diff(test.problems, told); diff != "" || gauge != test.gauge {
				t.Errorf("gauge %v, want %v; problems (-want +got):\n%s", gauge, test.gauge, diff)
			}
			if diff := cmp.Diff(before.Next, after.Next); diff != "" {
				t.Errorf("the plan (-without +with):\n%s", diff)
			}
			want := installation.Names{Namespace: w.in.Workload.Namespace, Workload: w.in.Workload.Name, Plan: "ballast-plan"}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// served is a reader that shows a webhook configuration as it is shipped, with the Service that envtest calls by a URL.
func served(c client.WithWatch) client.Reader {
	return interceptor.NewClient(c, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		err := c.Get(ctx, key, o, options...)
		configuration, ok := o.(*admissionregistration.MutatingWebhookConfiguration)
		if err != nil || !ok {
			return err
		}
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			w.ClientConfig = admissionregistration.WebhookClientConfig{Service: &admissionregistration.ServiceReference{
				Namespace: hooked.Namespace, Name: "ballast-webhook", Path: ptr.To("/" + strings.SplitN(w.Name, ".", 2)[0])}}
		}
		return nil
	}})
}

// TestAChangedWebhookConfigurationIsFoundOnARealAPIServer, by the shipped rights alone, with the API server's own defaults.
func TestAChangedWebhookConfigurationIsFoundOnARealAPIServer(t *testing.T) {
	s := hooked.Start(t, hooked.Options{})
	as := func(user string) string {
		t.Helper()
		l := &installation.Looker{Reader: served(s.As(user)), Clock: clock.RealClock{}, Version: func(context.Context) (string, error) { return "v1.36.1", nil }}
		seen, err := l.Look(t.Context(), installation.Names{Namespace: hooked.Namespace, Workload: "argocd-application-controller", Plan: hooked.PlanConfigMap})
		if err != nil {
			t.Fatal(err)
		}
		said := "unknown"
		if seen.Matches != nil {
			said = strconv.FormatBool(*seen.Matches)
		}
		for _, f := range seen.Findings {
			said += ", " + string(f.Kind) + " " + f.Subject
		}
		return said
	}
	says := func(want string) {
		t.Helper()
		if got := as(hooked.Planner); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	says("true")
	var stood admissionregistration.MutatingWebhook
	s.Webhooks(func(w *admissionregistration.MutatingWebhook) {
		if strings.HasPrefix(w.Name, "plan.") {
			stood = *w.DeepCopy()
			w.MatchConditions, w.NamespaceSelector, w.TimeoutSeconds = nil, nil, nil // as the API server fills them in
		}
	})
	says("false, WebhookConfigurationChanged plan.ballast.argoproj.io namespaceSelector, " +
		"WebhookConfigurationChanged plan.ballast.argoproj.io matchConditions, WebhookConfigurationChanged plan.ballast.argoproj.io timeoutSeconds")
	s.Webhooks(func(w *admissionregistration.MutatingWebhook) {
		if w.Name == stood.Name {
			*w = stood
		}
	})
	says("true")
	shipped, err := installation.Shipped(installation.Names{Namespace: hooked.Namespace, Workload: "argocd-application-controller", Plan: hooked.PlanConfigMap})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := as("system:serviceaccount:argocd:nobody"), "unknown, WebhookConfigurationUnread "+shipped.Name; got != want {
		t.Errorf("without the right it says %s, want %s", got, want)
	}
}
