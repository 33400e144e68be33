package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ballast/e2e/site"
	"ballast/planner/plan"
	"ballast/planner/store"
	"ballast/webhook"
)

// steer runs a command of ballast's as a person does, and returns what it wrote and its error's text.
func steer(t *testing.T, kubeconfig, stdin string, args ...string) (out, notes, failure string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRootCommand()
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	if kubeconfig != "" {
		args = append(args, "--kubeconfig", kubeconfig)
	}
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		failure = err.Error()
	}
	return stdout.String(), stderr.String(), failure
}

// steerSite is a real API server under the shipped webhook configuration, with the webhook that it calls. The test plays the
// planner.
type steerSite struct {
	*testing.T
	env      *envtest.Environment
	planner  client.WithWatch // as the planner's user
	alice    string           // a kubeconfig: may do everything
	registry *prometheus.Registry

	wrote *corev1.ConfigMap // the plan ConfigMap as the planner left it
}

func startSteerSite(t *testing.T) *steerSite {
	t.Helper()
	s := &steerSite{T: t, env: startWithWebhook(t), registry: prometheus.NewRegistry()}
	as := rest.CopyConfig(s.env.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: site.PlannerUser, Groups: []string{"system:masters"}}
	var err error
	s.planner, err = client.NewWithWatch(as, client.Options{})
	mustDo(t, err)
	mustDo(t, s.planner.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}}))
	s.alice = s.kubeconfig("alice", "system:masters")
	s.serveWebhook()
	return s
}

func (s *steerSite) kubeconfig(user string, groups ...string) string {
	s.Helper()
	u, err := s.env.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	mustDo(s.T, err)
	text, err := u.KubeConfig()
	mustDo(s.T, err)
	file := filepath.Join(s.TempDir(), "kubeconfig")
	mustDo(s.T, os.WriteFile(file, text, 0o600))
	return file
}

// granted is a user who may do this and nothing else.
func (s *steerSite) granted(user string, rules ...rbacv1.PolicyRule) string {
	s.Helper()
	meta := metav1.ObjectMeta{Namespace: "argocd", Name: user}
	mustDo(s.T, s.planner.Create(s.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	mustDo(s.T, s.planner.Create(s.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}))
	return s.kubeconfig(user)
}

// serveWebhook runs the real webhook until the test ends.
func (s *steerSite) serveWebhook() {
	s.Helper()
	at := &s.env.WebhookInstallOptions
	clients, err := kubernetes.NewForConfig(s.env.Config)
	mustDo(s.T, err)
	metrics := webhook.NewMetrics(s.registry)
	source := webhook.NewSource(webhook.SourceOptions{Client: clients, Namespace: "argocd", ConfigMap: site.PlanConfigMap, Planner: site.PlannerUser, Metrics: metrics, Log: logr.Discard()})
	server := webhook.NewServer(webhook.ServerOptions{Handler: webhook.NewHandler(source, metrics, logr.Discard()), CertDir: at.LocalServingCertDir, Metrics: metrics, Log: logr.Discard(),
		Listen: func() (net.Listener, error) {
			return net.Listen("tcp", net.JoinHostPort(at.LocalServingHost, strconv.Itoa(at.LocalServingPort)))
		}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { source.Run(ctx) })
	wg.Go(func() {
		if err := server.Serve(ctx); err != nil {
			s.Errorf("serving the webhook: %v", err)
		}
	})
	s.Cleanup(func() { cancel(); wg.Wait() })
	waitFor(s.T, "a webhook that is ready", func() bool { return errors.Join(server.Ready(), source.Ready()) == nil })
}

// answered counts what the plan's webhook answered to updates, by reason.
func (s *steerSite) answered() map[string]int {
	s.Helper()
	families, err := s.registry.Gather()
	mustDo(s.T, err)
	count := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			n := int(m.GetCounter().GetValue())
			if f.GetName() == "ballast_webhook_requests_total" && n > 0 && strings.HasPrefix(labels["webhook"], "plan") && strings.EqualFold(labels["operation"], "update") {
				count[labels["reason"]] += n
			}
		}
	}
	return count
}

// plans writes the plan ConfigMap anew, as the planner does.
func (s *steerSite) plans(t *testing.T, p plan.Plan, annotations map[string]string) {
	t.Helper()
	cm, err := planMapOf(p, "stage-eu: 2 # ask @bob\n", annotations)
	mustDo(t, err)
	mustDo(t, client.IgnoreNotFound(s.planner.Delete(t.Context(), cm.DeepCopy())))
	mustDo(t, s.planner.Create(t.Context(), cm))
	s.wrote = cm
}

// goesOn writes the planner's next plan over the one that stands.
func (s *steerSite) goesOn(t *testing.T, p plan.Plan) {
	t.Helper()
	next, err := planMapOf(p, "", nil)
	mustDo(t, err)
	stands := s.stored(t)
	maps.Copy(stands.Annotations, next.Annotations)
	stands.Data[plan.KeyPlan] = next.Data[plan.KeyPlan]
	mustDo(t, s.planner.Update(t.Context(), stands))
}

func (s *steerSite) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	mustDo(t, s.planner.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: site.PlanConfigMap}, cm))
	return cm
}

// keeps makes the history of these plans, newest first, a minute between them.
func (s *steerSite) keeps(t *testing.T, plans ...plan.Plan) {
	t.Helper()
	st := store.New(store.Options{Client: s.planner, Reader: s.planner, Namespace: "argocd", Plan: site.PlanConfigMap, History: "ballast-history"})
	h, _, err := st.ReadHistory(t.Context())
	mustDo(t, err)
	h.Plans = nil
	for i, p := range plans {
		text, err := plan.Encode(p)
		mustDo(t, err)
		h.Plans = append(h.Plans, store.Record{Revision: p.Revision, Text: text, Meta: store.Meta{DecidedAt: noon.Add(-time.Duration(i) * time.Minute), DecidedBy: "planner-0", Reason: fmt.Sprintf("reason %d", p.Revision)}})
	}
	_, err = st.WriteHistory(t.Context(), h, noon)
	mustDo(t, err)
}

// stands compares the whole ConfigMap: what the planner wrote with these annotations of people's, and nothing else.
func (s *steerSite) stands(t *testing.T, people map[string]string) {
	t.Helper()
	got, want := s.stored(t), maps.Clone(s.wrote.Annotations)
	for name, value := range people {
		if want[name] = value; value == "" {
			delete(want, name)
		}
	}
	if diff := cmp.Diff(want, got.Annotations) + cmp.Diff(s.wrote.Data, got.Data); diff != "" {
		t.Errorf("the plan ConfigMap (-want +got):\n%s", diff)
	}
}

// writes runs something and compares how often the plan's webhook let a write of it pass as it was; any other answer of the
// webhook is an error.
func (s *steerSite) writes(t *testing.T, want int, run func()) {
	t.Helper()
	before := s.answered()
	run()
	after := s.answered()
	for reason, n := range before {
		if after[reason] -= n; after[reason] == 0 {
			delete(after, reason)
		}
	}
	expected := map[string]int{}
	if want > 0 {
		expected[string(plan.InPlan)] = want
	}
	if diff := cmp.Diff(expected, after); diff != "" {
		t.Errorf("answers of the plan's webhook (-want +got):\n%s", diff)
	}
}
