package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/status"
)

// Nothing reports whether there is nothing of this installation: no ConfigMap of its plan, history or status, no Lease
// for that workload, and nothing that ballast's manifests make. It may be the wrong cluster that is asked.
func (i Installation) Nothing(ctx context.Context, c client.Client, workload string) (bool, error) {
	for _, name := range []string{i.Plan, i.History, status.Name(i.Plan)} {
		err := c.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: name}, &corev1.ConfigMap{})
		if err == nil {
			return false, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading ConfigMap %q in %q: %w", name, i.Namespace, err)
		}
	}
	for _, look := range []func() ([]client.Object, error){
		func() ([]client.Object, error) { return i.leases(ctx, c, workload) },
		func() ([]client.Object, error) { return i.running(ctx, c) },
		func() ([]client.Object, error) { _, own, err := i.webhooks(ctx, c); return own, err },
		func() ([]client.Object, error) { return i.inside(ctx, c) },
		func() ([]client.Object, error) {
			all, err := i.outside(ctx, c)
			if err != nil {
				return nil, err
			}
			return all.rest(i.Namespace), nil
		},
	} {
		if found, err := look(); err != nil || len(found) > 0 {
			return false, err
		}
	}
	return true, nil
}

// inside is what the manifests make in the namespace, of the first kind that has any.
func (i Installation) inside(ctx context.Context, c client.Client) (found []client.Object, err error) {
	for _, kind := range kinds() {
		labelled, err := i.labelled(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range labelled {
			if made(object, object.GetName()) {
				found = append(found, object)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}
