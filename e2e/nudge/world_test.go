package nudge_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"ballast/planner/nudge"
	"ballast/planner/paged"
)

// What the Nudger goes by: how long a listing says that a cluster has no Application, and how long it tells where to look.
const fresh, keep = 10 * time.Second, 10 * time.Minute

const annotationRefresh = "argocd.argoproj.io/refresh"

var (
	start           = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	applicationKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
)

// world is Argo CD's namespace and those beside it, on a real API server, with a Nudger on it.
type world struct {
	t      *testing.T
	ctx    context.Context
	config *rest.Config
	client client.WithWatch // may do everything
	clock  *clocktesting.FakePassiveClock
	own    string // Argo CD's namespace
	nudger *nudge.Nudger

	mu       sync.Mutex
	problems []nudge.ListingProblem
	lists    int // requests for a page, by the nudger
	writes   int
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// addKind has the API server serve Applications.
func addKind(t *testing.T, config *rest.Config) {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/application-crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &crd); err != nil {
		t.Fatal(err)
	}
	until(t, "Applications are served", func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(applicationKind)
		err := c.List(ctx, list)
		return err == nil, nil
	})
}

func until(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, done); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), config: config, clock: clocktesting.NewFakePassiveClock(start)}
	w.client = w.clientAs("")
	w.own = w.namespace("argocd-")
	w.nudger = w.newNudger("")
	return w
}

func (w *world) clientAs(user string) client.WithWatch {
	w.t.Helper()
	config := paged.Bounded(w.config)
	config.Impersonate.UserName = user
	c, err := client.NewWithWatch(config, client.Options{})
	w.must(err)
	return c
}

// newNudger is one on a client of that user, whose requests are counted.
func (w *world) newNudger(user string) *nudge.Nudger {
	counted := interceptor.NewClient(w.clientAs(user), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			w.count(&w.lists)
			return c.List(ctx, l, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.count(&w.writes)
			return c.Patch(ctx, o, p, opts...)
		},
	})
	return nudge.New(nudge.Options{Client: counted, Reader: counted, Clock: w.clock, Report: func(p nudge.ListingProblem) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problems = append(w.problems, p)
	}})
}

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) namespace(prefix string) string {
	w.t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	w.must(w.client.Create(w.ctx, n))
	return n.Name
}

// watch sets application.namespaces.
func (w *world) watch(setting string) {
	w.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.own, Name: "argocd-cmd-params-cm"}, Data: map[string]string{"application.namespaces": setting}}
	err := w.client.Create(w.ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.ctx, cm)
	}
	w.must(err)
}

// application makes one; its destination is a server if it has a scheme, else a name.
func (w *world) application(namespace, name, to string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	w.t.Helper()
	key := "name"
	if strings.HasPrefix(to, "https://") {
		key = "server"
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"project": "default", "destination": map[string]any{key: to, "namespace": "default"}}}}
	u.SetGroupVersionKind(applicationKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	if change != nil {
		change(u)
	}
	w.must(w.client.Create(w.ctx, u, client.FieldOwner("a-person")))
	return u
}

// counted is how many Applications of a server the last listing has.
func (w *world) counted(server string) int {
	w.t.Helper()
	counts, _, err := w.nudger.Count(w.ctx, w.own, []nudge.Destination{{Server: server}}, 24*time.Hour)
	w.must(err)
	return counts[server]
}

func (w *world) read(u *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(applicationKind)
	w.must(w.client.Get(w.ctx, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, now))
	return now
}

func (w *world) refresh(u *unstructured.Unstructured) string {
	w.t.Helper()
	return w.read(u).GetAnnotations()[annotationRefresh]
}

// served is what the application-controller does about a refresh.
func (w *world) served(u *unstructured.Unstructured) {
	w.t.Helper()
	w.must(w.client.Patch(w.ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotationRefresh+`":null}}}`))))
}

// nudge is what the Nudger answers.
func (w *world) nudge(server, name string) string {
	w.t.Helper()
	application, err := w.nudger.Nudge(w.ctx, w.own, "cluster", server, name)
	w.must(err)
	return application
}

func (w *world) equal(want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("(-want +got):\n%s", diff)
	}
}

func (w *world) reasons() []nudge.ListingReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rs []nudge.ListingReason
	for _, p := range w.problems {
		rs = append(rs, p.Reason)
	}
	return rs
}

// grant gives a user rights: in a namespace, or in all of them where it is empty. It returns once they are in force.
func (w *world) grant(user, namespace string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	if namespace == "" {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "nudge-"}, Rules: rules}
		w.must(w.client.Create(w.ctx, role))
		w.must(w.client.Create(w.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "nudge-"}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}))
	} else {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "nudge-", Namespace: namespace}, Rules: rules}
		w.must(w.client.Create(w.ctx, role))
		w.must(w.client.Create(w.ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "nudge-", Namespace: namespace}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}))
	}
	for _, r := range rules {
		for _, verb := range r.Verbs {
			until(w.t, "the rights are in force", func(ctx context.Context) (bool, error) {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Group: r.APIGroups[0], Resource: r.Resources[0], Verb: verb,
				}}}
				err := w.client.Create(ctx, review)
				return review.Status.Allowed, err
			})
		}
	}
}
