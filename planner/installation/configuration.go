package installation

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"ballast/manifests/base"
	"ballast/planner/plan"
)

// What the shipped configuration names, which components/retarget replaces.
const (
	shippedNamespace = "argocd"
	shippedWorkload  = "argocd-application-controller"
	shippedPlan      = "ballast-plan"
)

// OldName is the configuration's in older releases, in whatever namespace ballast is.
const OldName = "ballast"

// Shipped is the configuration as the manifests install it for these names.
func Shipped(n Names) (*admissionv1.MutatingWebhookConfiguration, error) {
	c := &admissionv1.MutatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(base.WebhookConfiguration(), c); err != nil {
		return nil, fmt.Errorf("decoding the webhook configuration that ballast ships: %w", err)
	}
	if name, ok := strings.CutSuffix(c.Name, "."+shippedNamespace); ok {
		c.Name = name + "." + n.Namespace
	}
	quoted := strings.NewReplacer(strconv.Quote(shippedNamespace), strconv.Quote(n.Namespace),
		strconv.Quote(shippedWorkload), strconv.Quote(n.Workload), strconv.Quote(shippedPlan), strconv.Quote(n.Plan))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		w.ClientConfig.Service.Namespace = n.Namespace
		for j := range w.NamespaceSelector.MatchExpressions {
			w.NamespaceSelector.MatchExpressions[j].Values = []string{n.Namespace}
		}
		for j, condition := range w.MatchConditions {
			w.MatchConditions[j].Expression = quoted.Replace(condition.Expression)
		}
	}
	return c, nil
}

// mostDifferences bounds what is told of a configuration that has nothing in common with the shipped one.
const mostDifferences = 20

// unasked is the webhook that no probe asks: a planner that may create pods, by a dry-run, may mount every Secret into
// one.
const unasked = "pods." + plan.Group

// Compare finds what of the shipped configuration the installed one does not have, and what it has beside it. Content
// of the installed one is not shown. The caBundle is made where ballast is installed, and the probe finds one that does
// not fit: but of the webhook that it does not ask, whose caBundle is to be that of another one.
func Compare(shipped, installed *admissionv1.MutatingWebhookConfiguration) []Finding {
	var found []Finding
	add := func(webhook, field, what string) {
		found = append(found, Finding{Kind: Changed, Subject: strings.TrimSpace(webhook + " " + field),
			Message: fmt.Sprintf(
				"MutatingWebhookConfiguration %q: %s; `kubectl diff -k` with your overlay shows what differs, `kubectl apply -k` puts it back",
				shipped.Name, what)})
	}
	for _, want := range shipped.Webhooks {
		i := slices.IndexFunc(installed.Webhooks, func(w admissionv1.MutatingWebhook) bool { return w.Name == want.Name })
		if i < 0 {
			add(want.Name, "", fmt.Sprintf("the webhook %s is missing, so that nothing holds what it is for",
				want.Name))
			continue
		}
		for _, f := range fields() {
			if got := installed.Webhooks[i]; !equality.Semantic.DeepEqual(f.of(want), f.of(got)) {
				add(want.Name, f.name, fmt.Sprintf("%s of the webhook %s is not what is shipped", f.name, want.Name))
			}
		}
	}
	if !trusted(installed.Webhooks) {
		add(unasked, "caBundle", fmt.Sprintf("the caBundle of the webhook %s is that of no other, so that the API server may not believe "+
			"who answers", unasked))
	}
	for _, got := range installed.Webhooks {
		if !slices.ContainsFunc(shipped.Webhooks, func(w admissionv1.MutatingWebhook) bool { return w.Name == got.Name }) {
			add(got.Name, "", fmt.Sprintf("the webhook %q is not shipped", got.Name))
		}
	}
	if more := len(found) - mostDifferences; more > 0 {
		found = found[:mostDifferences]
		add("", "and more", fmt.Sprintf("%d more differences", more))
	}
	return found
}

// clusters is the one webhook that may fail closed.
const clusters = "clusters." + plan.Group

// Opened is an installed configuration as it would be without components/fail-closed: where cluster Secrets wait for
// the webhook, the planner's own writes do not, but for its probe, nor do those of ballast's own Secrets. No other
// account's may pass unasked.
func Opened(n Names, installed *admissionv1.MutatingWebhookConfiguration) *admissionv1.MutatingWebhookConfiguration {
	opened := installed.DeepCopy()
	for i := range opened.Webhooks {
		w := &opened.Webhooks[i]
		if w.Name != clusters || ptr.Deref(w.FailurePolicy, "") != admissionv1.Fail {
			continue
		}
		w.MatchConditions = slices.DeleteFunc(w.MatchConditions, func(c admissionv1.MatchCondition) bool {
			return c == notThePlanner(n.Planner) || c == notBallastsOwn()
		})
	}
	return opened
}

// notThePlanner is the condition of that component, for the planner's account.
func notThePlanner(user string) admissionv1.MatchCondition {
	account := strings.LastIndex(user, ":") + 1
	return admissionv1.MatchCondition{Name: "not-the-planner",
		Expression: fmt.Sprintf("request.userInfo.username != %q + %q || request.dryRun == true", user[:account],
			user[account:])}
}

// notBallastsOwn is the other condition of that component: with Argo CD's label on the webhook's certificate, what
// mends it would wait for the webhook that has no good one. A create by generateName has no request.name.
func notBallastsOwn() admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: "not-ballasts-own", Expression: "!(request.?name.orValue('') in " +
		"['ballast-ca', 'ballast-client-ca', 'ballast-plan-key', 'ballast-webhook-ca', 'ballast-webhook-tls'])"}
}

// trusted reports whether the webhook that no probe asks has the caBundle of one that it does.
func trusted(webhooks []admissionv1.MutatingWebhook) bool {
	i := slices.IndexFunc(webhooks, func(w admissionv1.MutatingWebhook) bool { return w.Name == unasked })
	return i < 0 || slices.ContainsFunc(webhooks, func(w admissionv1.MutatingWebhook) bool {
		return w.Name != unasked && bytes.Equal(w.ClientConfig.CABundle, webhooks[i].ClientConfig.CABundle)
	})
}

// field is one that decides whether a webhook is asked, and what its answer is worth. of is what is compared of it.
type field struct {
	name string
	of   func(admissionv1.MutatingWebhook) any
}

func fields() []field {
	return []field{
		{"rules", func(w admissionv1.MutatingWebhook) any { return sortedRules(w.Rules) }},
		{"namespaceSelector", func(w admissionv1.MutatingWebhook) any { return selector(w.NamespaceSelector) }},
		{"objectSelector", func(w admissionv1.MutatingWebhook) any { return selector(w.ObjectSelector) }},
		{"matchConditions", func(w admissionv1.MutatingWebhook) any { return w.MatchConditions }},
		{"matchPolicy", func(w admissionv1.MutatingWebhook) any { return w.MatchPolicy }},
		{"clientConfig.service", func(w admissionv1.MutatingWebhook) any { return service(w.ClientConfig) }},
		{"failurePolicy", failurePolicy},
		{"reinvocationPolicy", func(w admissionv1.MutatingWebhook) any { return w.ReinvocationPolicy }},
		{"sideEffects", func(w admissionv1.MutatingWebhook) any { return w.SideEffects }},
		{"timeoutSeconds", func(w admissionv1.MutatingWebhook) any { return w.TimeoutSeconds }},
		{"admissionReviewVersions", func(w admissionv1.MutatingWebhook) any { return w.AdmissionReviewVersions }},
	}
}

// selector is one that selects everything where there is none.
func selector(s *metav1.LabelSelector) metav1.LabelSelector {
	return ptr.Deref(s, metav1.LabelSelector{})
}

// service is whom a webhook's calls go to; one with a URL calls no Service.
func service(c admissionv1.WebhookClientConfig) any {
	s := ptr.Deref(c.Service, admissionv1.ServiceReference{})
	port := strconv.Itoa(int(ptr.Deref(s.Port, 443)))
	return []string{ptr.Deref(c.URL, ""), s.Namespace, s.Name, ptr.Deref(s.Path, ""), port}
}

// failurePolicy is Fail for clusters. where components/fail-closed is used, which is as good as Ignore. All others may
// lock people out.
func failurePolicy(w admissionv1.MutatingWebhook) any {
	if p := ptr.Deref(w.FailurePolicy, ""); w.Name != clusters || p != admissionv1.Fail {
		return p
	}
	return admissionv1.Ignore
}

// sortedRules are rules whose lists are in order, for their order means nothing.
func sortedRules(rules []admissionv1.RuleWithOperations) []admissionv1.RuleWithOperations {
	sorted := make([]admissionv1.RuleWithOperations, len(rules))
	for i := range rules {
		r := *rules[i].DeepCopy()
		slices.Sort(r.Operations)
		slices.Sort(r.APIGroups)
		slices.Sort(r.APIVersions)
		slices.Sort(r.Resources)
		sorted[i] = r
	}
	return sorted
}

// Left finds a configuration of an older release that still asks this installation's webhook: each write is answered
// twice, and by rules that nobody keeps. One of another namespace is another installation's.
func Left(shipped, old *admissionv1.MutatingWebhookConfiguration, namespace string) []Finding {
	if shipped.Name == old.Name || !slices.ContainsFunc(old.Webhooks, func(w admissionv1.MutatingWebhook) bool {
		return w.ClientConfig.Service != nil && w.ClientConfig.Service.Namespace == namespace
	}) {
		return nil
	}
	return []Finding{{Kind: LeftBehind, Subject: old.Name, Message: fmt.Sprintf(
		"MutatingWebhookConfiguration %q is an older release's, whose place %q takes: kubectl delete mutatingwebhookconfiguration %s",
		old.Name, shipped.Name, old.Name)}}
}
