package objects

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func labelled(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{PartOf: "ballast"}}
}

// calling is a webhook configuration that calls Services in these namespaces.
func calling(meta metav1.ObjectMeta, namespaces ...string) admissionv1.MutatingWebhookConfiguration {
	c := admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	for _, n := range namespaces {
		c.Webhooks = append(c.Webhooks, admissionv1.MutatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: n}}})
	}
	return c
}

func within(namespaces ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: namespaces}}}
}

func binding(name, role string, namespaces ...string) rbacv1.ClusterRoleBinding {
	b := rbacv1.ClusterRoleBinding{ObjectMeta: labelled(name), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}}
	for _, n := range namespaces {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "ballast-certs", Namespace: n})
	}
	return b
}

func namesOf(objects []client.Object) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return strings.Join(names, " ")
}

// TestTheWebhookConfigurationsOfAnInstallation: in namespace argocd, beside one in argocd-b.
func TestTheWebhookConfigurationsOfAnInstallation(t *testing.T) {
	byURL := admissionv1.MutatingWebhookConfiguration{ObjectMeta: labelled("ballast.argocd"), Webhooks: []admissionv1.MutatingWebhook{{NamespaceSelector: within("argocd")}}}
	for name, c := range map[string]struct {
		there       []admissionv1.MutatingWebhookConfiguration
		named       string
		want, fails string
	}{
		"its own and another's": {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast.argocd"), "argocd", "argocd"),
			calling(labelled("ballast.argocd-b"), "argocd-b")}, want: "ballast.argocd"},
		"the name of before, its own":     {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast"), "argocd")}, want: "ballast"},
		"the name of before, another's":   {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast"), "argocd-b")}},
		"both names, before an upgrade":   {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast"), "argocd"), calling(labelled("ballast.argocd"), "argocd")}, want: "ballast ballast.argocd"},
		"one that calls both":             {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast"), "argocd", "argocd-b")}},
		"its own name, calling another":   {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast.argocd"), "argocd-b")}},
		"nothing but a name":              {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast.argocd")), calling(labelled("ballast")), calling(labelled("ballast.argocd-b"))}, want: "ballast.argocd"},
		"a name that ends in its own":     {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast.not-argocd")), calling(labelled("ballast-argocd"))}},
		"somebody's, who calls argocd":    {there: []admissionv1.MutatingWebhookConfiguration{calling(metav1.ObjectMeta{Name: "policy"}, "argocd")}},
		"somebody's with ballast's label": {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("team-policy"), "argocd"), calling(labelled("team-policy.argocd"))}},
		"one by URL":                      {there: []admissionv1.MutatingWebhookConfiguration{byURL}, want: "ballast.argocd"},
		"one that is named, without ours": {there: []admissionv1.MutatingWebhookConfiguration{calling(metav1.ObjectMeta{Name: "mine"}, "argocd")}, named: "mine", want: "mine"},
		"another's that is named": {there: []admissionv1.MutatingWebhookConfiguration{calling(labelled("ballast.argocd-b"), "argocd-b")}, named: "ballast.argocd-b",
			fails: `MutatingWebhookConfiguration "ballast.argocd-b" is for ["argocd-b"]: uninstall takes out what calls a Service in "argocd"; name that one, or leave --webhook-configuration out`},
	} {
		all := outside{webhooks: admissionv1.MutatingWebhookConfigurationList{Items: c.there}}
		own, err := all.configurations("argocd", c.named)
		var fails string
		if err != nil {
			fails = err.Error()
		}
		if diff := cmp.Diff([]string{c.want, c.fails}, []string{namesOf(own), fails}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestTheRestOfAnInstallation: what has no namespace, of one in argocd beside one in argocd-b.
func TestTheRestOfAnInstallation(t *testing.T) {
	policy := func(name string, user string, namespaces ...string) admissionv1.ValidatingAdmissionPolicy {
		p := admissionv1.ValidatingAdmissionPolicy{ObjectMeta: labelled(name)}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{}
		if len(namespaces) > 0 {
			p.Spec.MatchConstraints.NamespaceSelector = within(namespaces...)
		}
		if user != "" {
			p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "by-user", Expression: `request.userInfo.username == "system:serviceaccount:` + user + `:ballast-certs"`}}
		}
		return p
	}
	inTwo := func(name, namespace string) admissionv1.ValidatingAdmissionPolicy {
		p := policy(name, "")
		p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "by-user",
			Expression: `request.userInfo.username == "system:serviceaccount:` + namespace + `:" + "ballast-planner"`}}
		return p
	}
	bind := func(name, policy string) admissionv1.ValidatingAdmissionPolicyBinding {
		return admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: labelled(name), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy}}
	}
	roles := func(names ...string) (l rbacv1.ClusterRoleList) {
		for _, n := range names {
			l.Items = append(l.Items, rbacv1.ClusterRole{ObjectMeta: labelled(n)})
		}
		return l
	}
	bindings := func(b ...rbacv1.ClusterRoleBinding) rbacv1.ClusterRoleBindingList {
		return rbacv1.ClusterRoleBindingList{Items: b}
	}
	theirs := func(namespace string) rbacv1.ClusterRoleBinding {
		b := binding("theirs", "ballast-certs", namespace)
		b.Labels = nil
		return b
	}
	for name, c := range map[string]struct {
		all  outside
		want string // in the order of deletion
	}{
		"rights of both": {outside{roles: roles("ballast-certs.argocd", "ballast-certs.argocd-b"), bindings: bindings(
			binding("ballast-certs.argocd", "ballast-certs.argocd", "argocd"), binding("ballast-certs.argocd-b", "ballast-certs.argocd-b", "argocd-b"))},
			"ballast-certs.argocd ballast-certs.argocd"},
		"rights of before, its own": {outside{roles: roles("ballast-certs"), bindings: bindings(binding("ballast-certs", "ballast-certs", "argocd"))},
			"ballast-certs ballast-certs"},
		"rights of before, another's":        {outside{roles: roles("ballast-certs"), bindings: bindings(binding("ballast-certs", "ballast-certs", "argocd-b"))}, ""},
		"rights of before that another uses": {outside{roles: roles("ballast-certs"), bindings: bindings(binding("ballast-certs", "ballast-certs", "argocd"), theirs("argocd-b"))}, "ballast-certs"},
		"rights of both at once":             {outside{roles: roles("ballast-certs"), bindings: bindings(binding("ballast-certs", "ballast-certs", "argocd", "argocd-b"))}, ""},
		"a role by its name alone":           {outside{roles: roles("ballast-certs.argocd", "ballast-certs", "ballast-certs-team-b", "x.argocd-b")}, "ballast-certs.argocd"},
		"others' names with ballast's label": {outside{roles: roles("pinner.argocd", "pinner"), bindings: bindings(binding("pinner.argocd", "pinner.argocd", "argocd"),
			binding("pinner", "pinner", "argocd"), binding("ballast-certs", "pinner", "argocd")),
			policies:       admissionv1.ValidatingAdmissionPolicyList{Items: []admissionv1.ValidatingAdmissionPolicy{policy("team-limits", "", "argocd"), policy("team-limits.argocd", "")}},
			policyBindings: admissionv1.ValidatingAdmissionPolicyBindingList{Items: []admissionv1.ValidatingAdmissionPolicyBinding{bind("team-limits", "team-limits"), bind("team.argocd", "ballast-floor.argocd")}},
			classes:        schedulingv1.PriorityClassList{Items: []schedulingv1.PriorityClass{{ObjectMeta: labelled("team.argocd")}}},
		}, "ballast-certs"},
		"somebody's binding without ballast's": {outside{bindings: bindings(theirs("argocd"))}, ""},
		"a policy of each, by user and by selector": {outside{
			policies: admissionv1.ValidatingAdmissionPolicyList{Items: []admissionv1.ValidatingAdmissionPolicy{policy("ballast-certs.argocd", "argocd"), policy("ballast-certs.argocd-b", "argocd-b"),
				policy("ballast-floor.argocd", "", "argocd"), policy("ballast-floor.argocd-b", "", "argocd-b")}},
			policyBindings: admissionv1.ValidatingAdmissionPolicyBindingList{Items: []admissionv1.ValidatingAdmissionPolicyBinding{bind("ballast-certs.argocd", "ballast-certs.argocd"), bind("ballast-certs.argocd-b", "ballast-certs.argocd-b")}},
		}, "ballast-certs.argocd ballast-certs.argocd ballast-floor.argocd"},
		"a policy of before, its own": {outside{
			policies:       admissionv1.ValidatingAdmissionPolicyList{Items: []admissionv1.ValidatingAdmissionPolicy{policy("ballast-certs", "argocd")}},
			policyBindings: admissionv1.ValidatingAdmissionPolicyBindingList{Items: []admissionv1.ValidatingAdmissionPolicyBinding{bind("ballast-certs", "ballast-certs")}},
		}, "ballast-certs ballast-certs"},
		"a policy of before, another's": {outside{
			policies:       admissionv1.ValidatingAdmissionPolicyList{Items: []admissionv1.ValidatingAdmissionPolicy{policy("ballast-certs", "argocd-b"), policy("ballast-floor", "", "argocd-b")}},
			policyBindings: admissionv1.ValidatingAdmissionPolicyBindingList{Items: []admissionv1.ValidatingAdmissionPolicyBinding{bind("ballast-certs", "ballast-certs"), bind("ballast-floor", "ballast-floor")}},
		}, ""},
		"a policy of the planner's, whose account stands in two texts": {outside{
			policies: admissionv1.ValidatingAdmissionPolicyList{Items: []admissionv1.ValidatingAdmissionPolicy{
				inTwo("ballast-planner", "argocd"), inTwo("ballast-planner-b", "argocd-b"), inTwo("ballast-plan.argocd", "argocd-b")}},
			policyBindings: admissionv1.ValidatingAdmissionPolicyBindingList{Items: []admissionv1.ValidatingAdmissionPolicyBinding{
				bind("ballast-planner", "ballast-planner"), bind("ballast-planner-b", "ballast-planner-b")}},
		}, "ballast-planner ballast-planner"},
		"priority classes": {outside{classes: schedulingv1.PriorityClassList{Items: []schedulingv1.PriorityClass{{ObjectMeta: labelled("ballast.argocd")}, {ObjectMeta: labelled("ballast.argocd-b")}}}},
			"ballast.argocd"},
	} {
		if diff := cmp.Diff(c.want, namesOf(c.all.rest("argocd"))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
