package uninstall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"ballast/certs"
	"ballast/cmd/ballast/fixture"
	"ballast/cmd/ballast/uninstall/objects"
	"ballast/e2e/apiserver"
	"ballast/planner/plan"
	"ballast/webhook"
	"ballast/webhook/intake"
	"ballast/webhook/source"
)

// installed is one of two installations in a cluster: as shipped, but that its Service leads to a webhook on loopback.
type installed struct {
	overlay, namespace, workload string
	replicas, replica            int // of its plan: how many, and whose cluster prod-eu is

	listener net.Listener
	source   *source.Source
}

// TestTwoInstallationsInOneCluster: each plan holds in its own namespace, and one of them goes without a trace in the other.
func TestTwoInstallationsInOneCluster(t *testing.T) {
	server := apiserver.Start(t)
	t.Setenv("KUBECONFIG", kubeconfigFile(t, server))
	w := &twoSites{T: t, server: server}
	var err error
	w.Client, err = client.New(server, client.Options{})
	fixture.MustDo(t, err)
	first := &installed{overlay: filepath.Join("overlays", "self-signed"), namespace: "argocd", workload: fixture.ControllerName, replicas: 4, replica: 3}
	second := &installed{overlay: filepath.Join("testdata", "everything"), namespace: "gitops", workload: "my-argo-" + fixture.ControllerName, replicas: 5, replica: 1}
	for _, in := range []*installed{first, second} {
		w.install(in)
		w.certify(in) // before any webhook runs: the command sets the process's logger
	}
	for _, in := range []*installed{first, second} {
		w.serve(in)
		w.plan(in)
		w.enforced(in, strconv.Itoa(in.replica), int32(in.replicas))
	}
	w.enforced(first, "3", 4) // the second took nothing over
	w.settle(first)
	w.must(w.Create(w.Context(), &rbacv1.ClusterRole{ObjectMeta: labelled("pinner.argocd")})) // a person's, with ballast's label
	before, people := w.everything("gitops"), w.everything("argocd")

	out, notes, failure := run(t, "", "", "uninstall", "--yes", "--namespace", "argocd")
	if failure != "" {
		t.Fatalf("uninstall: %s\n%s%s", failure, out, notes)
	}
	if diff := cmp.Diff(before, w.everything("gitops")); diff != "" {
		t.Errorf("another installation was touched (-before +after):\n%s", diff)
	}
	left := w.everything("argocd")
	want := map[string]string{}
	for _, name := range []string{"Secret argocd/prod-eu", "StatefulSet argocd/" + fixture.ControllerName, "ClusterRole /pinner.argocd"} {
		want[name] = people[name]
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left of the installation (-want +got):\n%s", diff)
	}
	w.enforced(second, "1", 5)
	fixture.WaitFor(t, "no webhook of the first is asked any more", func() bool { shard, _ := w.write(first); return shard == "0" })
}

type twoSites struct {
	*testing.T
	client.Client
	server *rest.Config
}

// kubeconfigFile is the administrator's.
func kubeconfigFile(t *testing.T, server *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: "https://" + strings.TrimPrefix(server.Host, "https://"), CertificateAuthorityData: server.CAData}
	c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: server.CertData, ClientKeyData: server.KeyData}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "admin"}
	c.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	fixture.MustDo(t, clientcmd.WriteToFile(*c, file))
	return file
}

func (w *twoSites) must(err error) { w.Helper(); fixture.MustDo(w.T, err) }

// documents are what kustomize builds for an installation. Its Service is one by name, to which the API server connects as to
// any other: under the Service's name, at the port that its webhooks call.
func (w *twoSites) documents(in *installed) (list []*unstructured.Unstructured) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), fixture.Checkout(w.T, "manifests", in.overlay))
	w.must(err)
	text, err := built.AsYaml()
	w.must(err)
	_, port, err := net.SplitHostPort(in.listener.Addr().String())
	w.must(err)
	number, err := strconv.ParseInt(port, 10, 32)
	w.must(err)
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal(doc, &u.Object))
		switch u.GetKind() {
		case "Service":
			u.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "MutatingWebhookConfiguration":
			hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
			w.must(err)
			for _, h := range hooks {
				w.must(unstructured.SetNestedField(h.(map[string]any), number, "clientConfig", "service", "port"))
			}
			w.must(unstructured.SetNestedSlice(u.Object, hooks, "webhooks"))
		}
		list = append(list, u)
	}
	return list
}

// install applies what is shipped beside an Argo CD that runs, as Helm and a person do.
func (w *twoSites) install(in *installed) {
	w.Helper()
	var err error
	in.listener, err = net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.must(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.namespace}}))
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/component": "application-controller"}
	replicas := int32(in.replicas)
	w.must(w.Create(w.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: in.workload, Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "application-controller", Image: "argocd",
				Env: []corev1.EnvVar{{Name: plan.EnvReplicas, Value: strconv.Itoa(in.replicas)}}}}}}},
	}))
	for _, u := range w.documents(in) {
		w.must(w.Create(w.Context(), u)) // and not apply: a name that the other has would be an error
	}
}

// certify lets `ballast certs` make the certificates, and fill the caBundle, under the name that it finds by itself.
func (w *twoSites) certify(in *installed) {
	w.Helper()
	fixture.WaitFor(w.T, "certificates for "+in.namespace, func() bool {
		_, notes, failure := run(w.T, "", "", "certs", "--once", "--namespace", in.namespace, "--settle=1ms", "--overlap=1ms")
		if failure != "" {
			w.Fatalf("ballast certs: %s\n%s", failure, notes)
		}
		c := &unstructured.Unstructured{}
		c.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"})
		w.must(w.Get(w.Context(), client.ObjectKey{Name: "ballast." + in.namespace}, c))
		hooks, _, err := unstructured.NestedSlice(c.Object, "webhooks")
		w.must(err)
		return len(hooks) > 0 && !slices.ContainsFunc(hooks, func(h any) bool {
			bundle, _, _ := unstructured.NestedString(h.(map[string]any), "clientConfig", "caBundle")
			return bundle == ""
		})
	})
}

// serve runs the installation's webhook with the certificate that was made for it.
func (w *twoSites) serve(in *installed) {
	w.Helper()
	secret, dir := &corev1.Secret{}, w.TempDir()
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: in.namespace, Name: certs.LeafTLS}, secret))
	for name, text := range secret.Data {
		w.must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	clients, err := kubernetes.NewForConfig(w.server)
	w.must(err)
	metrics := webhook.NewMetrics(prometheus.NewRegistry())
	in.source = source.New(source.Options{Client: clients, Namespace: in.namespace, ConfigMap: "ballast-plan",
		Planner: in.planner(), Metrics: source.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	server := intake.NewServer(intake.ServerOptions{Handler: webhook.NewHandler(in.source, metrics, logr.Discard()),
		CertDir: dir, Expiry: metrics.CertificateEnds, Log: logr.Discard(), Listen: func() (net.Listener, error) { return in.listener, nil }})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { in.source.Run(ctx) })
	wg.Go(func() {
		if err := server.Serve(ctx); err != nil {
			w.Errorf("serving the webhook: %v", err)
		}
	})
	w.Cleanup(func() { cancel(); wg.Wait() })
	fixture.WaitFor(w.T, "a webhook that is ready", func() bool { return errors.Join(server.Ready(), in.source.Ready()) == nil })
}

func (in *installed) planner() string {
	return "system:serviceaccount:" + in.namespace + ":ballast-planner"
}

// plan writes the installation's plan as its planner does, and a cluster Secret that is in it.
func (w *twoSites) plan(in *installed) {
	w.Helper()
	cm, err := fixture.PlanMapOf(fixture.Steered(func(p *plan.Plan) {
		p.PlannerUser, p.Replicas, p.ControllerReplicas = in.planner(), in.replicas, in.replicas
		p.Target.Namespace, p.Target.Name = in.namespace, in.workload
		p.Clusters = map[string]plan.Row{"prod-eu": {Replica: in.replica, Load: "0.41"}}
	}), "", nil)
	w.must(err)
	cm.Namespace, cm.Labels = in.namespace, map[string]string{objects.PartOf: "ballast"}
	as := rest.CopyConfig(w.server)
	as.Impersonate = rest.ImpersonationConfig{UserName: in.planner(), Groups: []string{"system:masters"}}
	planner, err := client.New(as, client.Options{})
	w.must(err)
	w.must(planner.Create(w.Context(), cm))
	w.must(w.Create(w.Context(), &corev1.Secret{ // which a planner may not
		ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "prod-eu", Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
		Data:       map[string][]byte{"name": []byte("prod-eu"), "server": []byte("https://prod-eu"), "shard": []byte(strconv.Itoa(in.replica))},
	}))
}

// write tries a wrong shard and a wrong number of replicas by dry-run, and returns what would stand.
func (w *twoSites) write(in *installed) (shard string, replicas int32) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "prod-eu"}}
	w.must(w.Patch(w.Context(), secret, client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"shard":"0"}}`)), client.DryRunAll))
	workload := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: in.workload}}
	w.must(w.Patch(w.Context(), workload, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":9}}`)), client.DryRunAll))
	return string(secret.Data["shard"]), *workload.Spec.Replicas
}

// enforced waits until the installation's own plan answers.
func (w *twoSites) enforced(in *installed, shard string, replicas int32) {
	w.Helper()
	var last string
	want := fmt.Sprint(shard, " ", replicas)
	defer func() {
		if w.Failed() {
			w.Logf("%s: a write comes to %q, want %q", in.namespace, last, want)
		}
	}()
	fixture.WaitFor(w.T, "the plan of "+in.namespace+" is enforced", func() bool {
		shard, replicas := w.write(in)
		last = fmt.Sprint(shard, " ", replicas)
		return last == want
	})
}

// settle plays the StatefulSet's controller: all pods run with the present template.
func (w *twoSites) settle(in *installed) {
	w.Helper()
	sts := &appsv1.StatefulSet{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: in.namespace, Name: in.workload}, sts))
	n := *sts.Spec.Replicas
	sts.Status = appsv1.StatefulSetStatus{Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, AvailableReplicas: n, ObservedGeneration: sts.Generation}
	w.must(w.Status().Update(w.Context(), sts))
}

// everything is what there is of a namespace and of the names that carry it, each object with its UID and version.
func (w *twoSites) everything(namespace string) map[string]string {
	w.Helper()
	found := map[string]string{}
	clients, err := kubernetes.NewForConfig(w.server)
	w.must(err)
	lists, err := clients.Discovery().ServerPreferredResources()
	w.must(err)
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		w.must(err)
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || r.Kind == "Event" {
				continue
			}
			u := &unstructured.UnstructuredList{}
			u.SetGroupVersionKind(gv.WithKind(r.Kind + "List"))
			w.must(w.List(w.Context(), u))
			for _, o := range u.Items {
				mine := o.GetNamespace() == namespace || o.GetNamespace() == "" && strings.HasSuffix(o.GetName(), "."+namespace)
				if mine && o.GetName() != "default" && o.GetName() != "kube-root-ca.crt" {
					found[strings.TrimPrefix(r.Kind+" "+o.GetNamespace()+"/"+o.GetName(), " ")] = string(o.GetUID()) + " " + o.GetResourceVersion()
				}
			}
		}
	}
	return found
}
