package source

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"ballast/webhook/fixture"
)

// listening is a source with a clock and a log of its own.
func listening(t *testing.T) (s *Source, client *fake.Clientset, now *time.Time, said func() []string) {
	t.Helper()
	client = fake.NewSimpleClientset(configMap(t, "a", "7", 17))
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	now = &at
	var mu sync.Mutex
	var lines []string
	log := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(args, "heard") {
			lines = append(lines, args)
		}
	}, funcr.Options{})
	s = New(Options{Client: client, Namespace: "argocd", ConfigMap: "ballast-plan", Planner: fixture.ShippedUser,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: log, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return *now }})
	return s, client, now, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return lines
	}
}

// TestASilentAPIServerIsNamedOnceAndItsReturnToo, whatever ends the silence; readiness stays.
func TestASilentAPIServerIsNamedOnceAndItsReturnToo(t *testing.T) {
	for name, again := range map[string]func(*Source) error{
		"a bookmark": func(s *Source) error { s.UpdateResourceVersion("9"); return nil },
		"a list":     func(s *Source) error { _, err := s.list(context.Background(), metav1.ListOptions{}); return err },
		"a watch":    func(s *Source) error { _, err := s.watch(context.Background(), metav1.ListOptions{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s, client, now, said := listening(t)
			if err := s.Replace([]any{configMap(t, "a", "7", 17)}, "7"); err != nil {
				t.Fatal(err)
			}
			s.hear()
			start := *now
			away := true
			client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				if away {
					return true, nil, errors.New("away")
				}
				return false, nil, nil
			})
			var silentAt []time.Duration
			for after := time.Minute; after <= 8*time.Minute; after += time.Minute {
				*now = start.Add(after)
				if _, err := s.list(t.Context(), metav1.ListOptions{}); err == nil {
					t.Fatal("it is not away")
				}
				before := len(said())
				if s.listen(); len(said()) > before {
					silentAt = append(silentAt, after)
				}
			}
			if diff := cmp.Diff([]time.Duration{silentAfter}, silentAt); diff != "" {
				t.Errorf("silence was named at (-want +got):\n%s", diff)
			}
			if err := s.Ready(); err != nil || s.State().Revision() != 17 {
				t.Errorf("not ready, or without its plan (revision %d): %v", s.State().Revision(), err)
			}
			if got := testutil.ToFloat64(s.options.Metrics.heard); got != float64(start.Unix()) {
				t.Errorf("heard at %v, want %v", got, start.Unix())
			}
			away = false
			if err := again(s); err != nil {
				t.Fatal(err)
			}
			s.listen()
			want := []string{
				`"level"=0 "msg"="nothing was heard from the API server; the last plan is enforced, and later pins and plans are not seen" "since"="2026-03-01T10:00:00Z" "revision"=17`,
				`"level"=0 "msg"="the API server is heard again" "silentFor"="8m0s"`,
			}
			if diff := cmp.Diff(want, said()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if got := testutil.ToFloat64(s.options.Metrics.heard); got != float64(start.Add(8*time.Minute).Unix()) {
				t.Errorf("heard at %v", got)
			}
		})
	}
}

// TestALiveReadEndsNoSilence: it tells nothing of the next change.
func TestALiveReadEndsNoSilence(t *testing.T) {
	s, _, now, said := listening(t)
	*now = now.Add(silentAfter)
	s.listen()
	if _, err := s.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lines := said(); len(lines) != 1 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

// TestABookmarkIsHeard through the reflector.
func TestABookmarkIsHeard(t *testing.T) {
	s, client, _, _ := listening(t)
	events := watch.NewFake()
	client.PrependWatchReactor("configmaps", clienttesting.DefaultWatchReactor(events, nil))
	var mu sync.Mutex
	heard := 0
	s.options.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); heard++; return time.Unix(int64(heard), 0) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	defer func() { cancel(); <-done }()
	events.Add(configMap(t, "a", "8", 18)) // it is taken once the watch stands
	fixture.Eventually(t, "the plan", 10*time.Second, func() bool { return s.State().Revision() == 18 })
	before := testutil.ToFloat64(s.options.Metrics.heard)
	events.Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	fixture.Eventually(t, "hearing it", 10*time.Second, func() bool { return testutil.ToFloat64(s.options.Metrics.heard) > before })
}
