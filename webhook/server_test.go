package webhook

import (
	"bytes"
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
)

// served is a server under test on a free port of loopback.
type served struct {
	server   *Server
	address  string
	certDir  string
	ca       *authority
	registry *prometheus.Registry
	stop     context.CancelFunc
	done     chan error
}

// serve starts a server; its certificate is put there by install.
func serve(t testing.TB, handler http.Handler, change func(*ServerOptions)) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{address: listener.Addr().String(), certDir: t.TempDir(), ca: newAuthority(t), registry: prometheus.NewRegistry(), done: make(chan error, 1)}
	o := ServerOptions{Handler: handler, Listen: func() (net.Listener, error) { return listener, nil }, CertDir: s.certDir,
		Metrics: NewMetrics(s.registry), Log: logr.Discard()}
	if change != nil {
		change(&o)
	}
	s.server = NewServer(o)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-s.done; err != nil {
			t.Errorf("serving ended with %v", err)
		}
		listener.Close()
	})
	return s
}

// install puts a leaf where the server looks, as the kubelet does: each file appears whole.
func (s *served) install(t testing.TB, serial int64, notAfter time.Time) {
	t.Helper()
	cert, key := s.ca.leaf(t, serial, notAfter)
	for name, content := range map[string][]byte{"tls.key": key, "tls.crt": cert} {
		path := filepath.Join(s.certDir, name)
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *served) client(change func(*tls.Config)) *http.Client {
	config := &tls.Config{RootCAs: s.ca.pool}
	if change != nil {
		change(config)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, within time.Duration, condition func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come about within %s", what, within)
		case <-tick.C:
		}
	}
}

func ready(s *served) func() bool { return func() bool { return s.server.Ready() == nil } }

func hello() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Proto)
	})
}

func get(t testing.TB, c *http.Client, address string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestServerWaitsForACertificateAndTakesUpTheNext(t *testing.T) {
	s := serve(t, hello(), nil)
	if err := s.server.Ready(); err == nil || err.Error() != "no serving certificate yet" {
		t.Errorf("ready without a certificate: %v", err)
	}
	first, second := time.Now().Add(time.Hour).Truncate(time.Second), time.Now().Add(2*time.Hour).Truncate(time.Second)
	s.install(t, 2, first)
	eventually(t, "readiness", 10*time.Second, ready(s))
	resp, proto := get(t, s.client(nil), s.address)
	if resp.TLS.Version != tls.VersionTLS13 || proto != "HTTP/1.1" || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 2 {
		t.Errorf("TLS %x, %s, serial %s", resp.TLS.Version, proto, resp.TLS.PeerCertificates[0].SerialNumber)
	}
	s.install(t, 3, second)
	eventually(t, "the next certificate", 30*time.Second, func() bool {
		resp, _ := get(t, s.client(nil), s.address)
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64() == 3
	})
	eventually(t, "the next expiry", 5*time.Second, func() bool { return testutil.ToFloat64(s.server.options.Metrics.certificate) == float64(second.Unix()) })
}

func TestServerSpeaksNothingBelowTLS13(t *testing.T) {
	s := serve(t, hello(), nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	eventually(t, "readiness", 10*time.Second, ready(s))
	resp, err := s.client(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }).Get("https://" + s.address)
	if err == nil {
		resp.Body.Close()
		t.Errorf("TLS %x was spoken", resp.TLS.Version)
	}
}

func TestServerDemandsTheClientCertificateOfItsCA(t *testing.T) {
	clients := newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, clients.pem(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, hello(), func(o *ServerOptions) { o.ClientCAFile = file })
	s.install(t, 2, time.Now().Add(time.Hour))
	eventually(t, "readiness", 10*time.Second, ready(s))
	for name, tc := range map[string]struct {
		by *authority
		ok bool
	}{"nobody's": {nil, false}, "another CA's": {newAuthority(t), false}, "its CA's": {clients, true}} {
		c := s.client(func(c *tls.Config) {
			if tc.by == nil {
				return
			}
			cert, key := tc.by.leaf(t, 9, time.Now().Add(time.Hour))
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			// Shown whatever CA the server asks for.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		})
		resp, err := c.Get("https://" + s.address)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != tc.ok {
			t.Errorf("%s certificate: %v", name, err)
		}
	}
}

func TestTheLameDuckAnswersOnConnectionsThatItCloses(t *testing.T) {
	s := serve(t, hello(), func(o *ServerOptions) { o.LameDuck = 300 * time.Millisecond })
	s.install(t, 2, time.Now().Add(time.Hour))
	eventually(t, "readiness", 10*time.Second, ready(s))
	c := s.client(nil)
	if resp, _ := get(t, c, s.address); resp.Close {
		t.Error("a connection is closed before the stop")
	}
	s.stop()
	eventually(t, "unreadiness", time.Second, func() bool { return s.server.Ready() != nil })
	if resp, body := get(t, c, s.address); !resp.Close || body != "HTTP/1.1" {
		t.Errorf("answered %q, the connection closes: %v", body, resp.Close)
	}
}

func TestASlowBodyIsClosedWithinItsDeadline(t *testing.T) {
	t.Parallel()
	h := NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard())
	s := serve(t, h, nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	eventually(t, "readiness", 10*time.Second, ready(s))
	conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.ca.pool})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	fmt.Fprintf(conn, "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
	if err := conn.SetReadDeadline(start.Add(2 * readDeadline)); err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, conn)
	if took := time.Since(start); err != nil || took > readDeadline+time.Second {
		t.Errorf("closed after %s: %v", took, err)
	}
}

// stalled is a body that never comes.
type stalled struct{ gone chan struct{} }

func (s stalled) Read([]byte) (int, error) { <-s.gone; return 0, io.ErrUnexpectedEOF }
func (s stalled) Close() error             { return nil }

func TestAFloodOfLargeBodiesIsBoundedAndKeepsNoSmallOneWaiting(t *testing.T) {
	b := newBodies()
	request := func(size int64, from io.ReadCloser) *http.Request {
		return &http.Request{ContentLength: size, Body: from}
	}
	gone := make(chan struct{})
	const flood = largeBudget / (7 << 20)
	ended := make(chan error, flood)
	for range flood {
		go func() {
			_, err := b.read(request(7<<20, stalled{gone}))
			ended <- err
		}()
	}
	eventually(t, "the flood", 5*time.Second, func() bool {
		if !b.large.TryAcquire(7 << 20) {
			return true
		}
		b.large.Release(7 << 20)
		return false
	})
	if _, err := b.read(request(7<<20, stalled{gone})); !errors.Is(err, errBusy) {
		t.Errorf("one body more: %v, want %v", err, errBusy)
	}
	small, err := b.read(request(3, io.NopCloser(bytes.NewReader([]byte("abc")))))
	if err != nil || string(small.bytes) != "abc" {
		t.Errorf("a small body: %q, %v", small.bytes, err)
	}
	kept := small.bytes
	small.release()
	if !bytes.Equal(kept, make([]byte, 3)) {
		t.Errorf("a released body still holds %q", kept)
	}
	close(gone)
	for range flood {
		if err := <-ended; !errors.Is(err, errBody) {
			t.Errorf("a body that ended early: %v", err)
		}
	}
	large, err := b.read(request(1<<20, io.NopCloser(bytes.NewReader(make([]byte, 1<<20)))))
	if err != nil || len(large.bytes) != 1<<20 {
		t.Errorf("a large body after the flood: %d bytes, %v", len(large.bytes), err)
	}
	large.release()
}
