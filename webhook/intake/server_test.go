package intake

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"ballast/webhook/fixture"
)

// served is a server under test on a free port of loopback.
type served struct {
	server  *Server
	address string
	certDir string
	ca      *fixture.Authority
	expiry  atomic.Int64 // of the certificate that it shows, in seconds
	stop    context.CancelFunc
	done    chan error
}

// serve starts a server; its certificate is put there by install.
func serve(t testing.TB, handler http.Handler, change func(*ServerOptions)) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{address: listener.Addr().String(), certDir: t.TempDir(), ca: fixture.NewAuthority(t), done: make(chan error, 1)}
	o := ServerOptions{Handler: handler, Listen: func() (net.Listener, error) { return listener, nil }, CertDir: s.certDir,
		Expiry: func(at time.Time) { s.expiry.Store(at.Unix()) }, Log: logr.Discard()}
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
	cert, key := s.ca.Leaf(t, serial, notAfter)
	s.put(t, "tls.key", key)
	s.put(t, "tls.crt", cert)
}

func (s *served) client(change func(*tls.Config)) *http.Client {
	config := &tls.Config{RootCAs: s.ca.Pool}
	if change != nil {
		change(config)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
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
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	resp, proto := get(t, s.client(nil), s.address)
	if resp.TLS.Version != tls.VersionTLS13 || proto != "HTTP/1.1" || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 2 {
		t.Errorf("TLS %x, %s, serial %s", resp.TLS.Version, proto, resp.TLS.PeerCertificates[0].SerialNumber)
	}
	s.install(t, 3, second)
	fixture.Eventually(t, "the next certificate", 30*time.Second, func() bool {
		resp, _ := get(t, s.client(nil), s.address)
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64() == 3
	})
	fixture.Eventually(t, "the next expiry", 5*time.Second, func() bool { return s.expiry.Load() == second.Unix() })
}

func TestServerSpeaksNothingBelowTLS13(t *testing.T) {
	s := serve(t, hello(), nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	resp, err := s.client(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }).Get("https://" + s.address)
	if err == nil {
		resp.Body.Close()
		t.Errorf("TLS %x was spoken", resp.TLS.Version)
	}
}

func TestServerDemandsTheClientCertificateOfItsCA(t *testing.T) {
	clients := fixture.NewAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, clients.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, hello(), func(o *ServerOptions) { o.ClientCAFile = file })
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	for name, tc := range map[string]struct {
		by *fixture.Authority
		ok bool
	}{"nobody's": {nil, false}, "another CA's": {fixture.NewAuthority(t), false}, "its CA's": {clients, true}} {
		if err := knockAt(s.address, s.shows(t, tc.by)); (err == nil) != tc.ok {
			t.Errorf("%s certificate: %v", name, err)
		}
	}
}

// TestServerDemandsTheClientName: a CA may sign more than the API server's certificate.
func TestServerDemandsTheClientName(t *testing.T) {
	clients := fixture.NewAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, clients.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		names []string
		shown string
		ok    bool
	}{
		"any name":           {nil, "somebody", true},
		"the name":           {[]string{"kube-apiserver"}, "kube-apiserver", true},
		"one of two names":   {[]string{"first", "second"}, "second", true},
		"another name":       {[]string{"kube-apiserver"}, "kube-apiserver-kubelet-client", false},
		"no name":            {[]string{"kube-apiserver"}, "", false},
		"a name in capitals": {[]string{"kube-apiserver"}, "Kube-Apiserver", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, hello(), func(o *ServerOptions) { o.ClientCAFile, o.ClientNames = file, tc.names })
			s.install(t, 2, time.Now().Add(time.Hour))
			fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
			client := s.showsAs(t, clients, tc.shown)
			for range 2 { // the second time by the session of the first
				if err := knockAt(s.address, client); (err == nil) != tc.ok {
					t.Errorf("%q among %q: %v", tc.shown, tc.names, err)
				}
			}
		})
	}
}

// TestACallerIsVerifiedByItsCertificateAlone, with a session of before, too.
func TestACallerIsVerifiedByItsCertificateAlone(t *testing.T) {
	clients := fixture.NewAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, clients.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	says := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, Verified(r)) })
	for want, ca := range map[string]string{"true": file, "false": ""} {
		s := serve(t, says, func(o *ServerOptions) { o.ClientCAFile = ca })
		s.install(t, 2, time.Now().Add(time.Hour))
		fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
		client := s.shows(t, clients)
		for range 2 {
			if _, got := get(t, client, s.address); got != want {
				t.Errorf("with the CA %q, a caller that shows its certificate is verified: %s", ca, got)
			}
			client.CloseIdleConnections()
		}
	}
}

// shows is a client that shows a certificate of a CA, whatever CA the server asks for.
func (s *served) shows(t *testing.T, by *fixture.Authority) *http.Client { return s.showsAs(t, by, "") }

func (s *served) showsAs(t *testing.T, by *fixture.Authority, name string) *http.Client {
	t.Helper()
	c := s.client(func(c *tls.Config) {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		if by == nil {
			return
		}
		cert, key := by.LeafOf(t, name, 9, time.Now().Add(time.Hour))
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	})
	return c
}

func knockAt(address string, c *http.Client) error {
	defer c.CloseIdleConnections()
	resp, err := c.Get("https://" + address)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func TestServerTakesUpTheNextClientCA(t *testing.T) {
	first, second := fixture.NewAuthority(t), fixture.NewAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text []byte) {
		t.Helper()
		if text == nil {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first.PEM())
	var refused atomic.Int64
	log := funcr.New(func(_, args string) {
		if strings.Contains(args, "the client CA cannot be taken up; the last good one holds") {
			refused.Add(1)
		}
	}, funcr.Options{})
	review := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Reviewed(r) // else the connection goes with the answer
		hello().ServeHTTP(w, r)
	})
	s := serve(t, review, func(o *ServerOptions) { o.ClientCAFile, o.Log = file, log })
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	old, renewed := s.shows(t, first), s.shows(t, second) // which resume their sessions where they may
	kept := s.shows(t, first)                             // whose connection stays open as long as it is answered
	answers := func() (int, error) {
		resp, err := kept.Get("https://" + s.address)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	var statuses []int
	for _, step := range []struct {
		name     string
		file     []byte
		old, new bool
	}{
		{"the first CA", first.PEM(), true, false},
		{"both CAs, while the API server takes up the next", slices.Concat(first.PEM(), second.PEM()), true, true},
		{"the second CA", second.PEM(), false, true},
		{"a file without a certificate", []byte("half of"), false, true},
		{"no file", nil, false, true},
		{"the first CA again", first.PEM(), true, false},
	} {
		write(step.file)
		status, err := answers()
		if (status == http.StatusOK) != step.old {
			t.Errorf("%s, on a connection that a certificate of the first opened before: %d, %v", step.name, status, err)
		}
		statuses = append(statuses, status)
		for range 2 {
			if err := knockAt(s.address, old); (err == nil) != step.old {
				t.Errorf("%s, a certificate of the first: %v", step.name, err)
			}
			if err := knockAt(s.address, renewed); (err == nil) != step.new {
				t.Errorf("%s, a certificate of the second: %v", step.name, err)
			}
		}
	}
	if n := refused.Load(); n != 2 {
		t.Errorf("2 refusals were logged %d times", n)
	}
	// The second CA finds the connection open, and closes it; the handshakes after that fail.
	if diff := cmp.Diff([]int{200, 200, 403, 0, 0, 200}, statuses); diff != "" {
		t.Errorf("answers on the connection that stayed open (-want +got):\n%s", diff)
	}
}

func TestTheLameDuckAnswersOnConnectionsThatItCloses(t *testing.T) {
	s := serve(t, hello(), func(o *ServerOptions) { o.LameDuck = 3 * time.Second })
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	c := s.client(nil)
	if resp, _ := get(t, c, s.address); resp.Close {
		t.Error("a connection is closed before the stop")
	}
	s.stop()
	fixture.Eventually(t, "unreadiness", time.Minute, func() bool { return s.server.Ready() != nil })
	if resp, body := get(t, c, s.address); !resp.Close || body != "HTTP/1.1" {
		t.Errorf("answered %q, the connection closes: %v", body, resp.Close)
	}
}

func TestASlowBodyIsClosedWithinItsDeadline(t *testing.T) {
	t.Parallel()
	s := serve(t, reviews(NewBodies()), nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.ca.Pool})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	fmt.Fprintf(conn, "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
	if err := conn.SetReadDeadline(start.Add(slow)); err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, conn)
	if took := time.Since(start); err != nil {
		t.Errorf("closed after %s: %v", took, err)
	}
}

// stalled is a body of which only the head comes.
type stalled struct {
	head *bytes.Reader
	gone chan struct{}
}

func (s stalled) Read(p []byte) (int, error) {
	if n, err := s.head.Read(p); err == nil {
		return n, nil
	}
	<-s.gone
	return 0, io.ErrUnexpectedEOF
}
func (s stalled) Close() error { return nil }

func TestALargeBodyTooManyIsTurnedAwayAndNoSmallOneWaits(t *testing.T) {
	b := NewBodies()
	gone := make(chan struct{})
	request := func(size, comes int64) *http.Request {
		return &http.Request{ContentLength: size, Body: stalled{bytes.NewReader(make([]byte, comes)), gone}}
	}
	const flood, of = largeBudget / largeBody, largeBody
	ended := make(chan error, flood)
	for range flood {
		go func() {
			_, err := b.Read(nil, request(of, headBody))
			ended <- err
		}()
	}
	fixture.Eventually(t, "the flood", 5*time.Second, func() bool {
		if !b.budgets[large].TryAcquire(netip.Addr{}, of) {
			return true
		}
		b.budgets[large].Release(of)
		return false
	})
	if _, err := b.Read(nil, request(of, headBody)); !errors.Is(err, ErrBusy) {
		t.Errorf("one body more: %v, want %v", err, ErrBusy)
	}
	for _, size := range []int64{100 << 10, largeBody + 1} {
		other, err := b.Read(nil, request(size, size))
		if err != nil || len(other.Bytes) != int(size) {
			t.Errorf("a body of another class: %d bytes, %v", len(other.Bytes), err)
		}
		other.Release()
	}
	close(gone)
	for range flood {
		// One of them made room for the one more, as far as it could.
		if err := <-ended; !errors.Is(err, errBody) && !errors.Is(err, ErrBusy) {
			t.Errorf("a body that ended early: %v", err)
		}
	}
	after, err := b.Read(nil, request(1<<20, 1<<20))
	if err != nil || len(after.Bytes) != 1<<20 {
		t.Errorf("a large body after the flood: %d bytes, %v", len(after.Bytes), err)
	}
	after.Release()
	for name, budget := range map[string]struct {
		budget *Budget
		size   int64
	}{"small": {b.budgets[small], smallBudget}, "large": {b.budgets[large], largeBudget}, "huge": {b.budgets[huge], hugeBudget}} {
		if !budget.budget.TryAcquire(netip.Addr{}, budget.size) {
			t.Errorf("not all of the %s budget came back", name)
		}
	}
	if b.oldest != nil || b.newest != nil {
		t.Error("a reading is still listed")
	}
}

// reviews reads bodies and answers as the webhook does, without a decision.
func reviews(b *Bodies) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := b.Read(w, r)
		switch {
		case errors.Is(err, ErrBusy):
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		defer body.Release()
		if !bytes.HasPrefix(body.Bytes, []byte(`{"request":`)) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		Reviewed(r)
	})
}

// reviewOf is a body of that size that reviews takes for one.
func reviewOf(size int) []byte {
	const begins, ends = `{"request":"`, `"}`
	return []byte(begins + strings.Repeat("x", size-len(begins)-len(ends)) + ends)
}

// under is a server, and the bodies that it reads.
func under(t *testing.T) (*served, *Bodies) {
	t.Helper()
	shared := NewBodies()
	s := serve(t, reviews(shared), nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	return s, shared
}

// claim opens a connection, until the test ends, and claims a body there; send sends a part of it, until the server has
// had enough.
func (s *served) claim(t *testing.T, size int) (send func(bytes int)) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.ca.Pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)
	return func(n int) {
		for chunk := make([]byte, 64<<10); n > 0; n -= len(chunk) {
			if _, err := conn.Write(chunk[:min(n, len(chunk))]); err != nil {
				return
			}
		}
	}
}

// TestStalledBodiesKeepNobodyWaiting: whoever can reach the webhook may claim bodies that never come. An honest call is
// answered all the same, long before the API server gives it up.
func TestStalledBodiesKeepNobodyWaiting(t *testing.T) {
	const many = 2 * smallBudget / smallBody // more than the budget holds
	for name, sends := range map[string]int{"nothing comes": 0, "more than a head comes": headBody + 1} {
		t.Run(name, func(t *testing.T) {
			withstands(t, func() error {
				s, b := under(t)
				for range many {
					s.claim(t, smallBody)(sends)
				}
				fixture.Eventually(t, "the flood", 5*time.Second, func() bool {
					b.mu.Lock()
					defer b.mu.Unlock()
					return b.newest != nil && (sends == 0 || b.newest.held[small] > headBody)
				})
				client, body := s.client(nil), reviewOf(3<<10)
				for range 10 {
					if err := s.honest(client, body); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// withstands sends a flood until no honest call had to wait, three times at most: the machine runs other tests meanwhile, which may
// make any call wait, and the server's own deadlines cut one.
func withstands(t *testing.T, flood func() error) {
	t.Helper()
	var err error
	for try := range 3 {
		if err = flood(); err == nil {
			return
		}
		t.Logf("flood %d: an honest call: %v", try, err)
	}
	t.Errorf("in each of 3 floods an honest call was not answered in time, at last: %v", err)
}

// honest makes an honest call, and says what was wrong with its answer.
func (s *served) honest(c *http.Client, body []byte) error {
	start := time.Now()
	resp, err := c.Post("https://"+s.address+"/clusters", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp.Body.Close()
	if took := time.Since(start); resp.StatusCode != http.StatusOK || took > 2*BusyAfter {
		return fmt.Errorf("status %d after %s", resp.StatusCode, took)
	}
	return nil
}

// TestAFloodOfLargeBodiesIsBoundedAndKeepsNoSmallOneWaiting sends bodies of 7 MiB that end a byte early, as many as would
// take 280 MiB, to a server, and watches the heap of this process, which holds the senders too.
func TestAFloodOfLargeBodiesIsBoundedAndKeepsNoSmallOneWaiting(t *testing.T) {
	withstands(t, func() error { return floodOfLargeBodies(t) })
}

// floodOfLargeBodies gives what was wrong with an honest call meanwhile.
func floodOfLargeBodies(t *testing.T) error {
	t.Helper()
	const flood, size = 40, 7 << 20
	s, _ := under(t)
	runtime.GC()
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before, peak := heap(), uint64(0)
	var senders sync.WaitGroup
	for range flood {
		send := s.claim(t, size)
		senders.Go(func() { send(size - 1) })
	}
	ended, answered := make(chan struct{}), make(chan error, 1)
	go func() { senders.Wait(); close(ended) }()
	client, body := s.client(nil), reviewOf(3<<10)
	go func() {
		for {
			err := s.honest(client, body)
			select {
			case <-ended:
				answered <- err
				return
			default:
			}
			if err != nil {
				answered <- err
				return
			}
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		case <-tick.C:
		}
		peak = max(peak, heap())
	}
	t.Logf("the heap grew by %d MiB at most", (peak-min(peak, before))>>20)
	// What is garbage already counts, until the collector has seen it.
	if most := before + 72<<20; peak > most {
		t.Errorf("the heap had %d MiB, want at most %d", peak>>20, most>>20)
	}
	return <-answered
}
