package rewatch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"ballast/planner/paged"
)

func (l *listerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// ListWithContext reads from etcd, page by page, and transforms each page before it reads the next. client-go lists
// where the API server streams no objects (Kubernetes 1.30, 1.31 and 1.33 by default) or a stream broke, and asks for
// version 0 or later: that answer is the API server's cache as a whole, whatever the limit. A list that took so long
// that its version is gone fails as expired, and client-go begins it anew.
func (l *listerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	lister, whole := cache.ToListerWithContext(l.ListerWatcher), &metainternalversion.List{}
	err := paged.Pages(paged.Many, func(limit int64, next string) (string, error) {
		o.Limit, o.Continue = limit, next
		page, err := lister.ListWithContext(ctx, o)
		if err != nil {
			return "", err
		}
		return l.take(page, whole)
	})
	if err != nil {
		return nil, err
	}
	return whole, nil
}

// take moves a page's objects to the whole list, whose version is that of the first page: a watch from there misses
// nothing.
func (l *listerWatcher) take(page runtime.Object, whole *metainternalversion.List) (next string, err error) {
	of, err := meta.ListAccessor(page)
	if err != nil {
		return "", fmt.Errorf("reading a page of a list: %w", err)
	}
	if whole.ResourceVersion == "" {
		whole.ResourceVersion = of.GetResourceVersion()
	}
	// The objects are copied one by one, without what they hold: one that is kept as it is keeps no page.
	err = meta.EachListItemWithAlloc(page, func(o runtime.Object) error {
		if l.transform != nil {
			if o, err = l.transformed(o); err != nil {
				return err
			}
		}
		whole.Items = append(whole.Items, o)
		return nil
	})
	return of.GetContinue(), err
}

func (l *listerWatcher) transformed(o runtime.Object) (runtime.Object, error) {
	kept, err := l.transform(o)
	if err != nil {
		return nil, fmt.Errorf("transforming an object of a list: %w", err)
	}
	of, ok := kept.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("transforming an object of a list: it became a %T", kept)
	}
	return of, nil
}
