// Package rewatch makes informers that hold no list of others' objects as a whole, and that notice an etcd that was
// restored from a backup. Versions begin again at an older one then, and a watch that goes on from a newer one is
// silent until they have counted up to it: what nobody writes again stays as it was before the restore, for as long as
// the process lives. client-go lists anew after most errors and not after two: it takes up the watch where a connection
// was refused or a request was one too many, which is how an API server looks that is away for a restore.
package rewatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// NewInformer is the NewInformer of controller-runtime's cache.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	l := &listerWatcher{ListerWatcher: lw}
	return &informer{SharedIndexInformer: cache.NewSharedIndexInformer(l, example, resync, indexers), lists: l}
}

// informer has its lists transformed as they are read.
type informer struct {
	cache.SharedIndexInformer
	lists *listerWatcher
}

// SetTransform is called before the informer starts, and fails after that.
func (i *informer) SetTransform(transform cache.TransformFunc) error {
	if err := i.SharedIndexInformer.SetTransform(transform); err != nil {
		return err
	}
	i.lists.transform = transform
	return nil
}

// listerWatcher asks for the latest version before it watches from an earlier one, and lists page by page.
type listerWatcher struct {
	cache.ListerWatcher
	transform cache.TransformFunc // none leaves objects as they are
}

func (l *listerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// WatchWithContext fails in a way after which the informer lists anew: where the version went back, and where it is not
// known what happened since the last watch, for an etcd may have counted past that version by now.
func (l *listerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	watcher := cache.ToWatcherWithContext(l.ListerWatcher)
	if o.SendInitialEvents != nil && *o.SendInitialEvents { // the objects come along, and a version that is not there yet is an error
		return watcher.WatchWithContext(ctx, o)
	}
	latest, err := l.latest(ctx)
	if err != nil {
		return nil, broken(err)
	}
	if order, err := resourceversion.CompareResourceVersion(latest, o.ResourceVersion); err == nil && order < 0 {
		return nil, apierrors.NewResourceExpired("the API server went back to version " + latest)
	}
	w, err := watcher.WatchWithContext(ctx, o)
	if err != nil {
		return nil, broken(err)
	}
	return w, nil
}

// latest is the version of etcd; the one object that comes along is not looked at.
func (l *listerWatcher) latest(ctx context.Context) (string, error) {
	list, err := cache.ToListerWithContext(l.ListerWatcher).ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("reading the latest version: %w", err)
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return "", fmt.Errorf("reading the latest version: %w", err)
	}
	return of.GetResourceVersion(), nil
}

// broken keeps an error's words and not its kind, so that nobody takes up the watch: an expired version alone is told.
func broken(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return err
	}
	return errors.New("watching, which begins with a list again: " + err.Error())
}

// IsWatchListSemanticsUnSupported is the word of what is behind.
func (l *listerWatcher) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(l.ListerWatcher)
}
