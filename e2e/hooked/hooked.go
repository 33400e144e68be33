// Package hooked is a real API server under the shipped webhook configuration, policies and Roles, with the real
// webhook behind it, for tests of what a client meets whose writes are answered. Package plane is the whole control
// plane.
package hooked

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"ballast/e2e/assets"
	"ballast/webhook"
	"ballast/webhook/intake"
	"ballast/webhook/source"
)

// The names that are shipped.
const (
	Namespace     = "argocd"
	PlanConfigMap = "ballast-plan"
	Planner       = "system:serviceaccount:argocd:ballast-planner"
	webhookUser   = "system:serviceaccount:argocd:ballast-webhook"
)

// Options say what to start beside the shipped configuration.
type Options struct {
	APIServer map[string]string // arguments, without dashes
}

// Site is the API server with the webhook that it calls.
type Site struct {
	Admin  client.WithWatch // may do everything, and is nobody that ballast knows
	Source *source.Source   // the webhook's view of the plan

	t     testing.TB
	env   *envtest.Environment
	dials dials
	asked atomic.Int64
}

// Asked is how often the API server has asked the webhook anything.
func (s *Site) Asked() int64 { return s.asked.Load() }

// Start starts everything until the test ends.
func Start(t testing.TB, o Options) *Site {
	t.Helper()
	binaries, err := assets.Build(t.Context(), os.Stderr)
	must(t, err)
	shipped := build(t)
	s := &Site{t: t, env: &envtest.Environment{BinaryAssetsDirectory: binaries.Dir,
		ControlPlaneStartTimeout: 5 * time.Minute, ControlPlaneStopTimeout: 2 * time.Minute}}
	s.env.WebhookInstallOptions.LocalServingHost, s.env.WebhookInstallOptions.LocalServingPort = Host, FreePort(t)
	s.env.WebhookInstallOptions.MutatingWebhooks = []*admissionregistration.MutatingWebhookConfiguration{configuration(t, shipped)}
	server := s.env.ControlPlane.GetAPIServer()
	server.Out, server.Err = io.Discard, io.Discard
	for name, value := range o.APIServer {
		server.Configure().Set(name, value)
	}
	_, err = s.env.Start()
	must(t, err)
	t.Cleanup(func() {
		if err := s.env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	s.Admin = s.client(s.user("admin", "system:masters"))
	s.install(shipped)
	s.serve()
	return s
}

// As is a client of a user: of a shipped ServiceAccount, with its Roles, or of a person who may do everything.
func (s *Site) As(user string) client.WithWatch {
	s.t.Helper()
	if strings.HasPrefix(user, "system:serviceaccount:") {
		return s.client(s.account(user))
	}
	return s.client(s.user(user, "system:masters"))
}

// Prober is a client of the shipped planner's that hears how a probe came to the webhook.
func (s *Site) Prober(heard rest.WarningHandlerWithContext) client.WithWatch {
	s.t.Helper()
	c := s.account(Planner)
	c.WarningHandlerWithContext = heard
	return s.client(c)
}

// Refuse closes each new connection to the webhook, while those that there are go on.
func (s *Site) Refuse(yes bool) { s.dials.refuses.Store(yes) }

// Connections is how many connections to the webhook are open.
func (s *Site) Connections() int { return int(s.dials.open.Load()) }

// Counter is a series of the API server's own metrics by its name and labels, 0 while it is absent.
func (s *Site) Counter(series string) float64 {
	s.t.Helper()
	c, err := kubernetes.NewForConfig(s.env.Config)
	must(s.t, err)
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
	must(s.t, err)
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), series+" "); found {
			n, err := strconv.ParseFloat(value, 64)
			must(s.t, err)
			return n
		}
	}
	return 0
}

// dials is a listener that counts what is open, and may refuse what is new.
type dials struct {
	net.Listener
	refuses atomic.Bool
	open    atomic.Int64
}

func (d *dials) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !d.refuses.Load() {
			d.open.Add(1)
			return &dialled{Conn: c, closed: func() { d.open.Add(-1) }}, nil
		}
		_ = c.Close()
	}
}

type dialled struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (d *dialled) Close() error {
	d.once.Do(d.closed)
	return d.Conn.Close()
}

// Webhooks changes the webhook configuration; the API server takes it up in a moment.
func (s *Site) Webhooks(change func(*admissionregistration.MutatingWebhook)) {
	s.t.Helper()
	c := &admissionregistration.MutatingWebhookConfiguration{}
	must(s.t, s.Admin.Get(s.t.Context(), client.ObjectKey{Name: "ballast.argocd"}, c))
	for i := range c.Webhooks {
		change(&c.Webhooks[i])
	}
	must(s.t, s.Admin.Update(s.t.Context(), c))
}

func (s *Site) client(c *rest.Config) client.WithWatch {
	s.t.Helper()
	c.QPS, c.WarningHandler = -1, rest.NoWarnings{}
	made, err := client.NewWithWatch(c, client.Options{})
	must(s.t, err)
	return made
}

func (s *Site) user(name string, groups ...string) *rest.Config {
	s.t.Helper()
	u, err := s.env.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	must(s.t, err)
	return u.Config()
}

func (s *Site) account(user string) *rest.Config {
	c := rest.CopyConfig(s.env.Config)
	c.Impersonate = rest.ImpersonationConfig{UserName: user,
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return c
}

// install makes the namespace, the ServiceAccounts, what they may do, and the policies.
func (s *Site) install(shipped []unstructured.Unstructured) {
	s.t.Helper()
	must(s.t, s.Admin.Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}))
	for _, u := range shipped {
		switch u.GetKind() {
		case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Secret", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			must(s.t, s.Admin.Create(s.t.Context(), &u))
		}
	}
	s.awaitPolicies()
}

// awaitPolicies returns when the API server judges by the policies that are shipped, which it does a moment after they
// are there: each of them refuses a write that no test makes.
func (s *Site) awaitPolicies() {
	s.t.Helper()
	planner := s.As(Planner)
	refused := func(c client.Client, cm *corev1.ConfigMap) func() bool {
		cm.Namespace = Namespace
		return func() bool {
			err := c.Create(s.t.Context(), cm.DeepCopy(), client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
		}
	}
	Eventually(s.t, "the policy of the plan", refused(s.Admin,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: PlanConfigMap},
			Data: map[string]string{"notes": strings.Repeat("x", 20<<10)}}))
	Eventually(s.t, "the policy of the planner", refused(planner,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
}

// serve runs the webhook.
func (s *Site) serve() {
	s.t.Helper()
	at := &s.env.WebhookInstallOptions
	c := s.account(webhookUser)
	c.QPS = -1
	clients, err := kubernetes.NewForConfig(c)
	must(s.t, err)
	metrics := webhook.NewMetrics(prometheus.NewRegistry())
	s.Source = source.New(source.Options{Client: clients, Namespace: Namespace, ConfigMap: PlanConfigMap,
		Planner: Planner, Metrics: source.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	handler := webhook.NewHandler(s.Source, metrics, logr.Discard())
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		handler.ServeHTTP(w, r)
	})
	server := intake.NewServer(intake.ServerOptions{Handler: counted, CertDir: at.LocalServingCertDir,
		Expiry: metrics.CertificateEnds, Log: logr.Discard(),
		Listen: func() (_ net.Listener, err error) {
			s.dials.Listener, err = net.Listen("tcp",
				net.JoinHostPort(at.LocalServingHost, strconv.Itoa(at.LocalServingPort)))
			return &s.dials, err
		}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Source.Run(ctx) })
	wg.Go(func() {
		if err := server.Serve(ctx); err != nil {
			s.t.Errorf("serving the webhook: %v", err)
		}
	})
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	Eventually(s.t, "a webhook that is ready", func() bool { return errors.Join(server.Ready(), s.Source.Ready()) == nil })
}

// build builds the shipped base.
func build(t testing.TB) []unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		filepath.Join(checkout(t), "manifests", "base"))
	must(t, err)
	var list []unstructured.Unstructured
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		must(t, err)
		var u unstructured.Unstructured
		must(t, yaml.Unmarshal(text, &u.Object))
		list = append(list, u)
	}
	return list
}

// checkout is the folder above the test's that has go.mod.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above has go.mod")
		}
		dir = filepath.Dir(dir)
	}
}

// configuration is the shipped webhook configuration; envtest swaps the Service for a URL on loopback.
func configuration(t testing.TB, shipped []unstructured.Unstructured) *admissionregistration.MutatingWebhookConfiguration {
	t.Helper()
	for _, u := range shipped {
		if u.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		c := &admissionregistration.MutatingWebhookConfiguration{}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c))
		Ready(c)
		return c
	}
	t.Fatal("no webhook configuration is shipped")
	return nil
}

// Timeout is what webhooks have here to answer, in seconds. Shipped are 2, after which a write passes as it is, which a
// busy machine may take for an answer.
const Timeout = 30

// Host is where the tests' servers listen.
const Host = "127.0.0.1"

// FreePort is one that only a server of this test can have: a socket that does not listen is bound to it until the test
// ends, so that the kernel gives it to nobody else, and refuses whoever calls before the server is there.
func FreePort(t testing.TB) int {
	t.Helper()
	syscall.ForkLock.RLock() // no process that begins now inherits it
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)) // as Go's listeners are
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: netip.MustParseAddr(Host).As4()}))
	at, err := syscall.Getsockname(fd)
	must(t, err)
	return at.(*syscall.SockaddrInet4).Port
}

// Ready makes the shipped configuration one for envtest, which adds a slash of its own, and for slow machines.
func Ready(c *admissionregistration.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		path := strings.TrimPrefix(*w.ClientConfig.Service.Path, "/")
		w.ClientConfig.Service.Path, w.TimeoutSeconds = &path, ptr.To(int32(Timeout))
	}
}

// Allows waits until the API server allows a user these rules in a namespace, or in all where it is empty: its
// authorizer hears of a new role a moment after it is stored.
func Allows(t testing.TB, c client.Client, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	for _, r := range rules {
		asked := authorizationv1.ResourceAttributes{Namespace: namespace, Group: r.APIGroups[0], Verb: r.Verbs[0]}
		asked.Resource, asked.Subresource, _ = strings.Cut(r.Resources[0], "/")
		if len(r.ResourceNames) > 0 {
			asked.Name = r.ResourceNames[0]
		}
		Eventually(t, fmt.Sprintf("%s may %s %s", user, asked.Verb, asked.Resource), func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
				ResourceAttributes: &asked}}
			must(t, c.Create(t.Context(), review))
			return review.Status.Allowed
		})
	}
}

// Eventually waits for what another process brings about.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
