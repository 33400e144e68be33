// Package network is a plane's own piece of the loopback network: its addresses, and
// the API server's and the pods' way to pods, which tests cut.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// Plane numbers start above 127.0.0.0/16, where resolvers and other daemons
// live, and stay within one byte.
const (
	firstNetwork = 64
	lastNetwork  = 250
)

// Network is a plane's number N, held against every other plane of this
// machine by a listener that only one process can have. The kernel closes it
// with the process, however that ends; and unlike a locked file it is the same
// one whatever TMPDIR, HOME and user a plane runs under.
type Network struct {
	N    byte
	lock net.Listener
}

// lockPort lies above the ephemeral ports (net.ipv4.ip_local_port_range), so
// that no client ever has it by chance.
const lockPort = "64000"

// Claim takes the lowest number that no plane holds.
func Claim() (*Network, error) {
	var last error
	for n := firstNetwork; n <= lastNetwork; n++ {
		l, err := net.Listen("tcp", net.JoinHostPort(fmt.Sprintf("127.%d.255.252", n), lockPort))
		if err == nil {
			return &Network{N: byte(n), lock: l}, nil
		}
		if last = err; !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("claiming a plane number: %w", last)
}

// Release lets others have the network.
func (n *Network) Release() { n.lock.Close() }

// CIDR is the pods' network.
func (n *Network) CIDR() string { return fmt.Sprintf("10.%d.0.0/16", n.N) }

// Host is the address of the control plane itself. It lies at the far end of
// the plane's own /16, so no client's ephemeral port ever collides with a port
// found free there (those are taken on 127.0.0.1), nor does a pod's address.
func (n *Network) Host() string { return fmt.Sprintf("127.%d.255.254", n.N) }

// NodeIP is what every kwok node gives as its address. Nothing listens there.
func (n *Network) NodeIP() string { return fmt.Sprintf("10.%d.255.253", n.N) }

// Loopback is the address that the process of a pod listens on.
func (n *Network) Loopback(podIP string) (string, error) {
	addr, err := netip.ParseAddr(podIP)
	if err != nil {
		return "", fmt.Errorf("reading pod IP %q: %w", podIP, err)
	}
	b := addr.Unmap().As16()
	if !addr.Unmap().Is4() || b[12] != 10 || b[13] != n.N {
		return "", fmt.Errorf("mapping pod IP %q: it is not in %s", podIP, n.CIDR())
	}
	return netip.AddrFrom4([4]byte{127, n.N, b[14], b[15]}).String(), nil
}

// FreePort asks the kernel for a port that nobody listens on.
func FreePort(host string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("finding a free port on %q: %w", host, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// PortFree tells whether a process could listen there now.
func PortFree(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("checking that port %d of %q is free: %w", port, host, err)
	}
	return l.Close()
}
