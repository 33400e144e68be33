package hooked

import (
	"net"
	"strconv"
	"testing"
	"time"
)

// TestAFreePortIsTheTestsAlone: whoever calls before somebody listens is refused, the kernel gives it to nobody, and a server gets it.
func TestAFreePortIsTheTestsAlone(t *testing.T) {
	port := FreePort(t)
	address := net.JoinHostPort(Host, strconv.Itoa(port))
	if c, err := net.DialTimeout("tcp", address, time.Minute); err == nil {
		c.Close()
		t.Error("somebody listens")
	}
	for range 200 {
		if other := FreePort(t); other == port {
			t.Fatalf("port %d was given twice", port)
		}
	}
	for range 2 { // a server that is started anew, too
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.DialTimeout("tcp", address, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
}
