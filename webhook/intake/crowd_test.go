package intake

import (
	"bytes"
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

	"ballast/webhook/fixture"
)

// TestACrowdOfAddressesCutsNoCallOfARegularCaller: 800 addresses open a connection that brings a review and stays, more than
// are held, while a regular caller calls on 20 of its own.
func TestACrowdOfAddressesCutsNoCallOfARegularCaller(t *testing.T) {
	const addresses, callers, dialers = 800, 20, 8
	s := serveOn(t, reviews(NewBodies()))
	body := reviewOf(3 << 10)
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
				if err := s.answered(api, body); err != nil {
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
				conn, err := tls.DialWithDialer(&dialer, "tcp", s.address, &tls.Config{RootCAs: s.ca.Pool})
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

// answered calls, however long the crowd's handshakes keep the machine busy: that is not what the test is of.
func (s *onClock) answered(c *http.Client, body []byte) error {
	resp, err := c.Post("https://"+s.address+"/clusters", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
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
	s := &onClock{served: served{address: open.Addr().String(), ca: fixture.NewAuthority(t)}}
	cert, key := s.ca.Leaf(t, 2, time.Now().Add(time.Hour))
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	listener := limitConnections(open, maxFresh, maxKnown)
	start := time.Now()
	listener.now = func() time.Time { return start.Add(time.Duration(s.passed.Load())) }
	server := NewServer(ServerOptions{Handler: handler, Log: logr.Discard()}).
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
