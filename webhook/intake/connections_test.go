package intake

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/webhook/fixture"
)

// dialFrom opens a connection from an address of loopback.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
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

// patience is how long a connection is looked at: one that is to be closed until a busy machine has done it.
func patience(closes bool) time.Duration {
	if closes {
		return slow
	}
	return 20 * time.Millisecond
}

// slow is more than anything takes on a busy machine, and less than an idle connection has.
const slow = 30 * time.Second

// TestAtTheLimitTheAddressWithMostConnectionsLosesItsOldest: a new connection always gets in, and costs none of who has
// few.
func TestAtTheLimitTheAddressWithMostConnectionsLosesItsOldest(t *testing.T) {
	type step struct {
		from   string
		speaks bool
	}
	for name, tc := range map[string]struct {
		steps []step
		want  []int // which of the connections are closed
	}{
		"below the limit":                       {[]step{{"127.0.0.1", false}, {"127.0.0.1", false}, {"127.0.0.1", false}}, nil},
		"the oldest of one address":             {[]step{{"127.0.0.1", false}, {"127.0.0.1", false}, {"127.0.0.1", false}, {"127.0.0.1", false}}, []int{0}},
		"who has most, not who was first":       {[]step{{"127.0.0.1", false}, {"127.0.0.66", false}, {"127.0.0.66", false}, {"127.0.0.66", false}}, []int{1}},
		"one each: the oldest, never the new":   {[]step{{"127.0.0.1", false}, {"127.0.0.2", false}, {"127.0.0.3", false}, {"127.0.0.4", false}}, []int{0}},
		"who has spoken is counted apart":       {[]step{{"127.0.0.1", true}, {"127.0.0.1", false}, {"127.0.0.1", false}, {"127.0.0.1", false}}, nil},
		"who speaks drives out who spoke":       {[]step{{"127.0.0.66", true}, {"127.0.0.66", true}, {"127.0.0.66", true}}, []int{0}},
		"and not another who speaks less often": {[]step{{"127.0.0.1", true}, {"127.0.0.66", true}, {"127.0.0.66", true}}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			open, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			l := limitConnections(open, 3, 2)
			var callers []net.Conn
			for _, s := range tc.steps {
				callers = append(callers, dialFrom(t, s.from, open.Addr().String()))
				taken, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer taken.Close()
				if s.speaks {
					taken.(*connection).spoke()
				}
			}
			var got []int
			for i, c := range callers {
				if cut(t, c, patience(slices.Contains(tc.want, i))) {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
			if l.fresh.size > 3 || l.known.size > 2 {
				t.Errorf("%d fresh and %d known connections are held", l.fresh.size, l.known.size)
			}
		})
	}
}

func TestAClosedConnectionGivesItsPlaceFree(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	l := limitConnections(open, 2, 2)
	for range 5 {
		dialFrom(t, "127.0.0.1", open.Addr().String())
		taken, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		taken.Close()
		taken.Close()
	}
	if l.fresh.size != 0 || len(l.fresh.by) != 0 {
		t.Errorf("%d connections of %d addresses are held after their end", l.fresh.size, len(l.fresh.by))
	}
}

// TestAConnectionThatSaysNothingIsClosed, in its handshake or after it, long before an idle one of the API server's is.
func TestAConnectionThatSaysNothingIsClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, hello(), nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	shaken, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.ca.Pool})
	if err != nil {
		t.Fatal(err)
	}
	defer shaken.Close()
	for name, conn := range map[string]net.Conn{"no handshake": dialFrom(t, "127.0.0.1", s.address), "no request": shaken} {
		if start := time.Now(); !cut(t, conn, slow) {
			t.Errorf("%s: open after %s", name, time.Since(start))
		}
	}
}

// TestAFloodOfConnectionsKeepsNobodyOut opens more connections than are held, from the API server's own address, half
// of them after a review of theirs. Both a caller whose connection was idle meanwhile and a new one are answered.
func TestAFloodOfConnectionsKeepsNobodyOut(t *testing.T) {
	withstands(t, func() error { return floodOfConnections(t) })
}

// floodOfConnections gives what was wrong with the honest calls.
func floodOfConnections(t *testing.T) error {
	t.Helper()
	s := serve(t, reviews(NewBodies()), nil)
	s.install(t, 2, time.Now().Add(time.Hour))
	fixture.Eventually(t, "readiness", 10*time.Second, ready(s))
	body := reviewOf(3 << 10)
	idle := s.client(nil)
	if err := s.honest(idle, body); err != nil {
		return err
	}
	for i := range 2 * (maxFresh + maxKnown) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(66+i%4))}}
		conn, err := tls.DialWithDialer(&dialer, "tcp", s.address, &tls.Config{RootCAs: s.ca.Pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if i%2 == 0 {
			fmt.Fprintf(conn, "POST /clusters HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), bytes.TrimSpace(body))
		}
	}
	for name, c := range map[string]*http.Client{"idle meanwhile": idle, "new": s.client(nil)} {
		if err := s.honest(c, body); err != nil {
			return fmt.Errorf("a caller who was %s: %w", name, err)
		}
	}
	return nil
}

// TestACallKeepsItsConnection: of those that have sent a review the one that was used longest ago goes, not the oldest.
func TestACallKeepsItsConnection(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	l := limitConnections(open, 3, 2)
	var callers []net.Conn
	var taken []*connection
	for i := range 3 {
		callers = append(callers, dialFrom(t, "127.0.0.1", open.Addr().String()))
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		taken = append(taken, conn.(*connection))
		if i == 2 {
			noteCall(taken[0], http.StateActive)
		}
		taken[i].spoke()
	}
	for i, want := range []bool{false, true, false} {
		if got := cut(t, callers[i], patience(want)); got != want {
			t.Errorf("connection %d is closed: %v, want %v", i, got, want)
		}
	}
}
