package main

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

// partOf is the label of everything that ballast's manifests install; its value is "ballast".
const partOf = "app.kubernetes.io/part-of"

func isBallasts(o client.Object) bool { return o.GetLabels()[partOf] == "ballast" }

// outside is what has no namespace and may be ballast's, of any installation in the cluster.
type outside struct {
	webhooks       admissionv1.MutatingWebhookConfigurationList
	roles          rbacv1.ClusterRoleList
	bindings       rbacv1.ClusterRoleBindingList
	policies       admissionv1.ValidatingAdmissionPolicyList
	policyBindings admissionv1.ValidatingAdmissionPolicyBindingList
	classes        schedulingv1.PriorityClassList
}

// owned reports whether an object is of the installation in that namespace: it refers to no other, and where it refers to
// none its name ends in the namespace. The names of before, which had none, are known by what they refer to.
func owned(namespace string, o client.Object) bool {
	refers := namespacesOf(o)
	if len(refers) == 0 {
		return strings.HasSuffix(o.GetName(), "."+namespace) // a namespace has no dot, so "b" is no end of "a.b"'s
	}
	return !slices.ContainsFunc(refers, func(other string) bool { return other != namespace })
}

// namespacesOf is every namespace that an object refers to: whom it calls, whom it binds, where it is in force.
func namespacesOf(o client.Object) (names []string) {
	switch o := o.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for _, w := range o.Webhooks {
			if s := w.ClientConfig.Service; s != nil {
				names = append(names, s.Namespace)
			} else {
				names = append(names, selected(w.NamespaceSelector)...)
			}
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

// accounts finds a policy's by-user condition.
var accounts = regexp.MustCompile(`"system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+"`)

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

// configurations are the webhook configurations of the installation in that namespace. It is an error if the one that is
// named is another's.
func (all *outside) configurations(namespace, named string) (own []client.Object, err error) {
	for i := range all.webhooks.Items {
		c := &all.webhooks.Items[i]
		switch mine := owned(namespace, c); {
		case c.Name == named && !mine:
			return nil, fmt.Errorf("MutatingWebhookConfiguration %q is for %q: uninstall takes out what calls a Service in %q; name that one, or leave --webhook-configuration out",
				c.Name, namespacesOf(c), namespace)
		case mine && (c.Name == named || isBallasts(c)):
			own = append(own, c)
		}
	}
	return own, nil
}

// rest is what else is of the installation in that namespace. What shows whose another object is comes after it, so that
// an uninstall that was interrupted goes on: a ClusterRole before its binding, a policy's binding before the policy.
func (all *outside) rest(namespace string) (own []client.Object) {
	bound, policies := map[string]bool{}, map[string]bool{}
	var bindings, rules []client.Object
	for i := range all.bindings.Items {
		if b := &all.bindings.Items[i]; isBallasts(b) && owned(namespace, b) {
			bindings, bound[b.RoleRef.Name] = append(bindings, b), true
		}
	}
	for i := range all.bindings.Items {
		if b := &all.bindings.Items[i]; !owned(namespace, b) {
			delete(bound, b.RoleRef.Name)
		}
	}
	for i := range all.policies.Items {
		if p := &all.policies.Items[i]; owned(namespace, p) {
			rules, policies[p.Name] = append(rules, p), true
		}
	}
	for i := range all.policyBindings.Items {
		if b := &all.policyBindings.Items[i]; policies[b.Spec.PolicyName] || owned(namespace, b) {
			own = append(own, b)
		}
	}
	own = append(own, rules...)
	for i := range all.roles.Items {
		if r := &all.roles.Items[i]; bound[r.Name] || owned(namespace, r) {
			own = append(own, r)
		}
	}
	own = append(own, bindings...)
	for i := range all.classes.Items {
		if c := &all.classes.Items[i]; owned(namespace, c) {
			own = append(own, c)
		}
	}
	return own
}
