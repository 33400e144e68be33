package workload

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/paged"
	"ballast/planner/plan"
)

// mostRead is how many workloads of a kind are read to find the application-controller.
const mostRead = 10

// Few is a reader for FindTarget that asks the API server: a cache has neither pages nor more than it was told to keep.
func Few(r client.Reader, target plan.Target, of *plan.Plan) client.Reader { return few{r, target, of} }

// few reads of a namespace's StatefulSets and Deployments those that may be the target, and where none may be,
// some to tell people of. Whoever may create Deployments makes them as large and as many as etcd takes, and all of them
// at once are more than the planner has room for.
type few struct {
	client.Reader
	target plan.Target
	of     *plan.Plan
}

// List implements client.Reader.
func (w few) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list := list.(type) {
	case *appsv1.StatefulSetList:
		return each(ctx, w, plan.StatefulSet, opts, &list.Items, func(s *appsv1.StatefulSet) client.Object { return s })
	case *appsv1.DeploymentList:
		return each(ctx, w, plan.Deployment, opts, &list.Items, func(d *appsv1.Deployment) client.Object { return d })
	}
	return w.Reader.List(ctx, list, opts...)
}

// each reads one by one those of a kind that may be the target.
func each[T any](ctx context.Context, w few, kind string, opts []client.ListOption, into *[]T, object func(*T) client.Object) error {
	names, err := w.names(ctx, kind, opts)
	if err != nil {
		return err
	}
	for _, name := range names {
		var found T
		err := w.Get(ctx, client.ObjectKey{Namespace: w.target.Namespace, Name: name}, object(&found))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			*into = append(*into, found)
		}
	}
	return nil
}

// names are those that have the target's name, or without one Argo CD's labels; of too many the plan's own is among
// them.
func (w few) names(ctx context.Context, kind string, opts []client.ListOption) ([]string, error) {
	if w.target.Name != "" {
		return []string{w.target.Name}, nil
	}
	own := ""
	if w.of != nil && w.of.Target.Kind == kind {
		own = w.of.Target.Name
	}
	labels := client.MatchingLabels{"app.kubernetes.io/part-of": "argocd",
		"app.kubernetes.io/component": "application-controller"}
	names, err := w.listed(ctx, kind, own, append(slices.Clone(opts), labels))
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0:
		return w.listed(ctx, kind, own, opts)
	}
	if own != "" && !slices.Contains(names, own) {
		names = append(names, own) // somebody took its labels off, and made another that has them
	}
	return names, nil
}

func (w few) listed(ctx context.Context, kind, own string, opts []client.ListOption) (names []string, err error) {
	var page metav1.PartialObjectMetadataList
	page.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind + "List"})
	err = paged.Each(ctx, w.Reader, &page, func() {
		for _, found := range page.Items {
			if len(names) < mostRead || found.Name == own {
				names = append(names, found.Name)
			}
		}
	}, opts...)
	return names, err
}
