package controller_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ballast/e2e/hooked"
	"ballast/planner/config"
	"ballast/planner/controller/gather"
	"ballast/planner/cycle"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/standing"
	"ballast/planner/diff"
	"ballast/planner/discover"
	"ballast/planner/installation"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
	"ballast/planner/plan/probing"
	"ballast/planner/poll"
	"ballast/planner/probe"
	"ballast/planner/replay/instant"
	"ballast/planner/sim"
	"ballast/planner/store"
)

// probeSite is a fleet on a real API server with the real webhook, as a planner of the shipped rights sees it.
type probeSite struct {
	*hooked.Site
	*testing.T
	planner client.Client
	store   *store.Store
	in      input.Inputs // of a planner that has adopted the fleet
}

func startProbeSite(t *testing.T) *probeSite {
	t.Helper()
	s := &probeSite{Site: hooked.Start(t, hooked.Options{}), T: t, in: adopted(3, 2, 1)}
	s.planner = s.Prober(probe.Warnings{})
	s.store = store.New(store.Options{Client: s.planner, Reader: s.planner, Namespace: hooked.Namespace, Plan: hooked.PlanConfigMap, History: "ballast-history",
		Key: store.KeyName(hooked.PlanConfigMap)})
	s.must(s.store.Unseal(t.Context())) // who knows the plan's MAC is told whose writes were put back
	labels := map[string]string{"app": "controller"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "application-controller", Image: "argocd", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: plan.EnvReplicas, Value: "3"}}}}}}
	s.must(s.Admin.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "argocd-application-controller"},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}))
	for _, secret := range s.in.Discovered.Secrets {
		s.must(s.Admin.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: secret.Name, Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data:       map[string][]byte{"name": []byte(secret.Name), "server": []byte(secret.Server), "config": []byte("canary")},
		}))
	}
	s.writes()
	return s
}

func (s *probeSite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// writes writes the plan in force.
func (s *probeSite) writes() {
	s.Helper()
	base, err := s.store.Read(s.Context())
	s.must(err)
	written, err := s.store.WritePlan(s.Context(), base, *s.in.InForce, 0, configmap.Meta{})
	s.must(err)
	s.in.InForce = written.Document.Plan
	hooked.Eventually(s, "a webhook that knows the plan", func() bool { return s.Source.State().Revision() == s.in.InForce.Revision })
}

// adopted is a fleet of those loads after its first cycle, as Secrets and workload stand then.
func adopted(loads ...float64) input.Inputs {
	in := input.Inputs{Now: epoch, Config: sim.Config(), PlannerUser: sim.PlannerUser, Workload: sim.Workload(), Discovered: discover.Input{Namespace: "argocd"},
		Fetched: []poll.Fetched{{Metric: "apps"}}}
	for i, load := range loads {
		name := fmt.Sprintf("c%03d", i)
		in.Discovered.Secrets = append(in.Discovered.Secrets, sim.Secret(name))
		sim.SetLoad(&in.Fetched[0], name, load)
	}
	out := cycle.Run(in)
	next := out.Next.Clone()
	next.Revision++
	in.Memory, in.InForce = out.Memory, &next
	due := diff.Between(plan.NewView(next.Clone(), out.Pins), standing.Seen(next.Clusters, out.Fleet, out.Memory.Known, in.Workload), diff.Options{})
	instant.Do(due.Steps, &in.Workload, in.Discovered.Secrets)
	return in
}

// asks probes as a cycle does, and gives what people are told, by the webhook's short name, and whether all is held.
func (s *probeSite) asks() (unheld []string, holds bool) {
	s.Helper()
	in, found := s.in, probe.Ask(s.Context(), s.planner, gather.Held(s.in))
	if found.Asked == 0 {
		return []string{"nothing was asked"}, false
	}
	holds = len(found.Unheld) == 0
	in.Enforcement, in.Unheld = &holds, found.Unheld
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
	return unheld, holds
}

// TestTheShippedWebhooks runs every case against one API server under them, one after another.
func TestTheShippedWebhooks(t *testing.T) {
	s := startProbeSite(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *probeSite)
	}{
		{"a probe comes on new connections", comesOnNewConnections},
		{"whose write was put back is told", tellsWhoseWriteWasPutBack},
		{"a changed configuration is found", findsAChangedConfiguration},
		{"who leads the webhook's calls away answers nothing", answersNothing},
		{"where cluster Secrets wait for the webhook the planner's do not", waitsForNoWebhook},
		{"each webhook that is not there is found", findsEachThatIsNotThere},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := *s
			of.T = t
			test.run(t, &of)
		})
	}
}

// tellsWhoseWriteWasPutBack has a person write another shard, which the webhook puts back, and the planner hear of it.
func tellsWhoseWriteWasPutBack(t *testing.T, s *probeSite) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: s.in.Discovered.Secrets[0].Name}}
	s.must(s.Admin.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"shard":"77"}}`))))
	hooked.Eventually(t, "a webhook tells of the write", func() bool {
		found := probe.Ask(t.Context(), s.planner, gather.Held(s.in))
		told := probing.Together(found.PutBack)
		if told == nil || len(told.Users) != 1 {
			return false
		}
		u := told.Users[0]
		return u.User != "" && u.PutBack == 1 && u.Refused == 0
	})
}

// bringsTimes brings times that JSON does not have into the workload, or its status.
func (s *probeSite) bringsTimes(subresource string) {
	s.Helper()
	const year10000 = `"9999-12-31T23:59:59-12:00"`
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: hooked.Namespace, Name: "argocd-application-controller"}}
	var err error
	if subresource == "" {
		err = s.Admin.Patch(s.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"creationTimestamp":`+year10000+`}}},`+
			`"status":{"conditions":[{"type":"x","status":"True","lastTransitionTime":`+year10000+`}]}}`)))
	} else {
		err = s.Admin.SubResource(subresource).Patch(s.Context(), set, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"creationTimestamp":null}}},`+
			`"status":{"conditions":[{"type":"x","status":"True","lastTransitionTime":`+year10000+`}]}}`)))
	}
	s.must(err)
}

// findsEachThatIsNotThere breaks the webhooks one by one.
func findsEachThatIsNotThere(t *testing.T, s *probeSite) {
	comes := func(t *testing.T, want []string) {
		t.Helper()
		hooked.Eventually(t, fmt.Sprintf("%q", want), func() bool {
			unheld, holds := s.asks()
			return cmp.Equal(want, unheld) && holds == (len(want) == 0)
		})
	}
	for _, sub := range []string{"", "status"} { // a workload that the API server takes no usual patch of is asked about all the same
		s.bringsTimes(sub)
	}
	before := s.versions()
	comes(t, nil)
	s.in.Workload.EnvReplicas = ptr.To("3")
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
			stood := s.breaks(test.change)
			mends := sync.OnceFunc(func() { s.mends(stood) })
			defer mends() // whatever comes, the next case finds all of them
			comes(t, test.want)
			mends()
			comes(t, nil)
		})
	}
	t.Run("where the replicas are people's", func(t *testing.T) {
		s.in.InForce.FreeReplicas = true
		s.in.Config.Partition.Replicas = &config.Replicas{Workload: true}
		s.writes()
		comes(t, nil)
		s.Webhooks(without("controllers"))
		comes(t, []string{"controllers"})
	})
	t.Run("where the workload opted out", func(t *testing.T) {
		s.in.Workload.Unmanaged = true
		comes(t, nil) // nobody asks controllers., which is broken
		s.Webhooks(without("clusters"))
		comes(t, []string{"clusters"})
	})
	t.Run("where nothing but the plan is to be held", func(t *testing.T) {
		for i := range s.in.Discovered.Secrets {
			s.in.Discovered.Secrets[i].Unmanaged = true
		}
		comes(t, nil)
		s.Webhooks(without("plan"))
		comes(t, []string{"plan"})
	})
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		t.Errorf("a probe changed something (-before +after):\n%s", diff)
	}
}

// comesOnNewConnections: writes are enforced over connections that the API server has kept, while no webhook can be
// reached any more. One probe finds that, although it is given such a connection first.
func comesOnNewConnections(t *testing.T, s *probeSite) {
	s.Refuse(true) // after the writes that made the fleet
	defer s.Refuse(false)
	if got := s.scaled(); got != "3" || s.Connections() == 0 {
		t.Fatalf("a person's write over one of %d connections that were kept is answered with %s replicas, want the plan's 3", s.Connections(), got)
	}
	unheld, holds := s.asks()
	if diff := cmp.Diff([]string{"clusters", "controllers", "scale", "plan"}, unheld); diff != "" || holds {
		t.Errorf("all is held: %t, webhooks that cannot be reached (-want +got):\n%s", holds, diff)
	}
	s.Refuse(false)
	hooked.Eventually(t, "the webhook holds again", func() bool { unheld, holds := s.asks(); return len(unheld) == 0 && holds })
	before := s.Counter("apiserver_admission_webhook_fail_open_count{name=\"controllers.ballast.argoproj.io\",type=\"admit\"}")
	stood := s.breaks(without("controllers"))
	defer s.mends(stood)
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

// breaks changes how the API server calls the webhooks, and answers how it did.
func (s *probeSite) breaks(change func(*admissionregistration.MutatingWebhook)) (stood map[string]admissionregistration.WebhookClientConfig) {
	s.Helper()
	stood = map[string]admissionregistration.WebhookClientConfig{}
	s.Webhooks(func(w *admissionregistration.MutatingWebhook) {
		stood[w.Name] = *w.ClientConfig.DeepCopy()
		change(w)
	})
	return stood
}

func (s *probeSite) mends(stood map[string]admissionregistration.WebhookClientConfig) {
	s.Helper()
	s.Webhooks(func(w *admissionregistration.MutatingWebhook) { w.ClientConfig = stood[w.Name] })
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

// served is a reader that shows a webhook configuration as it is shipped, with the Service that envtest calls by a URL and the timeout.
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
			if *w.TimeoutSeconds == hooked.Timeout {
				w.TimeoutSeconds = ptr.To(int32(2))
			}
		}
		return nil
	}})
}

// findsAChangedConfiguration by the shipped rights alone, with the API server's own defaults.
func findsAChangedConfiguration(t *testing.T, s *probeSite) {
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
