package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/cmd/ballast/fixture"
)

// TestAPlainPortHoldsSoManyConnections and closes the oldest for a new one: who comes 45th after them finds room.
func TestAPlainPortHoldsSoManyConnections(t *testing.T) {
	const most, more = 256, 44
	listener, err := ListenPlain("127.0.0.1", 0)
	fixture.MustDo(t, err)
	defer listener.Close()
	accepted := make([]net.Conn, most+more)
	for i := range accepted {
		dialled, err := net.Dial("tcp", listener.Addr().String())
		fixture.MustDo(t, err)
		defer dialled.Close()
		accepted[i], err = listener.Accept()
		fixture.MustDo(t, err)
	}
	var open []int
	for i, conn := range accepted {
		if _, err := conn.Write([]byte("x")); err == nil {
			open = append(open, i)
		}
		conn.Close()
	}
	if len(open) != most || open[0] != more {
		t.Errorf("%d connections are open, from the %dth on, want %d from the %dth on", len(open), open[0], most, more)
	}
}

// TestAPlainPortsCallsAreBounded in time and by their heads.
func TestAPlainPortsCallsAreBounded(t *testing.T) {
	s := PlainServer(nil)
	got := []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout}
	want := []time.Duration{2 * time.Second, 10 * time.Second, 10 * time.Second, time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("times of a head, a call, an answer and between calls (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct{ head, want int }{
		"a head of 1 KiB":      {1 << 10, http.StatusOK},
		"a head below 8 KiB":   {8<<10 - 1, http.StatusOK},
		"a head beyond 8 KiB":  {8<<10 + 1<<9, http.StatusRequestHeaderFieldsTooLarge},
		"a head of a megabyte": {1 << 20, http.StatusRequestHeaderFieldsTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answeredTo(t, tc.head); got != tc.want {
				t.Errorf("status %d, want %d", got, tc.want)
			}
		})
	}
}

// answeredTo is the status that a plain port answers a head of so many bytes with.
func answeredTo(t *testing.T, head int) int {
	t.Helper()
	listener, err := ListenPlain("127.0.0.1", 0)
	fixture.MustDo(t, err)
	s := PlainServer(HealthHandler(nil, nil))
	go func() { _ = s.Serve(listener) }()
	defer s.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	fixture.MustDo(t, err)
	defer conn.Close()
	const begins, ends = "GET /healthz HTTP/1.1\r\nHost: a\r\nx: ", "\r\n\r\n"
	go func() { // the server may close before all of it went
		_, _ = fmt.Fprint(conn, begins, strings.Repeat("y", head-len(begins)-len(ends)), ends)
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	fixture.MustDo(t, err)
	defer response.Body.Close()
	return response.StatusCode
}
