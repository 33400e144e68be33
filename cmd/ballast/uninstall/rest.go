package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/certs"
	"ballast/planner/conflicts"
	"ballast/planner/status"
)

// deleteRest deletes what ballast's manifests make in the namespace, in an order in which nothing is missed: what
// runs first, what it needs later, and what shows whose an account is after that; then what is this installation's beside
// it. Kinds that the cluster does not have are passed over.
func (o *options) deleteRest(ctx context.Context, c client.Client) error {
	accounts, err := o.accounts(ctx, c)
	if err != nil {
		return err
	}
	for _, kind := range []client.ObjectList{
		&appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.ServiceList{},
		untypedList("cert-manager.io", "Certificate"), untypedList("cert-manager.io", "Issuer"),
		untypedList("monitoring.coreos.com", "PrometheusRule"), untypedList("monitoring.coreos.com", "PodMonitor"),
		&corev1.ServiceAccountList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ConfigMapList{},
	} {
		labelled, err := o.labelled(ctx, c, kind)
		if err != nil {
			return err
		}
		var rest []client.Object
		for _, object := range labelled {
			_, account := object.(*corev1.ServiceAccount)
			switch {
			case made(object, object.GetName()), account && slices.Contains(accounts, object.GetName()):
				rest = append(rest, object)
			case !o.keptForLast(object):
				o.leave(object)
			}
		}
		if err := deleteAll(ctx, c, rest); err != nil {
			return err
		}
	}
	if err := o.deleteOutside(ctx, c); err != nil {
		return err
	}
	// The certificates' Secrets are made by others, without ballast's label; cert-manager leaves its own, with the CA's
	// key.
	for _, name := range []string{certs.LeafTLS, certs.CASecret, certs.CA} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: name}}
		if err := c.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %q: %w", name, err)
		}
	}
	return nil
}

// keptForLast reports whether the step after this one knows what becomes of an object.
func (o *options) keptForLast(object client.Object) bool {
	_, is := object.(*corev1.ConfigMap)
	return is && slices.Contains([]string{o.plan, o.history, status.Name(o.plan)}, object.GetName())
}

// labelled is what of a kind has ballast's label in the namespace.
func (o *options) labelled(ctx context.Context, c client.Client, kind client.ObjectList) (objects []client.Object, err error) {
	if err := list(ctx, c, kind, client.InNamespace(o.cluster.Namespace), client.MatchingLabels{partOf: "ballast"}); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(kind)
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
	}
	return objects, err
}

// accounts are the ServiceAccounts that ballast's Deployments and RoleBindings name: people may rename them.
func (o *options) accounts(ctx context.Context, c client.Client) (names []string, err error) {
	for _, kind := range []client.ObjectList{&appsv1.DeploymentList{}, &rbacv1.RoleBindingList{}} {
		labelled, err := o.labelled(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range labelled {
			if made(object, object.GetName()) {
				names = append(names, accountsOf(object)...)
			}
		}
	}
	return names, nil
}

func accountsOf(object client.Object) (names []string) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return []string{object.Spec.Template.Spec.ServiceAccountName}
	case *rbacv1.RoleBinding:
		for _, s := range object.Subjects {
			names = append(names, s.Name)
		}
	}
	return names
}

// deleteOutside deletes what has no namespace and is this installation's.
func (o *options) deleteOutside(ctx context.Context, c client.Client) error {
	var all outside
	for _, kind := range []client.ObjectList{&all.policyBindings, &all.policies, &all.roles, &all.classes} {
		if err := list(ctx, c, kind, client.MatchingLabels{partOf: "ballast"}); err != nil {
			return err
		}
	}
	if err := list(ctx, c, &all.bindings); err != nil { // all of them: a ClusterRole that another's binds stays
		return err
	}
	o.leave(all.foreign(o.cluster.Namespace)...)
	return deleteAll(ctx, c, all.rest(o.cluster.Namespace))
}

// deleteLease deletes what the planners elected their leader by, unless it names another installation's plan. Without a workload whose
// name it has, it is the one that names this one's.
func (o *options) deleteLease(ctx context.Context, c client.Client, workload string) error {
	if workload == "" {
		var leases coordinationv1.LeaseList
		if err := list(ctx, c, &leases, client.InNamespace(o.cluster.Namespace)); err != nil {
			return err
		}
		return deleteAll(ctx, c, only(leases.Items, func(l *coordinationv1.Lease) bool {
			return strings.HasPrefix(l.Name, "ballast-") && l.Annotations[conflicts.AnnotationPlan] == o.cluster.Namespace+"/"+o.plan
		}))
	}
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: o.cluster.Namespace, Name: "ballast-" + workload}
	if err := c.Get(ctx, key, lease); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading Lease %q: %w", key.Name, err)
	}
	if of := lease.Annotations[conflicts.AnnotationPlan]; of != "" && of != o.cluster.Namespace+"/"+o.plan {
		return nil
	}
	return deleteAll(ctx, c, []client.Object{lease})
}

func untypedList(group, kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
	return l
}
