package nudge

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// slow is an Argo CD whose Applications are listed once somebody lets it, or has a panic do so.
type slow struct {
	client.Client
	lists atomic.Int32
	began chan bool
	let   chan string
}

// newSlow has one Application of eu, named a.
func newSlow(t *testing.T) *slow {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"destination": map[string]any{"server": eu}}}}
	u.SetGroupVersionKind(applicationKind)
	u.SetNamespace("argocd")
	u.SetName("a")
	s := &slow{let: make(chan string), began: make(chan bool, 8)}
	lists := &watching{"", []string{"argocd"}}
	s.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
			if key.Name == configMapParams {
				return lists.Get(ctx, key, o, how...)
			}
			return c.Get(ctx, key, o, how...)
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			s.lists.Add(1)
			s.began <- true
			if until, is := ctx.Deadline(); !is || time.Until(until) > listsFor {
				t.Errorf("a listing may last until %s (%t)", until, is)
			}
			select {
			case fault := <-s.let:
				if fault != "" {
					panic(fault)
				}
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return lists.List(ctx, list, how...)
		}})
	return s
}

// TestAListingThatNobodyWaitsForEnds: nudges alone never had one that took longer than a nudge may, and none was served ever.
func TestAListingThatNobodyWaitsForEnds(t *testing.T) {
	s := newSlow(t)
	n := New(Options{Client: s, Reader: s, Clock: clocktesting.NewFakePassiveClock(start)})
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	for i := range 2 {
		ctx, end := context.WithCancelCause(within)
		gone := make(chan error, 1)
		go func() {
			_, err := n.Nudge(ctx, "argocd", "cluster", eu, "")
			gone <- err
		}()
		if i == 0 {
			<-s.began
		}
		end(errors.New("a nudge has no more time"))
		if err := <-gone; err == nil || !strings.Contains(err.Error(), "a nudge has no more time") {
			t.Fatalf("%v while the listing goes on", err)
		}
	}
	select {
	case s.let <- "":
	case <-within.Done():
		t.Fatal("no listing goes on")
	}
	if got, err := n.Nudge(within, "argocd", "cluster", eu, ""); got != "argocd/a" || err != nil {
		t.Errorf("%q, %v after it", got, err)
	}
	if n := s.lists.Load(); n != 1 {
		t.Errorf("%d listings, want 1", n)
	}
}

// TestAnOlderListingTellsWhereToLook while another one takes long, for half an hour, and only the first nudge waits for that.
func TestAnOlderListingTellsWhereToLook(t *testing.T) {
	s, clock := newSlow(t), clocktesting.NewFakePassiveClock(start)
	n := New(Options{Client: s, Reader: s, Clock: clock})
	n.last.Store(&listing{namespace: "argocd", at: start, applications: newIndex([]Application{{Namespace: "argocd", Name: "a", Server: eu}})})
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	for _, nudge := range []struct{ after, waits time.Duration }{
		{keep + time.Minute, 10 * time.Millisecond},
		{stands, 15 * time.Minute}, // it goes on for longer than that
	} {
		n.waits = nudge.waits
		clock.SetTime(start.Add(nudge.after))
		if got, err := n.Nudge(within, "argocd", "cluster", eu, ""); got != "argocd/a" || err != nil {
			t.Errorf("after %s: %q, %v", nudge.after, got, err)
		}
	}
	clock.SetTime(start.Add(stands + 1))
	soon, ends := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer ends()
	if got, err := n.Nudge(soon, "argocd", "cluster", eu, ""); got != "" || err == nil {
		t.Errorf("older than that it tells %q, %v", got, err)
	}
	if n := s.lists.Load(); n != 1 {
		t.Errorf("%d listings, want 1", n)
	}
	s.let <- ""
}

// TestAPanicInAListingIsOneThatFailed, for all who wait for it.
func TestAPanicInAListingIsOneThatFailed(t *testing.T) {
	s := newSlow(t)
	n := New(Options{Client: s, Reader: s, Clock: clocktesting.NewFakePassiveClock(start)})
	for i, fault := range []string{"of an Application", ""} {
		go func() { s.let <- fault }()
		_, err := n.Nudge(t.Context(), "argocd", "cluster", eu, "")
		if panicked := err != nil && strings.Contains(err.Error(), "a panic of type string"); panicked != (fault != "") || i > 0 && err != nil {
			t.Errorf("with the fault %q: %v", fault, err)
		}
	}
}
