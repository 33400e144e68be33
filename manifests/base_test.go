package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ballast/planner/config"
	"ballast/planner/config/configfile"
	"ballast/planner/plan"
	"ballast/planner/store"
)

// rule is a policy rule on one line: verbs resources/group [names].
func rules(in install, role string) []string {
	var out []string
	for _, r := range in.Roles[role].Rules {
		names := ""
		if len(r.ResourceNames) > 0 {
			names = " named " + strings.Join(r.ResourceNames, ",")
		}
		out = append(out, fmt.Sprintf("%s %s of %q%s", strings.Join(r.Verbs, ","), strings.Join(r.Resources, ","), strings.Join(r.APIGroups, ","), names))
	}
	return out
}

func TestRolesGrantThisAndNothingElse(t *testing.T) {
	in := decode(t, build(t, "base"))
	want := map[string][]string{
		"ballast-planner": {
			`get,list,watch,patch secrets of ""`,
			`get,list,watch,create configmaps of ""`,
			`update,patch configmaps of "" named ballast-plan,ballast-history,ballast-plan-status`,
			`get,list,watch statefulsets,deployments of "apps"`,
			`get,list,watch pods of ""`,
			`list replicasets of "apps"`,
			`patch pods/resize of ""`,
			`list horizontalpodautoscalers of "autoscaling"`,
			`list scaledobjects of "keda.sh"`,
			`list verticalpodautoscalers of "autoscaling.k8s.io"`,
			`list poddisruptionbudgets of "policy"`,
			`create,patch events of ",events.k8s.io"`,
			`create leases of "coordination.k8s.io"`,
		},
		"ballast-planner-target": {
			`patch statefulsets,deployments,statefulsets/scale,deployments/scale of "apps" named argocd-application-controller`,
			`get,update leases of "coordination.k8s.io" named ballast-argocd-application-controller`,
		},
		"ballast-webhook": {`get,list,watch configmaps of "" named ballast-plan`},
	}
	got := map[string][]string{}
	for role := range in.Roles {
		got[role] = rules(in, role)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnlyTheTwoServiceAccountsAreBound(t *testing.T) {
	in := decode(t, build(t, "base"))
	got := map[string]string{}
	for name, b := range in.RoleBindings {
		for _, s := range b.Subjects {
			got[name] += fmt.Sprintf("%s %s %s/%s -> %s %s", b.Namespace, s.Kind, s.Namespace, s.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
	want := map[string]string{
		"ballast-planner":        "argocd ServiceAccount argocd/ballast-planner -> Role ballast-planner",
		"ballast-planner-target": "argocd ServiceAccount argocd/ballast-planner -> Role ballast-planner-target",
		"ballast-webhook":        "argocd ServiceAccount argocd/ballast-webhook -> Role ballast-webhook",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheWebhooksAreTheContracts(t *testing.T) {
	in := decode(t, build(t, "base"))
	hook := func(name string, rule admissionregistration.RuleWithOperations) admissionregistration.MutatingWebhook {
		rule.APIVersions, rule.Scope = []string{"v1"}, ptr.To(admissionregistration.NamespacedScope)
		return admissionregistration.MutatingWebhook{
			Name: name + ".ballast.argoproj.io",
			ClientConfig: admissionregistration.WebhookClientConfig{Service: &admissionregistration.ServiceReference{
				Name: "ballast-webhook", Namespace: "argocd", Path: ptr.To("/" + name), Port: ptr.To(int32(443)),
			}},
			Rules:                   []admissionregistration.RuleWithOperations{rule},
			FailurePolicy:           ptr.To(admissionregistration.Ignore),
			MatchPolicy:             ptr.To(admissionregistration.Equivalent),
			ReinvocationPolicy:      ptr.To(admissionregistration.IfNeededReinvocationPolicy),
			SideEffects:             ptr.To(admissionregistration.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(int32(2)),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"argocd"}},
			}},
		}
	}
	rule := func(group string, resources []string, operations ...admissionregistration.OperationType) admissionregistration.RuleWithOperations {
		return admissionregistration.RuleWithOperations{Operations: operations, Rule: admissionregistration.Rule{APIGroups: []string{group}, Resources: resources}}
	}
	named := func(name string) []admissionregistration.MatchCondition {
		return []admissionregistration.MatchCondition{{Name: "by-name", Expression: `request.name == "` + name + `"`}}
	}
	clusters := hook("clusters", rule("", []string{"secrets"}, "CREATE", "UPDATE"))
	clusters.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}}
	controllers := hook("controllers", rule("apps", []string{"statefulsets", "deployments"}, "CREATE", "UPDATE"))
	controllers.MatchConditions = named("argocd-application-controller")
	scale := hook("scale", rule("apps", []string{"statefulsets/scale", "deployments/scale"}, "UPDATE"))
	scale.MatchConditions = named("argocd-application-controller")
	plans := hook("plan", rule("", []string{"configmaps"}, "CREATE", "UPDATE"))
	plans.MatchConditions = named("ballast-plan")
	pods := hook("pods", rule("", []string{"pods"}, "CREATE"))
	pods.MatchConditions = []admissionregistration.MatchCondition{{Name: "by-owner", Expression: `["argocd-application-controller"].exists(name, object.metadata.?ownerReferences.orValue([]).exists(o, ` +
		`o.kind == 'StatefulSet' && o.name == name || o.kind == 'ReplicaSet' && o.name == name + '-' + object.metadata.?labels[?'pod-template-hash'].orValue('')))`}}
	want := []admissionregistration.MutatingWebhook{clusters, controllers, scale, plans, pods}
	if diff := cmp.Diff(want, in.Webhooks["ballast.argocd"].Webhooks); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheShippedConfigurationObserves(t *testing.T) {
	in := decode(t, build(t, "base"))
	text := in.ConfigMaps["ballast-config"].Data["config.yaml"]
	got, err := configfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Mode = plan.Observe
	want.Target = plan.Target{Namespace: "argocd", Name: "argocd-application-controller"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if quotes := strings.Count(text, `"`); quotes != 4 {
		t.Errorf("it has %d quotes; components/retarget counts on two quoted texts", quotes)
	}
	names := slices.Sorted(maps.Keys(in.ConfigMaps))
	if diff := cmp.Diff([]string{"ballast-config"}, names); diff != "" {
		t.Errorf("ConfigMaps -want +got:\n%s", diff)
	}
}

// The key is made by a planner, and a Secret that is shipped with data would be the same everywhere, or overwrite it.
func TestThePlansKeyIsShippedEmpty(t *testing.T) {
	for _, overlay := range []string{"overlays/cert-manager", "overlays/self-signed", "overlays/retarget-example"} {
		in := decode(t, build(t, overlay))
		s, there := in.Secrets[store.KeyName("ballast-plan")]
		if !there || len(in.Secrets) != 1 || s.Type != corev1.SecretTypeOpaque || len(s.Data)+len(s.StringData) > 0 {
			t.Errorf("%s ships %d Secrets, the key's there %v, with data %v", overlay, len(in.Secrets), there, s.Data)
		}
		if want := in.ConfigMaps["ballast-config"].Namespace; s.Namespace != want {
			t.Errorf("%s has it in %q, want %q", overlay, s.Namespace, want)
		}
	}
}
