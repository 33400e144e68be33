package matrix

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/e2e/hooked"
	"ballast/webhook"
	"ballast/webhook/intake"
	"ballast/webhook/source"
)

const (
	namespace = "argocd"
	workload  = "argocd-application-controller"
	planName  = "ballast-plan"
	planner   = "system:serviceaccount:argocd:ballast-planner"
)

var (
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// auditPolicy is what we recommend: the audit annotations are there, and no object is.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// site is a real API server with the shipped webhook configuration, and the webhook it calls.
type site struct {
	binaries   assets.Binaries
	admin      *rest.Config // sets the scene
	person     *rest.Config // ada, who may do everything
	kubeconfig string       // ada's
	planner    *rest.Config // the shipped planner's ServiceAccount under its shipped Roles
	audit      string
	certs      string
	endpoints  *endpoints
	replica    *replica       // the one that serves, unless a test says otherwise
	source     *source.Source // its view of the plan
}

func startSite(t testing.TB) *site {
	t.Helper()
	binaries, err := assets.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &site{binaries: binaries, audit: filepath.Join(dir, "audit.log"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	shipped := shippedObjects(t)
	env := &envtest.Environment{BinaryAssetsDirectory: binaries.Dir,
		ControlPlaneStartTimeout: 5 * time.Minute, ControlPlaneStopTimeout: 2 * time.Minute}
	env.WebhookInstallOptions.LocalServingHost, env.WebhookInstallOptions.LocalServingPort = hooked.Host, hooked.FreePort(t)
	env.WebhookInstallOptions.MutatingWebhooks = []*admissionregistration.MutatingWebhookConfiguration{configuration(t, shipped)}
	env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", s.audit).Set("audit-log-mode", "blocking")
	if s.admin, err = env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	s.admin.QPS = -1
	ada, err := env.AddUser(envtest.User{Name: "ada", Groups: []string{"system:masters"}}, s.admin)
	if err != nil {
		t.Fatal(err)
	}
	s.person = ada.Config()
	kubeconfig, err := ada.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.kubeconfig, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	s.install(t, shipped)
	s.planner = s.account(t, "ballast-planner")
	s.serve(t, &env.WebhookInstallOptions)
	return s
}

// shippedObjects builds the shipped base.
func shippedObjects(t testing.TB) []unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "manifests", "base"))
	if err != nil {
		t.Fatal(err)
	}
	var list []unstructured.Unstructured
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, u)
	}
	return list
}

// configuration is the shipped webhook configuration; envtest swaps the Service for a URL on loopback.
func configuration(t testing.TB, shipped []unstructured.Unstructured) *admissionregistration.MutatingWebhookConfiguration {
	t.Helper()
	for _, u := range shipped {
		if u.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		c := &admissionregistration.MutatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
			t.Fatal(err)
		}
		hooked.Ready(c)
		return c
	}
	t.Fatal("no webhook configuration is shipped")
	return nil
}

// install creates the namespace and the shipped ServiceAccounts and Roles.
func (s *site) install(t testing.TB, shipped []unstructured.Unstructured) {
	t.Helper()
	client := s.dynamic(t, s.admin)
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rbac := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
	}
	kinds := map[string]schema.GroupVersionResource{"ServiceAccount": {Version: "v1", Resource: "serviceaccounts"}, "Role": rbac("roles"), "RoleBinding": rbac("rolebindings")}
	for _, u := range shipped {
		if resource, ok := kinds[u.GetKind()]; ok {
			if _, err := client.Resource(resource).Namespace(u.GetNamespace()).Create(t.Context(), &u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// account is what a pod of a shipped ServiceAccount would connect as.
func (s *site) account(t testing.TB, name string) *rest.Config {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := rest.AnonymousClientConfig(s.admin)
	c.BearerToken, c.QPS = token.Status.Token, -1
	return c
}

// replica is one webhook process: its own watch of the plan, and its own server.
type replica struct {
	address   string
	source    *source.Source
	registry  *prometheus.Registry
	stopWatch func() // ends the watch; the plan stays as it is then
	watch     func()
	stopping  func() <-chan struct{} // begins the stop, and tells its end
}

// serve puts a replica behind the address that the webhook configuration names.
func (s *site) serve(t testing.TB, at *envtest.WebhookInstallOptions) {
	t.Helper()
	s.certs = at.LocalServingCertDir
	s.endpoints = newEndpoints(t, net.JoinHostPort(at.LocalServingHost, strconv.Itoa(at.LocalServingPort)))
	s.replica = s.start(t, 0)
	s.source = s.replica.source
	s.endpoints.set(s.replica.address)
}

// start runs a replica under its shipped ServiceAccount until it is ready.
func (s *site) start(t testing.TB, lameDuck time.Duration) *replica {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.account(t, "ballast-webhook"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{address: listener.Addr().String(), registry: prometheus.NewRegistry()}
	metrics := webhook.NewMetrics(r.registry)
	r.source = source.New(source.Options{Client: client, Namespace: namespace, ConfigMap: planName, Planner: planner, Metrics: source.NewMetrics(r.registry), Log: logr.Discard()})
	server := intake.NewServer(intake.ServerOptions{
		Handler: webhook.NewHandler(r.source, metrics, logr.Discard()), CertDir: s.certs, Expiry: metrics.CertificateEnds, Log: logr.Discard(), LameDuck: lameDuck,
		Listen: func() (net.Listener, error) { return listener, nil },
	})
	r.watch = func() {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { r.source.Run(ctx); close(ended) }()
		r.stopWatch = func() { stop(); <-ended }
	}
	r.watch()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(ctx); err != nil {
			t.Errorf("serving the webhook: %v", err)
		}
	}()
	r.stopping = func() <-chan struct{} { stop(); return served }
	t.Cleanup(func() { <-r.stopping(); r.stopWatch() })
	eventually(t, "a webhook that is ready", func() bool { return server.Ready() == nil && r.source.Ready() == nil })
	return r
}

func (s *site) dynamic(t testing.TB, c *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits for what another process brings about.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come about", what)
		case <-tick.C:
		}
	}
}
