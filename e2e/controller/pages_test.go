package controller_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/discover/secrets"
	"ballast/planner/paged"
	"ballast/planner/plan"
	"ballast/planner/rewatch"
)

// TestACacheHoldsFewOfManyLargeSecrets of anybody's before it strips them, where the API server streams no objects, as by default in
// Kubernetes 1.30, 1.31 and 1.33; where it does, nothing is listed.
func TestACacheHoldsFewOfManyLargeSecrets(t *testing.T) {
	const objects, most = 40, 11 << 20 // an answer of 10 MiB, and what the others have but data
	server := anyServer.Start(t)
	namespace := newLargeSecrets(t, server, objects)
	for name, streams := range map[string]bool{"it streams them": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			held := &meter{refuses: !streams}
			how := rest.CopyConfig(server)
			how.Wrap(func(next http.RoundTripper) http.RoundTripper { held.next = next; return held })
			selector, err := discover.Selector(config.Default().Discover.Selector)
			if err != nil {
				t.Fatal(err)
			}
			strip := secrets.Transform(selector)
			known, err := cache.New(paged.Bounded(how), cache.Options{NewInformer: rewatch.NewInformer,
				DefaultNamespaces: map[string]cache.Config{namespace: {}},
				ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: selector, Transform: func(o any) (any, error) {
					held.strips(o.(*corev1.Secret))
					return strip(o)
				}}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := known.GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false)); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- known.Start(ctx) }()
			if !known.WaitForCacheSync(t.Context()) {
				t.Fatal("the cache does not sync")
			}
			in, err := secrets.ReadInput(t.Context(), known, namespace, selector, discover.Known{})
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if err != nil || len(in.Secrets) != objects {
				t.Fatalf("the cache has %d Secrets, want %d: %v", len(in.Secrets), objects, err)
			}
			listed, peak := held.said()
			t.Logf("%d bytes at most were read and not stripped, in %d answers", peak, listed)
			if streams && listed > 0 || !streams && (listed < 4 || peak > most) {
				t.Errorf("%d bytes at most, in %d answers, were read and not stripped, want %d", peak, listed, most)
			}
		})
	}
}

// newLargeSecrets makes so many cluster Secrets, as large as an API server takes them, in a namespace of their own.
func newLargeSecrets(t *testing.T, server *rest.Config, n int) (namespace string) {
	t.Helper()
	c, err := client.New(server, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	of := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-"}}
	if err := c.Create(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("c%03d", i)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.Name, Name: name,
			Labels: map[string]string{plan.SecretTypeLabel: plan.SecretTypeCluster}},
			Data: map[string][]byte{"name": []byte(name), "server": []byte("https://" + name), "config": bytes.Repeat([]byte{'x'}, 1<<20-100)}}
		if err := c.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return of.Name
}

// meter counts what was read of lists of Secrets and is not yet stripped. It may refuse to stream, as an API server without WatchList does.
type meter struct {
	next    http.RoundTripper
	refuses bool

	mu                   sync.Mutex
	listed               int
	whole, reading, peak int // bytes of the answers that were read, and of the one that is
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if m.refuses && query.Has("sendInitialEvents") {
		const says = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents: ` +
			`Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}`
		return &http.Response{StatusCode: http.StatusUnprocessableEntity, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(says))}, nil
	}
	answer, err := m.next.RoundTrip(r)
	latest := query.Get("limit") == "1" && !query.Has("continue")
	if err != nil || latest || path.Base(r.URL.Path) != "secrets" {
		return answer, err
	}
	if query.Has("watch") {
		return answer, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed, m.reading = m.listed+1, 0
	answer.Body = &metered{answer.Body, m}
	return answer, nil
}

func (m *meter) strips(s *corev1.Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole -= len(s.Data["config"]) // a Secret that is stripped has none
}

func (m *meter) said() (listed, peak int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed, m.peak
}

type metered struct {
	io.ReadCloser
	*meter
}

func (b *metered) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading += n
	b.peak = max(b.peak, b.whole+b.reading)
	if err == io.EOF {
		b.whole, b.reading = b.whole+b.reading, 0
	}
	return n, err
}
