package manifests

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden.yaml")

// overlays is everything that is built; the base alone is one of them.
func overlays() map[string]string {
	return map[string]string{
		"base":             "base",
		"cert-manager":     filepath.Join("overlays", "cert-manager"),
		"retarget-example": filepath.Join("overlays", "retarget-example"),
		"self-signed":      filepath.Join("overlays", "self-signed"),
	}
}

// build runs kustomize as `kubectl apply -k` does: nothing outside of a kustomization's folder is read.
func build(t *testing.T, dir string) []byte {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("building %s: %v", dir, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// install is an overlay's objects by name.
type install struct {
	Deployments     map[string]appsv1.Deployment
	Services        map[string]corev1.Service
	ServiceAccounts map[string]corev1.ServiceAccount
	ConfigMaps      map[string]corev1.ConfigMap
	Secrets         map[string]corev1.Secret
	Roles           map[string]rbacv1.Role
	RoleBindings    map[string]rbacv1.RoleBinding
	ClusterRoles    map[string]rbacv1.ClusterRole
	ClusterBindings map[string]rbacv1.ClusterRoleBinding
	Policies        map[string]admissionregistration.ValidatingAdmissionPolicy
	PolicyBindings  map[string]admissionregistration.ValidatingAdmissionPolicyBinding
	Budgets         map[string]policyv1.PodDisruptionBudget
	NetworkPolicies map[string]networkingv1.NetworkPolicy
	PriorityClasses map[string]schedulingv1.PriorityClass
	Webhooks        map[string]admissionregistration.MutatingWebhookConfiguration
	Issuers         map[string]certmanager.Issuer
	Certificates    map[string]certmanager.Certificate
}

// decode reads every object strictly: an unknown field, which an API server would drop, fails, and so does a kind that
// is not listed here.
func decode(t *testing.T, text []byte) install {
	t.Helper()
	in := install{
		map[string]appsv1.Deployment{}, map[string]corev1.Service{}, map[string]corev1.ServiceAccount{}, map[string]corev1.ConfigMap{}, map[string]corev1.Secret{},
		map[string]rbacv1.Role{}, map[string]rbacv1.RoleBinding{}, map[string]rbacv1.ClusterRole{}, map[string]rbacv1.ClusterRoleBinding{},
		map[string]admissionregistration.ValidatingAdmissionPolicy{}, map[string]admissionregistration.ValidatingAdmissionPolicyBinding{}, map[string]policyv1.PodDisruptionBudget{},
		map[string]networkingv1.NetworkPolicy{}, map[string]schedulingv1.PriorityClass{},
		map[string]admissionregistration.MutatingWebhookConfiguration{}, map[string]certmanager.Issuer{}, map[string]certmanager.Certificate{},
	}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		switch id := head.APIVersion + " " + head.Kind; id {
		case "apps/v1 Deployment":
			add(t, in.Deployments, head.Name, doc)
		case "v1 Service":
			add(t, in.Services, head.Name, doc)
		case "v1 ServiceAccount":
			add(t, in.ServiceAccounts, head.Name, doc)
		case "v1 ConfigMap":
			add(t, in.ConfigMaps, head.Name, doc)
		case "v1 Secret":
			add(t, in.Secrets, head.Name, doc)
		case "rbac.authorization.k8s.io/v1 Role":
			add(t, in.Roles, head.Name, doc)
		case "rbac.authorization.k8s.io/v1 RoleBinding":
			add(t, in.RoleBindings, head.Name, doc)
		case "rbac.authorization.k8s.io/v1 ClusterRole":
			add(t, in.ClusterRoles, head.Name, doc)
		case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
			add(t, in.ClusterBindings, head.Name, doc)
		case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":
			add(t, in.Policies, head.Name, doc)
		case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding":
			add(t, in.PolicyBindings, head.Name, doc)
		case "policy/v1 PodDisruptionBudget":
			add(t, in.Budgets, head.Name, doc)
		case "networking.k8s.io/v1 NetworkPolicy":
			add(t, in.NetworkPolicies, head.Name, doc)
		case "scheduling.k8s.io/v1 PriorityClass":
			add(t, in.PriorityClasses, head.Name, doc)
		case "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration":
			add(t, in.Webhooks, head.Name, doc)
		case "cert-manager.io/v1 Issuer":
			add(t, in.Issuers, head.Name, doc)
		case "cert-manager.io/v1 Certificate":
			add(t, in.Certificates, head.Name, doc)
		default:
			t.Fatalf("%s %q is no kind that ballast installs", id, head.Name)
		}
	}
	return in
}

func add[T any](t *testing.T, to map[string]T, name string, doc []byte) {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict(doc, &object); err != nil {
		t.Fatalf("decoding %q: %v", name, err)
	}
	if _, twice := to[name]; twice {
		t.Fatalf("%T %q stands twice", object, name)
	}
	to[name] = object
}

func TestEveryOverlayBuildsAsRecorded(t *testing.T) {
	for name, dir := range overlays() {
		t.Run(name, func(t *testing.T) {
			got := build(t, dir)
			decode(t, got)
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-recorded +built (go test ./manifests -update records):\n%s", diff)
			}
		})
	}
}

func TestEveryOverlayIsTested(t *testing.T) {
	found, err := filepath.Glob("overlays/*/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"base": "base"}
	for _, f := range found {
		dir := filepath.Dir(f)
		got[filepath.Base(dir)] = dir
	}
	if diff := cmp.Diff(overlays(), got); diff != "" {
		t.Errorf("-tested +there:\n%s", diff)
	}
}

func TestTheSettingsAreNotInstalled(t *testing.T) {
	for name, dir := range overlays() {
		if strings.Contains(string(build(t, dir)), "ballast-settings") {
			t.Errorf("%s installs the ConfigMap that kustomize alone reads", name)
		}
	}
}
