package manifests

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const closed = "testdata/network-policy"

// reach is a policy in words: what may come in and go out, a line a rule. nil = nothing may, "open" = no policy says so.
type reach struct{ In, Out []string }

const (
	dns       = "53/UDP 53/TCP 5353/UDP 5353/TCP: anywhere"
	apiServer = "443/TCP 6443/TCP 8443/TCP 16443/TCP: anywhere"
)

func reaches(in install) map[string]reach {
	all := map[string]reach{}
	for name, p := range in.NetworkPolicies {
		r := reach{In: []string{"open"}, Out: []string{"open"}}
		if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			r.In = nil
		}
		if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			r.Out = nil
		}
		for _, rule := range p.Spec.Ingress {
			r.In = append(r.In, ports(rule.Ports)+": "+peers(rule.From))
		}
		for _, rule := range p.Spec.Egress {
			r.Out = append(r.Out, ports(rule.Ports)+": "+peers(rule.To))
		}
		all[name] = r
	}
	return all
}

func ports(list []networkingv1.NetworkPolicyPort) string {
	var words []string
	for _, p := range list {
		word := p.Port.String()
		if p.Protocol != nil {
			word += "/" + string(*p.Protocol)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func peers(list []networkingv1.NetworkPolicyPeer) string {
	if len(list) == 0 {
		return "anywhere"
	}
	var words []string
	for _, p := range list {
		switch {
		case p.IPBlock != nil:
			words = append(words, p.IPBlock.CIDR)
		case p.NamespaceSelector != nil:
			words = append(words, "namespace "+metav1.FormatLabelSelector(p.NamespaceSelector))
		default:
			words = append(words, "pods "+metav1.FormatLabelSelector(p.PodSelector))
		}
	}
	return strings.Join(words, " ")
}

// TestNetworkPoliciesKeepOutWhatNoInstallationNeeds: the default cuts nobody off whom ballast cannot know, so that a Prometheus
// on any port is reached; the component names them all.
func TestNetworkPoliciesKeepOutWhatNoInstallationNeeds(t *testing.T) {
	const monitoring = "namespace kubernetes.io/metadata.name=monitoring"
	shipped := map[string]reach{
		"ballast-planner": {[]string{"metrics: anywhere", "health: anywhere"}, []string{"open"}},
		"ballast-webhook": {[]string{"webhook: anywhere", "metrics: anywhere", "health: anywhere"}, []string{apiServer, dns}},
	}
	selfSigned := maps.Clone(shipped)
	selfSigned["ballast-certs"] = reach{Out: []string{apiServer, dns}}
	narrow := map[string]reach{
		"ballast-planner": {
			[]string{"metrics: " + monitoring, "health: anywhere"},
			[]string{"9090/TCP: anywhere", apiServer, "8082/TCP: pods <none>", dns},
		},
		"ballast-webhook": {[]string{"webhook: anywhere", "metrics: " + monitoring, "health: anywhere"}, []string{apiServer, dns}},
		"ballast-certs":   selfSigned["ballast-certs"],
	}
	patched := map[string]reach{
		"ballast-planner": {narrow["ballast-planner"].In, []string{"10902/TCP: anywhere", apiServer, "8082/TCP: pods <none>", dns}},
		"ballast-webhook": {[]string{"webhook: 10.0.0.10/32 10.0.0.11/32", "metrics: " + monitoring, "health: anywhere"}, []string{apiServer, dns}},
	}
	for dir, want := range map[string]map[string]reach{
		"base":                         shipped,
		overlays()["cert-manager"]:     shipped,
		overlays()["retarget-example"]: shipped,
		overlays()["self-signed"]:      selfSigned,
		everything:                     narrow,
		closed:                         patched,
	} {
		if diff := cmp.Diff(want, reaches(decode(t, build(t, dir)))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
	}
}

// TestNetworkPoliciesAreForTheirPods, in their namespace, and name ports that these have.
func TestNetworkPoliciesAreForTheirPods(t *testing.T) {
	for _, dir := range []string{overlays()["self-signed"], everything} {
		in := decode(t, build(t, dir))
		for name, policy := range in.NetworkPolicies {
			d := in.Deployments[name]
			if diff := cmp.Diff(d.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels); diff != "" || policy.Namespace != d.Namespace {
				t.Errorf("%s: %s is for other pods, in %q -Deployment +policy:\n%s", dir, name, policy.Namespace, diff)
			}
			served := map[string]bool{}
			for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
				served[p.Name] = true
			}
			let := map[string]bool{}
			for _, rule := range policy.Spec.Ingress {
				let[rule.Ports[0].Port.StrVal] = true
			}
			if diff := cmp.Diff(served, let); diff != "" {
				t.Errorf("%s: %s -ports served +ports let in:\n%s", dir, name, diff)
			}
		}
	}
}

// TestTheReadmeHasThePatchesThatAreTested word for word.
func TestTheReadmeHasThePatchesThatAreTested(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{closed, "testdata/priority"} {
		example, err := os.ReadFile(dir + "/kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, patch, found := strings.Cut(string(example), "patches:\n")
		if !found {
			t.Fatalf("%s patches nothing", dir)
		}
		var indented strings.Builder
		for line := range strings.Lines("patches:\n" + patch) {
			fmt.Fprint(&indented, "    ", line)
		}
		if !strings.Contains(string(readme), indented.String()) {
			t.Errorf("README.md does not have\n%s", indented.String())
		}
	}
}
