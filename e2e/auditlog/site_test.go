package auditlog_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/e2e/hooked"
	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/webhook"
	"ballast/webhook/auditlog"
	"ballast/webhook/intake"
	"ballast/webhook/source"
)

const (
	namespace = "argocd"
	workload  = "argocd-application-controller"
	planName  = "ballast-plan"
)

// site is a real API server with the shipped webhook configuration, and the webhook it calls.
type site struct {
	env        *envtest.Environment
	admin      *rest.Config
	audit      string
	source     *source.Source
	stopServer func()
}

func startSite(t *testing.T) *site {
	t.Helper()
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &site{audit: filepath.Join(dir, "audit.log")}
	policy := filepath.Join(dir, "policy.yaml")
	careless := "rules:\n- {level: RequestResponse, users: [carol]}\n"
	if err := os.WriteFile(policy, []byte(strings.Replace(auditlog.Policy, "rules:\n", careless, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = &envtest.Environment{BinaryAssetsDirectory: binaries.Dir, ControlPlaneStartTimeout: 5 * time.Minute, ControlPlaneStopTimeout: 2 * time.Minute}
	s.env.WebhookInstallOptions.LocalServingHost, s.env.WebhookInstallOptions.LocalServingPort = hooked.Host, hooked.FreePort(t)
	s.env.WebhookInstallOptions.MutatingWebhooks = []*admissionregistration.MutatingWebhookConfiguration{configuration(t)}
	s.env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", s.audit).Set("audit-log-mode", "blocking")
	if s.admin, err = s.env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	s.admin = s.user(t, "admin")
	s.must(t)(s.client(t, s.admin).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}))
	s.serve(t)
	s.populate(t)
	return s
}

// configuration is the shipped webhook configuration; envtest swaps the Service for a URL on loopback.
func configuration(t *testing.T) *admissionregistration.MutatingWebhookConfiguration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "base", "webhook-configuration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &admissionregistration.MutatingWebhookConfiguration{}
	if err := yaml.Unmarshal(text, c); err != nil {
		t.Fatal(err)
	}
	hooked.Ready(c)
	return c
}

// user may do everything.
func (s *site) user(t *testing.T, name string) *rest.Config {
	t.Helper()
	u, err := s.env.AddUser(envtest.User{Name: name, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return u.Config()
}

func impersonate(c *rest.Config, name string) *rest.Config {
	c.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
	return c
}

// account is a ServiceAccount that may do everything, too: what it is allowed is not this test's subject.
func (s *site) account(t *testing.T, name string) *rest.Config {
	t.Helper()
	client := s.client(t, s.admin)
	s.must(t)(client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	s.must(t)(client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{}))
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reviewer, err := ctrlclient.New(s.admin, ctrlclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hooked.Allows(t, reviewer, "system:serviceaccount:"+namespace+":"+name, "", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	c := rest.AnonymousClientConfig(s.admin)
	c.BearerToken = token.Status.Token
	return c
}

func (s *site) client(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	c = rest.CopyConfig(c)
	c.QPS, c.WarningHandler = -1, rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// serve runs the real webhook until the test, or stopServer, ends it.
func (s *site) serve(t *testing.T) {
	t.Helper()
	at := &s.env.WebhookInstallOptions
	metrics := webhook.NewMetrics(prometheus.NewRegistry())
	s.source = source.New(source.Options{Client: s.client(t, s.account(t, "ballast-webhook")), Namespace: namespace, ConfigMap: planName, Planner: plannerUser, Metrics: source.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	server := intake.NewServer(intake.ServerOptions{
		Handler: webhook.NewHandler(s.source, metrics, logr.Discard()), CertDir: at.LocalServingCertDir, Expiry: metrics.CertificateEnds, Log: logr.Discard(),
		Listen: func() (net.Listener, error) {
			return net.Listen("tcp", net.JoinHostPort(at.LocalServingHost, strconv.Itoa(at.LocalServingPort)))
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	watched, served := make(chan struct{}), make(chan error, 1)
	go func() { s.source.Run(ctx); close(watched) }()
	go func() { served <- server.Serve(ctx) }()
	stopped := false
	s.stopServer = func() {
		if stopped {
			return
		}
		stopped = true
		stop()
		<-watched
		if err := <-served; err != nil {
			t.Errorf("serving the webhook: %v", err)
		}
	}
	t.Cleanup(s.stopServer)
	eventually(t, "a webhook that is ready", func() bool { return server.Ready() == nil && s.source.Ready() == nil })
}

const plannerUser = "system:serviceaccount:argocd:ballast-planner"

// populate makes the plan as its planner, and what it is about as admin.
func (s *site) populate(t *testing.T) {
	t.Helper()
	client := s.client(t, s.admin)
	text, err := codec.Encode(plan.Plan{
		Revision: 7, Mode: plan.Enforce, Replicas: 4, ControllerReplicas: 4, MaxReplicas: 16, PlannerUser: plannerUser,
		Target:   plan.Target{Kind: plan.StatefulSet, Namespace: namespace, Name: workload, Container: "application-controller"},
		Clusters: map[string]plan.Row{"prod-eu": {Replica: 3, Load: "0.5"}, "prod-us": {Replica: 2, Load: "0.5"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(s.admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: plannerUser, Groups: []string{"system:masters"}}
	s.must(t)(s.client(t, as).CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: planName, Annotations: map[string]string{plan.AnnotationRevision: "7", plan.AnnotationDigest: plan.Digest(text)}},
		Data:       map[string]string{plan.KeyPlan: text},
	}, metav1.CreateOptions{}))
	eventually(t, "the plan at the webhook", func() bool { return s.source.State().View != nil })
	labels := map[string]string{"app": "controller"}
	s.must(t)(client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: workload},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Image: "argocd"}}},
		}},
	}, metav1.CreateOptions{}))
	for _, name := range []string{"prod-eu", "prod-us"} {
		s.must(t)(client.CoreV1().Secrets(namespace).Create(t.Context(), clusterSecret(name, "0"), metav1.CreateOptions{}))
	}
}

func clusterLabels() map[string]string {
	return map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}
}

func clusterSecret(name, shard string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: clusterLabels()},
		StringData: map[string]string{
			"name": name, "server": "https://" + name + ".example", plan.ShardKey: shard, "config": `{"bearerToken":"` + canary + `"}`,
		},
	}
}
