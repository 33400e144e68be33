package objects

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

// DeleteRest deletes what ballast's manifests make in the namespace, in an order in which nothing is missed: what
// runs first, what it needs later, and what shows whose an account is after that; then what is this installation's
// beside it. Kinds that the cluster does not have are passed over. What others gave ballast's label stays, and is
// foreign.
func (i Installation) DeleteRest(ctx context.Context, c client.Client) (foreign []client.Object, err error) {
	accounts, err := i.accounts(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds() {
		labelled, err := i.labelled(ctx, c, kind)
		if err != nil {
			return foreign, err
		}
		var rest []client.Object
		for _, object := range labelled {
			_, account := object.(*corev1.ServiceAccount)
			switch {
			case made(object, object.GetName()), account && slices.Contains(accounts, object.GetName()):
				rest = append(rest, object)
			case !i.keptForLast(object):
				foreign = append(foreign, object)
			}
		}
		if err := deleteAll(ctx, c, rest); err != nil {
			return foreign, err
		}
	}
	outside, err := i.deleteOutside(ctx, c)
	if foreign = append(foreign, outside...); err != nil {
		return foreign, err
	}
	// The certificates' Secrets are made by others, without ballast's label; cert-manager leaves its own, with the CA's
	// key.
	for _, name := range []string{certs.LeafTLS, certs.CASecret, certs.CA} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: name}}
		if err := c.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return foreign, fmt.Errorf("deleting Secret %q: %w", name, err)
		}
	}
	return foreign, nil
}

// kinds are those of what ballast's manifests make in a namespace, in the order in which it goes.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
		&corev1.ServiceList{},
		untypedList("cert-manager.io", "Certificate"), untypedList("cert-manager.io", "Issuer"),
		untypedList("monitoring.coreos.com", "PrometheusRule"), untypedList("monitoring.coreos.com", "PodMonitor"),
		&corev1.ServiceAccountList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ConfigMapList{},
	}
}

// keptForLast reports whether the step after this one knows what becomes of an object.
func (i Installation) keptForLast(object client.Object) bool {
	_, is := object.(*corev1.ConfigMap)
	return is && slices.Contains([]string{i.Plan, i.History, status.Name(i.Plan)}, object.GetName())
}

// labelled is what of a kind has ballast's label in the namespace.
func (i Installation) labelled(ctx context.Context, c client.Client, kind client.ObjectList) (objects []client.Object, err error) {
	if err := list(ctx, c, kind, client.InNamespace(i.Namespace), client.MatchingLabels{PartOf: "ballast"}); err != nil {
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
func (i Installation) accounts(ctx context.Context, c client.Client) (names []string, err error) {
	for _, kind := range []client.ObjectList{&appsv1.DeploymentList{}, &rbacv1.RoleBindingList{}} {
		labelled, err := i.labelled(ctx, c, kind)
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
func (i Installation) deleteOutside(ctx context.Context, c client.Client) (foreign []client.Object, err error) {
	all, err := i.outside(ctx, c)
	if err != nil {
		return nil, err
	}
	return all.foreign(i.Namespace), deleteAll(ctx, c, all.rest(i.Namespace))
}

// outside is what has no namespace and may be this installation's, but the webhook configurations.
func (i Installation) outside(ctx context.Context, c client.Client) (*outside, error) {
	var all outside
	for _, kind := range []client.ObjectList{&all.policyBindings, &all.policies, &all.roles, &all.classes} {
		if err := list(ctx, c, kind, client.MatchingLabels{PartOf: "ballast"}); err != nil {
			return nil, err
		}
	}
	if err := list(ctx, c, &all.bindings); err != nil { // all of them: a ClusterRole that another's binds stays
		return nil, err
	}
	return &all, nil
}

// DeleteLease deletes what the planners elected their leader by, unless it names another installation's plan. Without a
// workload whose name it has, it is the one that names this one's.
func (i Installation) DeleteLease(ctx context.Context, c client.Client, workload string) error {
	leases, err := i.leases(ctx, c, workload)
	if err != nil {
		return err
	}
	return deleteAll(ctx, c, leases)
}

func (i Installation) leases(ctx context.Context, c client.Client, workload string) ([]client.Object, error) {
	if workload == "" {
		var leases coordinationv1.LeaseList
		if err := list(ctx, c, &leases, client.InNamespace(i.Namespace)); err != nil {
			return nil, err
		}
		return only(leases.Items, func(l *coordinationv1.Lease) bool {
			return strings.HasPrefix(l.Name, "ballast-") &&
				l.Annotations[conflicts.AnnotationPlan] == i.Namespace+"/"+i.Plan
		}), nil
	}
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: i.Namespace, Name: "ballast-" + workload}
	if err := c.Get(ctx, key, lease); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Lease %q: %w", key.Name, err)
	}
	if of := lease.Annotations[conflicts.AnnotationPlan]; of != "" && of != i.Namespace+"/"+i.Plan {
		return nil, nil
	}
	return []client.Object{lease}, nil
}

func untypedList(group, kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
	return l
}

// DeleteWebhooks deletes the configuration of this installation, under whatever name.
func (i Installation) DeleteWebhooks(ctx context.Context, c client.Client) (foreign []client.Object, err error) {
	all, own, err := i.webhooks(ctx, c)
	if err != nil {
		return nil, err
	}
	return all.foreignConfigurations(i.Namespace, i.Webhooks), deleteAll(ctx, c, own)
}

func (i Installation) webhooks(ctx context.Context, c client.Client) (all outside, own []client.Object, err error) {
	if err := list(ctx, c, &all.webhooks); err != nil {
		return all, nil, err
	}
	own, err = all.configurations(i.Namespace, i.Webhooks)
	return all, own, err
}

// list reads what there is of a kind; one that the cluster does not have is none.
func list(ctx context.Context, c client.Client, to client.ObjectList, options ...client.ListOption) error {
	err := c.List(ctx, to, options...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %T: %w", to, err)
	}
	return nil
}

func deleteAll(ctx context.Context, c client.Client, objects []client.Object) error {
	for _, object := range objects {
		if err := c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}
