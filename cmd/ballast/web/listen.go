package web

import (
	"fmt"
	"net"
	"strconv"

	"ballast/cmd/ballast/serve"
)

// Listen listens on an address, and says whether that is the loopback's.
func Listen(address string) (net.Listener, bool, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, fmt.Errorf("the address of the page: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, false, fmt.Errorf("the address of the page, %q: its port is no number up to 65535", address)
	}
	listener, err := serve.ListenPlain(host, int(port))
	if err != nil {
		return nil, false, err
	}
	at, tcp := listener.Addr().(*net.TCPAddr)
	return listener, tcp && at.IP.IsLoopback(), nil
}
