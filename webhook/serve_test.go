package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ballast/webhook/fixture"
	"ballast/webhook/intake"
)

// served is a server on a free port of loopback.
type served struct {
	address string
	ca      *fixture.Authority
	metrics *Metrics
	expiry  time.Time
}

// serve starts a server, and waits until it is ready.
func serve(t testing.TB, handler http.Handler) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &served{address: listener.Addr().String(), ca: fixture.NewAuthority(t), metrics: NewMetrics(prometheus.NewRegistry()), expiry: time.Now().Add(time.Hour)}
	cert, key := s.ca.Leaf(t, 2, s.expiry)
	for name, content := range map[string][]byte{"tls.key": key, "tls.crt": cert} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := intake.NewServer(intake.ServerOptions{Handler: handler, Listen: func() (net.Listener, error) { return listener, nil }, CertDir: dir,
		Expiry: s.metrics.CertificateEnds, Log: logr.Discard()})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving ended with %v", err)
		}
		listener.Close()
	})
	fixture.Eventually(t, "readiness", 10*time.Second, func() bool { return server.Ready() == nil })
	return s
}

func (s *served) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool}, ForceAttemptHTTP2: true}}
}

// TestTheCertificatesEndIsAMetric.
func TestTheCertificatesEndIsAMetric(t *testing.T) {
	s := serve(t, http.NotFoundHandler())
	if got := testutil.ToFloat64(s.metrics.certificate); got != float64(s.expiry.Unix()) {
		t.Errorf("the metric says %.0f, want %d", got, s.expiry.Unix())
	}
}

// TestOnlyAReviewKeepsAConnection: the API server's stays open for the next call; of who sends anything else it is the
// last.
func TestOnlyAReviewKeepsAConnection(t *testing.T) {
	s := serve(t, NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard()))
	for name, tc := range map[string]struct {
		method, path string
		body         []byte
		status       int
		stays        bool
	}{
		"a review":                          {http.MethodPost, "/clusters", admissionRequest(t, nil), http.StatusOK, true},
		"a review of a plan":                {http.MethodPost, "/plan", admissionRequest(t, nil), http.StatusOK, true},
		"no review":                         {http.MethodPost, "/clusters", []byte("{}"), http.StatusBadRequest, false},
		"a review for nobody":               {http.MethodPost, "/metrics", admissionRequest(t, nil), http.StatusNotFound, false},
		"a review that nobody is to answer": {http.MethodPut, "/clusters", admissionRequest(t, nil), http.StatusMethodNotAllowed, false},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.ca.Pool})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", tc.method, tc.path, len(tc.body), tc.body)
			answer := bufio.NewReader(conn)
			resp, err := http.ReadResponse(answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != tc.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tc.status)
			}
			within := 30 * time.Second
			if tc.stays {
				within = 300 * time.Millisecond
			}
			if closed := cut(t, conn, within); closed == tc.stays {
				t.Errorf("closed: %v", closed)
			}
		})
	}
}

// cut reports whether the other side has closed a connection on which it says nothing.
func cut(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
