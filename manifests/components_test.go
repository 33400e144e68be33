package manifests

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"ballast/certs"
)

const (
	everything = "testdata/everything"
	failClosed = "testdata/fail-closed"
	floor      = "ballast-floor." + namespace
)

func TestSelfSignedGrantsThisAndNothingElse(t *testing.T) {
	in := decode(t, build(t, overlays()["self-signed"]))
	want := []string{
		`get,update,watch secrets of "" named ` + certs.CASecret + `,` + certs.LeafTLS,
		`create secrets of ""`,
	}
	if diff := cmp.Diff(want, rules(in, "ballast-certs")); diff != "" {
		t.Errorf("Role -want +got:\n%s", diff)
	}
	wantCluster := []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
		ResourceNames: []string{"ballast.argocd"}, Verbs: []string{"get", "watch", "patch"},
	}}
	if diff := cmp.Diff(wantCluster, in.ClusterRoles["ballast-certs.argocd"].Rules); diff != "" {
		t.Errorf("ClusterRole -want +got:\n%s", diff)
	}
	base := decode(t, build(t, "base"))
	for role := range base.Roles {
		if diff := cmp.Diff(rules(base, role), rules(in, role)); diff != "" {
			t.Errorf("%s -base +self-signed:\n%s", role, diff)
		}
	}
}

// TestSelfSignedIsBoundAndUsed in the namespace it was made for, and in another one.
func TestSelfSignedIsBoundAndUsed(t *testing.T) {
	for dir, namespace := range map[string]string{overlays()["self-signed"]: "argocd", everything: namespace} {
		in := decode(t, build(t, dir))
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "ballast-certs", Namespace: namespace}}
		role, cluster := in.RoleBindings["ballast-certs"], in.ClusterBindings["ballast-certs."+namespace]
		if diff := cmp.Diff(subjects, role.Subjects) + cmp.Diff(subjects, cluster.Subjects); diff != "" {
			t.Errorf("%s: -want +got:\n%s", dir, diff)
		}
		if role.RoleRef.Kind+role.RoleRef.Name != "Roleballast-certs" || cluster.RoleRef.Kind+cluster.RoleRef.Name != "ClusterRoleballast-certs."+namespace {
			t.Errorf("%s: bound to %v and %v", dir, role.RoleRef, cluster.RoleRef)
		}
		d := in.Deployments["ballast-certs"]
		for what, got := range map[string]string{
			"the Role": in.Roles["ballast-certs"].Namespace, "its binding": role.Namespace, "the Deployment": d.Namespace,
			"the account": in.ServiceAccounts["ballast-certs"].Namespace,
		} {
			if got != namespace {
				t.Errorf("%s: %s is in %q", dir, what, got)
			}
		}
		if got := d.Spec.Template.Spec.ServiceAccountName; got != "ballast-certs" {
			t.Errorf("%s: it runs as %s", dir, got)
		}
	}
}

func TestSelfSignedRunsHardenedAndAsTheWebhookExpects(t *testing.T) {
	in := decode(t, build(t, overlays()["self-signed"]))
	d, webhook := in.Deployments["ballast-certs"], in.Deployments["ballast-webhook"]
	pod, like := d.Spec.Template.Spec, webhook.Spec.Template.Spec
	if diff := cmp.Diff(like.SecurityContext, pod.SecurityContext) + cmp.Diff(like.Containers[0].SecurityContext, pod.Containers[0].SecurityContext); diff != "" {
		t.Errorf("-webhook +certs:\n%s", diff)
	}
	if got := strings.Join(pod.Containers[0].Args, " "); got != "certs --namespace=$(POD_NAMESPACE)" || *d.Spec.Replicas != 1 || len(pod.Volumes) > 0 {
		t.Errorf("args %s, %d replicas, %d volumes", got, *d.Spec.Replicas, len(pod.Volumes))
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("it does not select its own pods by %s", k)
		}
	}
	if limits := pod.Containers[0].Resources.Limits; limits.Memory().String() != "128Mi" || !limits.Cpu().IsZero() {
		t.Errorf("limits %v", limits)
	}
	settings := certs.DefaultSettings()
	service := in.Webhooks["ballast.argocd"].Webhooks[0].ClientConfig.Service
	if service.Name != settings.Service || service.Namespace != settings.Namespace {
		t.Errorf("the webhooks call %s/%s, the certificate is for %v", service.Namespace, service.Name, settings)
	}
	if got := mounts(like)["/etc/ballast/tls"]; got != certs.LeafTLS {
		t.Errorf("the webhook mounts %s", got)
	}
}

func TestSelfSignedNeedsNothingOfCertManager(t *testing.T) {
	for _, dir := range []string{overlays()["self-signed"], everything} {
		if found := regexp.MustCompile(`cert-manager\.io\S*`).FindString(string(build(t, dir))); found != "" {
			t.Errorf("%s: %s", dir, found)
		}
	}
}

// TestOnlyThisIsClusterScoped in every overlay, and with every component: each name has the namespace, so that two
// installations in one cluster have nothing in common.
func TestOnlyThisIsClusterScoped(t *testing.T) {
	shipped := []string{"ClusterRole ballast-planner.argocd", "ClusterRoleBinding ballast-planner.argocd", "MutatingWebhookConfiguration ballast.argocd", "PriorityClass ballast.argocd",
		"ValidatingAdmissionPolicy ballast-plan.argocd", "ValidatingAdmissionPolicy ballast-planner.argocd", "ValidatingAdmissionPolicy ballast-pods.argocd",
		"ValidatingAdmissionPolicyBinding ballast-plan.argocd", "ValidatingAdmissionPolicyBinding ballast-planner.argocd", "ValidatingAdmissionPolicyBinding ballast-pods.argocd"}
	for dir, want := range map[string][]string{
		"base": shipped,
		overlays()["cert-manager"]: slices.Sorted(slices.Values(slices.Concat(shipped,
			[]string{"ValidatingAdmissionPolicy ballast-issuer.argocd", "ValidatingAdmissionPolicyBinding ballast-issuer.argocd"}))),
		overlays()["self-signed"]: {
			"ClusterRole ballast-certs.argocd", "ClusterRole ballast-planner.argocd", "ClusterRoleBinding ballast-certs.argocd", "ClusterRoleBinding ballast-planner.argocd", "MutatingWebhookConfiguration ballast.argocd", "PriorityClass ballast.argocd",
			"ValidatingAdmissionPolicy ballast-certs-webhooks.argocd", "ValidatingAdmissionPolicy ballast-certs.argocd", "ValidatingAdmissionPolicy ballast-plan.argocd", "ValidatingAdmissionPolicy ballast-planner.argocd", "ValidatingAdmissionPolicy ballast-pods.argocd",
			"ValidatingAdmissionPolicyBinding ballast-certs-webhooks.argocd", "ValidatingAdmissionPolicyBinding ballast-certs.argocd", "ValidatingAdmissionPolicyBinding ballast-plan.argocd", "ValidatingAdmissionPolicyBinding ballast-planner.argocd", "ValidatingAdmissionPolicyBinding ballast-pods.argocd",
		},
		overlays()["retarget-example"]: {"ClusterRole ballast-planner.gitops", "ClusterRoleBinding ballast-planner.gitops", "MutatingWebhookConfiguration ballast.gitops", "PriorityClass ballast.gitops",
			"ValidatingAdmissionPolicy ballast-issuer.gitops", "ValidatingAdmissionPolicy ballast-plan.gitops", "ValidatingAdmissionPolicy ballast-planner.gitops", "ValidatingAdmissionPolicy ballast-pods.gitops",
			"ValidatingAdmissionPolicyBinding ballast-issuer.gitops", "ValidatingAdmissionPolicyBinding ballast-plan.gitops", "ValidatingAdmissionPolicyBinding ballast-planner.gitops", "ValidatingAdmissionPolicyBinding ballast-pods.gitops"},
		everything: {
			"ClusterRole ballast-certs.gitops", "ClusterRole ballast-planner-nodes.gitops", "ClusterRole ballast-planner-nudge.gitops", "ClusterRole ballast-planner.gitops",
			"ClusterRoleBinding ballast-certs.gitops", "ClusterRoleBinding ballast-planner-nodes.gitops",
			"ClusterRoleBinding ballast-planner-nudge.gitops", "ClusterRoleBinding ballast-planner.gitops",
			"MutatingWebhookConfiguration ballast.gitops", "PriorityClass ballast.gitops",
			"ValidatingAdmissionPolicy ballast-certs-webhooks.gitops", "ValidatingAdmissionPolicy ballast-certs.gitops", "ValidatingAdmissionPolicy ballast-floor.gitops",
			"ValidatingAdmissionPolicy ballast-plan.gitops", "ValidatingAdmissionPolicy ballast-planner.gitops", "ValidatingAdmissionPolicy ballast-pods.gitops",
			"ValidatingAdmissionPolicyBinding ballast-certs-webhooks.gitops", "ValidatingAdmissionPolicyBinding ballast-certs.gitops", "ValidatingAdmissionPolicyBinding ballast-floor.gitops",
			"ValidatingAdmissionPolicyBinding ballast-plan.gitops", "ValidatingAdmissionPolicyBinding ballast-planner.gitops", "ValidatingAdmissionPolicyBinding ballast-pods.gitops",
		},
	} {
		if diff := cmp.Diff(want, clusterScoped(t, dir)); diff != "" {
			t.Errorf("%s -want +got:\n%s", dir, diff)
		}
	}
}

// TestTheReadmeListsWhatIsClusterScoped: its table has what the overlays and components make, and no more.
func TestTheReadmeListsWhatIsClusterScoped(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| object | name |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.SplitSeq(table, "\n") {
		kinds, names, _ := strings.Cut(strings.Trim(row, "| "), " | ")
		for kind := range strings.SplitSeq(kinds, ", ") {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(names, -1) {
				listed = append(listed, kind+" "+name[1])
			}
		}
	}
	slices.Sort(listed)
	var built []string
	for _, dir := range []string{"base", overlays()["cert-manager"], overlays()["self-signed"], everything} {
		for _, name := range clusterScoped(t, dir) {
			built = append(built, strings.Replace(name, "."+namespace, ".argocd", 1))
		}
	}
	slices.Sort(built)
	if diff := cmp.Diff(slices.Compact(built), listed); diff != "" {
		t.Errorf("-built +listed:\n%s", diff)
	}
}

// TestWhatRefersToAClusterScopedNameFollowsIt to another namespace.
func TestWhatRefersToAClusterScopedNameFollowsIt(t *testing.T) {
	for dir, namespace := range map[string]string{overlays()["self-signed"]: "argocd", everything: namespace} {
		in := decode(t, build(t, dir))
		got := map[string]string{
			"ClusterRole":              in.ClusterRoles["ballast-certs."+namespace].Rules[0].ResourceNames[0],
			"planner pods":             in.Deployments["ballast-planner"].Spec.Template.Spec.PriorityClassName,
			"webhook pods":             in.Deployments["ballast-webhook"].Spec.Template.Spec.PriorityClassName,
			"ballast certs by default": certs.Settings{Namespace: namespace}.Configuration(),
		}
		want := map[string]string{"ClusterRole": "ballast." + namespace, "planner pods": "ballast." + namespace, "webhook pods": "ballast." + namespace,
			"ballast certs by default": "ballast." + namespace}
		for name, b := range in.ClusterBindings {
			got[name], want[name] = b.RoleRef.Name, name
		}
		for name, b := range in.PolicyBindings {
			got[name+", a policy's"], want[name+", a policy's"] = b.Spec.PolicyName, name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s -want +got:\n%s", dir, diff)
		}
	}
}

// TestPoliciesStayWithTheirOwnInstallation: each matches one namespace, or one account of it.
func TestPoliciesStayWithTheirOwnInstallation(t *testing.T) {
	for name, p := range decode(t, build(t, everything)).Policies {
		var within []string
		if selector := p.Spec.MatchConstraints.NamespaceSelector; selector != nil {
			within = selector.MatchExpressions[0].Values
		}
		for _, c := range p.Spec.MatchConditions {
			if c.Name == "by-user" {
				within = append(within, strings.Split(c.Expression, ":")[2])
			}
		}
		if diff := cmp.Diff([]string{namespace}, within); diff != "" {
			t.Errorf("%s is in force elsewhere: -want +got:\n%s", name, diff)
		}
	}
}

func clusterScoped(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for doc := range strings.SplitSeq(string(build(t, dir)), "\n---\n") {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatal(err)
		}
		if head.Namespace == "" {
			found = append(found, head.Kind+" "+head.Name)
		}
	}
	slices.Sort(found)
	return found
}

func TestRetargetedComponentsLeaveNothingOldBehind(t *testing.T) {
	text := withoutCommand(build(t, everything))
	for _, old := range []string{`\bargocd\n`, `"argocd"`, `\bargocd/`, `\.argocd\.`, `:argocd:`, `[^-]argocd-application-controller`, `cert-manager`} {
		if found := regexp.MustCompile(`(?m).*`+old+`.*`).FindAllString(text, -1); len(found) > 0 {
			t.Errorf("%s is left in %q", old, found)
		}
	}
	selector := decode(t, []byte(text)).Policies[floor].Spec.MatchConstraints.NamespaceSelector
	if got := selector.MatchExpressions[0].Values; !cmp.Equal(got, []string{namespace}) {
		t.Errorf("the floor is laid in %v", got)
	}
}

func TestFailClosedIsForClustersOnlyAndChangesNothingElse(t *testing.T) {
	want, got := decode(t, build(t, overlays()["cert-manager"])), decode(t, build(t, failClosed))
	want.Webhooks["ballast.argocd"].Labels["ballast.argoproj.io/fail-closed"] = "true"
	for i, w := range want.Webhooks["ballast.argocd"].Webhooks {
		if w.Name == "clusters.ballast.argoproj.io" {
			of := &want.Webhooks["ballast.argocd"].Webhooks[i]
			of.FailurePolicy = ptr.To(admissionregistration.Fail)
			of.MatchConditions = waitsForNoWebhook("argocd", "ballast-planner")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// waitsForNoWebhook is what keeps the planner's own writes, and those of ballast's own Secrets, from waiting for the webhook.
func waitsForNoWebhook(namespace, account string) []admissionregistration.MatchCondition {
	return []admissionregistration.MatchCondition{
		{Name: "not-the-planner",
			Expression: fmt.Sprintf(`request.userInfo.username != "system:serviceaccount:%s:" + %q || request.dryRun == true`, namespace, account)},
		{Name: "not-ballasts-own",
			Expression: `!(request.?name.orValue('') in ['ballast-ca', 'ballast-client-ca', 'ballast-plan-key', ` +
				`'ballast-webhook-ca', 'ballast-webhook-tls'])`},
	}
}

// TestWhoWaitsForNoWebhookIsThePlannerAsItIsInstalled: under another name, and in another namespace, nobody else's writes pass unasked.
func TestWhoWaitsForNoWebhookIsThePlannerAsItIsInstalled(t *testing.T) {
	in := decode(t, build(t, "testdata/closed-retargeted"))
	if account := in.Deployments["ballast-planner"].Spec.Template.Spec.ServiceAccountName; account != "my-planner" {
		t.Errorf("the planner runs as %s", account)
	}
	for _, w := range in.Webhooks["ballast."+namespace].Webhooks {
		if diff := cmp.Diff(waitsForNoWebhook(namespace, "my-planner"), w.MatchConditions); (diff == "") != (w.Name == "clusters.ballast.argoproj.io") {
			t.Errorf("%s (-want +got):\n%s", w.Name, diff)
		}
	}
}

func TestTheFloorIsLaidWhereTheWebhookStands(t *testing.T) {
	in := decode(t, build(t, everything))
	var webhook admissionregistration.MutatingWebhook
	for _, w := range in.Webhooks["ballast."+namespace].Webhooks {
		if w.Name == "clusters.ballast.argoproj.io" {
			webhook = w
		}
	}
	policy, binding := in.Policies[floor], in.PolicyBindings[floor]
	match := policy.Spec.MatchConstraints
	if diff := cmp.Diff(webhook.NamespaceSelector, match.NamespaceSelector) + cmp.Diff(webhook.ObjectSelector, match.ObjectSelector); diff != "" {
		t.Errorf("selectors -webhook +floor:\n%s", diff)
	}
	if len(match.ResourceRules) != 1 {
		t.Fatalf("%d rules", len(match.ResourceRules))
	}
	if diff := cmp.Diff(webhook.Rules[0], match.ResourceRules[0].RuleWithOperations); diff != "" {
		t.Errorf("rules -webhook +floor:\n%s", diff)
	}
	if *policy.Spec.FailurePolicy != admissionregistration.Ignore {
		t.Error("it refuses what it cannot judge")
	}
	ref := binding.Spec.ParamRef
	if binding.Spec.PolicyName != policy.Name || ref.Name != "ballast-plan" || *ref.ParameterNotFoundAction != admissionregistration.AllowAction || ref.Namespace != "" {
		t.Errorf("it binds %s to %+v", binding.Spec.PolicyName, ref)
	}
	if diff := cmp.Diff([]admissionregistration.ValidationAction{admissionregistration.Deny}, binding.Spec.ValidationActions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
