package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// TestACrowdOfAddressesCutsNoCallOfARegularCaller: 800 addresses open a connection that brings a review and stays, more than
// are held, while a regular caller calls on 20 of its own.
func TestACrowdOfAddressesCutsNoCallOfARegularCaller(t *testing.T) {
	const addresses, callers, dialers = 800, 20, 8
	s := serveOn(t, NewHandler(&plans{known: withPlan(nil, nil)}, NewMetrics(prometheus.NewRegistry()), logr.Discard()))
	body := requestOf(t, 3<<10)
	api := s.client(nil)
	api.Transport.(*http.Transport).MaxIdleConnsPerHost = 25
	for range 2 {
		if err := s.honest(api, body); err != nil {
			t.Fatal(err)
		}
		s.pass(callsForLong)
	}
	flooded := make(chan struct{})
	var calls atomic.Int64
	var working sync.WaitGroup
	failures := make(chan error, callers)
	for range callers {
		working.Go(func() {
			for {
				if err := s.honest(api, body); err != nil {
					failures <- fmt.Errorf("after %d calls: %w", calls.Load(), err)
					return
				}
				calls.Add(1)
				select {
				case <-flooded:
					return
				default:
				}
			}
		})
	}
	var crowd sync.WaitGroup
	for d := range dialers {
		crowd.Go(func() {
			for a := d; a < addresses; a += dialers {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(2+a/200), byte(1+a%200))}}
				conn, err := tls.DialWithDialer(&dialer, "tcp", s.address, &tls.Config{RootCAs: s.ca.pool})
				if err != nil {
					continue // it was cut for another of the crowd's
				}
				t.Cleanup(func() { conn.Close() })
				fmt.Fprintf(conn, "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
		})
	}
	crowd.Wait()
	close(flooded)
	working.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	t.Logf("%d calls were answered beside %d addresses", calls.Load(), addresses)
}

// onClock is a server whose listener knows the time from the test.
type onClock struct {
	served
	passed atomic.Int64
}

func (s *onClock) pass(d time.Duration) { s.passed.Add(int64(d)) }

func serveOn(t *testing.T, handler http.Handler) *onClock {
	t.Helper()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &onClock{served: served{address: open.Addr().String(), ca: newAuthority(t)}}
	cert, key := s.ca.leaf(t, 2, time.Now().Add(time.Hour))
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	listener := limitConnections(open, maxFresh, maxKnown)
	start := time.Now()
	listener.now = func() time.Time { return start.Add(time.Duration(s.passed.Load())) }
	server := NewServer(ServerOptions{Handler: handler, Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()}).
		httpServer(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving ended with %v", err)
		}
	})
	return s
}
