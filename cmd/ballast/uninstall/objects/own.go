// Package objects knows which of a cluster's objects are those of one installation of ballast, and deletes them.
package objects

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Installation is one in a cluster: its namespace, its ConfigMaps, and the webhook configuration that a person named.
type Installation struct{ Namespace, Plan, History, Webhooks string }

// outside is what has no namespace and may be ballast's, of any installation in the cluster.
type outside struct {
	webhooks       admissionv1.MutatingWebhookConfigurationList
	roles          rbacv1.ClusterRoleList
	bindings       rbacv1.ClusterRoleBindingList
	policies       admissionv1.ValidatingAdmissionPolicyList
	policyBindings admissionv1.ValidatingAdmissionPolicyBindingList
	classes        schedulingv1.PriorityClassList
}

// owned reports whether an object is of the installation in that namespace: it refers to no other, and where it refers
// to none its name ends in the namespace. The names of before, which had none, are known by what they refer to.
func owned(namespace string, o client.Object) bool {
	refers := namespacesOf(o)
	if len(refers) == 0 {
		return strings.HasSuffix(o.GetName(), "."+namespace) // a namespace has no dot, so "b" is no end of "a.b"'s
	}
	return !slices.ContainsFunc(refers, func(other string) bool { return other != namespace })
}

// its reports whether an object is one that ballast's manifests make, and of the installation in that namespace.
func its(namespace string, o client.Object) bool {
	return isBallasts(o) && made(o, strings.TrimSuffix(o.GetName(), "."+namespace)) && owned(namespace, o)
}

// namespacesOf is every namespace that an object refers to: whom it calls, whom it binds, where it is in force.
func namespacesOf(o client.Object) (names []string) {
	switch o := o.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for _, w := range o.Webhooks {
			names = append(names, calledFrom(w)...)
		}
	case *rbacv1.ClusterRoleBinding:
		for _, s := range o.Subjects {
			names = append(names, s.Namespace) // a user or a group has none, and is no installation's
		}
	case *admissionv1.ValidatingAdmissionPolicy:
		if m := o.Spec.MatchConstraints; m != nil {
			names = append(names, selected(m.NamespaceSelector)...)
		}
		for _, c := range o.Spec.MatchConditions {
			for _, account := range accounts.FindAllStringSubmatch(c.Expression, -1) {
				names = append(names, account[1])
			}
		}
	}
	return names
}

// calledFrom is where the Service is that a webhook calls; of one with a URL, where it is called from.
func calledFrom(w admissionv1.MutatingWebhook) []string {
	if s := w.ClientConfig.Service; s != nil {
		return []string{s.Namespace}
	}
	return selected(w.NamespaceSelector)
}

// accounts finds the account that a policy's conditions name, in one text or with its name in another.
var accounts = regexp.MustCompile(`"system:serviceaccount:([a-z0-9-]+):(?:[a-z0-9.-]+"|"\s*\+\s*"[a-z0-9.-]+")`)

func selected(s *metav1.LabelSelector) (names []string) {
	if s == nil {
		return nil
	}
	for _, e := range s.MatchExpressions {
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn {
			names = append(names, e.Values...)
		}
	}
	return names
}

// configurations are the webhook configurations of the installation in that namespace. It is an error if the one that
// is named is another's.
func (all *outside) configurations(namespace, named string) ([]client.Object, error) {
	for i := range all.webhooks.Items {
		if c := &all.webhooks.Items[i]; c.Name == named && !owned(namespace, c) {
			return nil, fmt.Errorf("MutatingWebhookConfiguration %q is for %q: uninstall takes out what calls a Service in %q; "+
				"name that one, or leave --webhook-configuration out", c.Name, namespacesOf(c), namespace)
		}
	}
	return only(all.webhooks.Items, func(c *admissionv1.MutatingWebhookConfiguration) bool {
		return c.Name == named && owned(namespace, c) || its(namespace, c)
	}), nil
}

func (all *outside) foreignConfigurations(namespace, named string) []client.Object {
	return only(all.webhooks.Items, func(c *admissionv1.MutatingWebhookConfiguration) bool {
		return c.Name != named && foreign(namespace, c)
	})
}

// rest is what else is of the installation in that namespace. What shows whose another object is comes after it, so
// that an uninstall that was interrupted goes on: a ClusterRole before its binding, a policy's binding before the
// policy.
func (all *outside) rest(namespace string) []client.Object {
	policies := only(all.policies.Items, func(p *admissionv1.ValidatingAdmissionPolicy) bool {
		return its(namespace, p)
	})
	bindings := only(all.bindings.Items, func(b *rbacv1.ClusterRoleBinding) bool {
		return its(namespace, b)
	})
	bound := all.bound(namespace)
	return slices.Concat(
		only(all.policyBindings.Items, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool {
			named := func(p client.Object) bool { return p.GetName() == b.Spec.PolicyName }
			return its(namespace, b) || made(b, b.Name) && slices.ContainsFunc(policies, named)
		}),
		policies,
		only(all.roles.Items, func(r *rbacv1.ClusterRole) bool { return its(namespace, r) || made(r, r.Name) && bound[r.Name] }),
		bindings,
		only(all.classes.Items, func(c *schedulingv1.PriorityClass) bool { return its(namespace, c) }),
	)
}

// foreign is what has ballast's label and is nobody's installation's, but the webhook configurations.
func (all *outside) foreign(namespace string) []client.Object {
	others := func(o client.Object) bool { return foreign(namespace, o) }
	return slices.Concat(
		only(all.policyBindings.Items, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return others(b) }),
		only(all.policies.Items, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return others(p) }),
		only(all.roles.Items, func(r *rbacv1.ClusterRole) bool { return others(r) }),
		only(all.bindings.Items, func(b *rbacv1.ClusterRoleBinding) bool { return others(b) }),
		only(all.classes.Items, func(c *schedulingv1.PriorityClass) bool { return others(c) }),
	)
}

// bound are the ClusterRoles that the installation's bindings give, and no other's.
func (all *outside) bound(namespace string) map[string]bool {
	names := map[string]bool{}
	for i := range all.bindings.Items {
		if b := &all.bindings.Items[i]; its(namespace, b) {
			names[b.RoleRef.Name] = true
		}
	}
	for i := range all.bindings.Items {
		if b := &all.bindings.Items[i]; !owned(namespace, b) {
			delete(names, b.RoleRef.Name)
		}
	}
	return names
}

// only keeps the objects that are wanted.
func only[T any, P interface {
	*T
	client.Object
}](items []T, wanted func(P) bool) (kept []client.Object) {
	for i := range items {
		if o := P(&items[i]); wanted(o) {
			kept = append(kept, o)
		}
	}
	return kept
}
