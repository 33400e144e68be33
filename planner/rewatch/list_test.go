package rewatch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"ballast/planner/paged"
)

// api is an API server with so many Secrets, which answers with at most so many at once. It streams none, and forgets
// versions as often as it is told.
type api struct {
	objects, holds, forgets int

	asked   []string
	between func() // before each page
	watched chan string
}

func (a *api) lister() cache.ListerWatcher {
	watches := func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if o.SendInitialEvents != nil {
			return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
		}
		a.watched <- o.ResourceVersion
		return watch.NewFake(), nil
	}
	return &cache.ListWatch{ListWithContextFunc: a.list, WatchFuncWithContext: watches}
}

func (a *api) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "70"}}
	if o.Limit == 1 {
		return list, nil // asked for the latest version
	}
	a.asked = append(a.asked, fmt.Sprintf("%s%s:%d of %q", o.ResourceVersion, o.ResourceVersionMatch, o.Limit, o.Continue))
	if a.between != nil {
		a.between()
	}
	from := 0
	if o.Continue != "" {
		if a.forgets--; a.forgets >= 0 {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
		var err error
		if from, err = strconv.Atoi(o.Continue); err != nil {
			return nil, err
		}
		list.ResourceVersion = "71" // no API server says another one than at first; a watch from the first misses nothing
	}
	until := min(from+int(o.Limit), from+a.holds, a.objects)
	for i := from; i < until; i++ {
		list.Items = append(list.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: fmt.Sprintf("c%03d", i)},
			Data: map[string][]byte{"config": []byte("x")}})
	}
	if until < a.objects {
		list.Continue = strconv.Itoa(until)
	}
	return list, nil
}

// TestEachPageIsTransformedBeforeTheNext, and is read from etcd whatever version was asked for: an API server answers
// others with all at once.
func TestEachPageIsTransformedBeforeTheNext(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := &api{objects: rapid.IntRange(0, 700).Draw(rt, "objects"), holds: rapid.IntRange(1, 600).Draw(rt, "holds")}
		read, transformed := 0, 0
		a.between = func() {
			if transformed != read {
				rt.Fatalf("%d of %d objects were transformed before the next page", transformed, read)
			}
			read = min(read+min(a.holds, paged.Many), a.objects)
		}
		l := &listerWatcher{ListerWatcher: a.lister(), transform: func(o any) (any, error) {
			transformed++
			s := o.(*corev1.Secret)
			return &corev1.Secret{ObjectMeta: s.ObjectMeta}, nil
		}}
		version := rapid.SampledFrom([]string{"", "0", "65"}).Draw(rt, "version")
		list, err := l.ListWithContext(rt.Context(), metav1.ListOptions{ResourceVersion: version, Limit: 500,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if err != nil {
			rt.Fatal(err)
		}
		objects, err := meta.ExtractList(list)
		if err != nil || len(objects) != a.objects {
			rt.Fatalf("%d of %d objects: %v", len(objects), a.objects, err)
		}
		for i, o := range objects {
			if s := o.(*corev1.Secret); s.Name != fmt.Sprintf("c%03d", i) || s.Data != nil {
				rt.Fatalf("object %d is %q with %d keys", i, s.Name, len(s.Data))
			}
		}
		of, err := meta.ListAccessor(list)
		if err != nil || of.GetResourceVersion() != "70" || of.GetContinue() != "" {
			rt.Fatalf("version %q, and more at %q: want 70, and none: %v", of.GetResourceVersion(), of.GetContinue(), err)
		}
		if first := `:500 of ""`; a.asked[0] != first {
			rt.Fatalf("asked for %s, want %s", a.asked[0], first)
		}
	})
}

// TestAListThatExpiresBeginsAnew: who makes so many objects that their list takes longer than etcd keeps a version gets it read again.
func TestAListThatExpiresBeginsAnew(t *testing.T) {
	a := &api{objects: 1200, holds: 600, forgets: 1, watched: make(chan string, 1)}
	i := NewInformer(a.lister(), &corev1.Secret{}, 0, nil)
	if err := i.SetTransform(func(o any) (any, error) { return o, nil }); err != nil {
		t.Fatal(err)
	}
	go i.RunWithContext(t.Context())
	select {
	case from := <-a.watched:
		if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
			t.Fatal("it does not sync")
		}
		want := []string{`:500 of ""`, `:500 of "500"`, `:500 of ""`, `:500 of "500"`, `:500 of "1000"`}
		if diff := cmp.Diff(want, a.asked); diff != "" || from != "70" {
			t.Errorf("watches from %q, want 70 (-want +got):\n%s", from, diff)
		}
		if known := i.GetStore().ListKeys(); len(known) != a.objects || !slices.Contains(known, "argocd/c1199") {
			t.Errorf("%d of %d objects are known", len(known), a.objects)
		}
	case <-time.After(time.Minute):
		t.Fatal("no watch begins")
	}
}

// TestWhatATransformRefusesFailsTheList, as it does the informer.
func TestWhatATransformRefusesFailsTheList(t *testing.T) {
	for name, c := range map[string]struct {
		becomes any
		err     error
		want    string
	}{
		"an error":  {nil, fmt.Errorf("it is torn"), "transforming an object of a list: it is torn"},
		"no object": {"text", nil, "transforming an object of a list: it became a string"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{objects: 3, holds: 3}
			l := &listerWatcher{ListerWatcher: a.lister(), transform: func(any) (any, error) { return c.becomes, c.err }}
			if list, err := l.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil || err.Error() != c.want || list != nil {
				t.Errorf("got %v and %v, want %s", list, err, c.want)
			}
		})
	}
}
