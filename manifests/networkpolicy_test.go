package manifests

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const closed = "testdata/network-policy"

func TestNoOverlayHasANetworkPolicy(t *testing.T) {
	for name, dir := range overlays() {
		if in := decode(t, build(t, dir)); len(in.NetworkPolicies) > 0 {
			t.Errorf("%s has %v: nobody but the reader knows where the API servers are", name, in.NetworkPolicies)
		}
	}
}

// TestTheNetworkPolicyLetsInWhoHasToReachTheWebhook as shipped, and with README.md's patch.
func TestTheNetworkPolicyLetsInWhoHasToReachTheWebhook(t *testing.T) {
	port := func(name string) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString(name))}}
	}
	metrics := networkingv1.NetworkPolicyIngressRule{Ports: port("metrics"), From: []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}}}}
	servers := []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.10/32"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.11/32"}}}
	for dir, want := range map[string][]networkingv1.NetworkPolicyIngressRule{
		everything: {{Ports: port("webhook")}, metrics},
		closed:     {{Ports: port("webhook"), From: servers}, metrics},
	} {
		in := decode(t, build(t, dir))
		policy, webhook := in.NetworkPolicies["ballast-webhook"], in.Deployments["ballast-webhook"]
		if diff := cmp.Diff(want, policy.Spec.Ingress); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
		if diff := cmp.Diff(webhook.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels); diff != "" || policy.Namespace != webhook.Namespace {
			t.Errorf("%s: it is for other pods, in %q -Deployment +policy:\n%s", dir, policy.Namespace, diff)
		}
		if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
		named := map[string]bool{}
		for _, p := range webhook.Spec.Template.Spec.Containers[0].Ports {
			named[p.Name] = true
		}
		for _, rule := range policy.Spec.Ingress {
			if name := rule.Ports[0].Port.StrVal; !named[name] {
				t.Errorf("%s: the pods have no port %q", dir, name)
			}
		}
	}
}

func TestTheReadmeHasTheNetworkPolicysPatch(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(closed + "/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, patch, _ := strings.Cut(string(example), "patches:\n")
	var indented strings.Builder
	for line := range strings.Lines("patches:\n" + patch) {
		indented.WriteString("    " + line)
	}
	if !strings.Contains(string(readme), indented.String()) {
		t.Errorf("README.md does not have\n%s", indented.String())
	}
}
