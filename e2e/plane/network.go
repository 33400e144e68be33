package plane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Plane numbers start above 127.0.0.0/16, where resolvers and other daemons
// live, and stay within one byte.
const (
	firstNetwork = 64
	lastNetwork  = 250
)

// network is a plane's number N, held against every other plane of this
// machine by the lock on a file: the kernel drops it with the process, however
// that ends.
type network struct {
	n    byte
	lock *os.File
}

// claimNetwork takes the lowest number that no plane holds.
func claimNetwork() (*network, error) {
	dir := filepath.Join(os.TempDir(), "ballast-planes")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("making the folder of plane numbers: %w", err)
	}
	// Numbers are shared by all users of the machine, whatever their umask; only
	// the owner of a file can open it up, and has done so already.
	_ = os.Chmod(dir, 0o777)
	for n := firstNetwork; n <= lastNetwork; n++ {
		f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(n)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, fmt.Errorf("opening plane number %d: %w", n, err)
		}
		_ = f.Chmod(0o666)
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return &network{n: byte(n), lock: f}, nil
		}
		f.Close()
	}
	return nil, errors.New("claiming a plane number: all are taken")
}

func (n *network) release() { n.lock.Close() }

// cidr is the pods' network.
func (n *network) cidr() string { return fmt.Sprintf("10.%d.0.0/16", n.n) }

// host is the address of the control plane itself. It lies at the far end of
// the plane's own /16, so no client's ephemeral port ever collides with a port
// found free there (those are taken on 127.0.0.1), nor does a pod's address.
func (n *network) host() string { return fmt.Sprintf("127.%d.255.254", n.n) }

// nodeIP is what every kwok node gives as its address. Nothing listens there.
func (n *network) nodeIP() string { return fmt.Sprintf("10.%d.255.253", n.n) }

// loopback is the address that the process of a pod listens on.
func (n *network) loopback(podIP string) (string, error) {
	addr, err := netip.ParseAddr(podIP)
	if err != nil {
		return "", fmt.Errorf("reading pod IP %q: %w", podIP, err)
	}
	b := addr.Unmap().As16()
	if !addr.Unmap().Is4() || b[12] != 10 || b[13] != n.n {
		return "", fmt.Errorf("mapping pod IP %q: it is not in %s", podIP, n.cidr())
	}
	return netip.AddrFrom4([4]byte{127, n.n, b[14], b[15]}).String(), nil
}

// freePort asks the kernel for a port that nobody listens on.
func freePort(host string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("finding a free port on %q: %w", host, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// portFree tells whether a process could listen there now.
func portFree(host string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("checking that port %d of %q is free: %w", port, host, err)
	}
	return l.Close()
}
