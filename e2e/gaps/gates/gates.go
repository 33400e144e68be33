// Package gates makes one API server many: clusters that Argo CD takes for different ones.
package gates

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"sync"
)

// Gates are the clusters' API servers: an address each, all of which lead to the plane's one. Argo CD knows a cluster
// by its URL, so to it they are different clusters.
type Gates struct {
	URLs []string

	mu    sync.Mutex
	open  map[io.Closer]struct{}
	ended bool
	wg    sync.WaitGroup
}

// Open takes addresses of the plane's own network, 127.N.254.1 and so on, where nothing else of it lies.
func Open(apiserver string, n int) (*Gates, error) {
	u, err := url.Parse(apiserver)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's address %q: %w", apiserver, err)
	}
	host, err := netip.ParseAddr(u.Hostname())
	if err != nil || !host.Is4() || n > 254 {
		return nil, fmt.Errorf("opening %d gates to %q: at most 254 lead to an IPv4 address: %w", n, apiserver, err)
	}
	d := &Gates{open: map[io.Closer]struct{}{}}
	for i := range n {
		ip := host.As4()
		ip[2], ip[3] = 254, byte(i+1)
		listener, err := net.Listen("tcp", net.JoinHostPort(netip.AddrFrom4(ip).String(), "6443"))
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("opening a gate to the API server: %w", err)
		}
		d.URLs = append(d.URLs, "https://"+listener.Addr().String())
		d.keep(listener)
		d.wg.Go(func() { d.serve(listener, u.Host) })
	}
	return d, nil
}

func (d *Gates) serve(listener net.Listener, to string) {
	for {
		near, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			d.wg.Go(func() { d.carry(near, to) })
		}
	}
}

// carry copies both ways until either side ends. The bytes are TLS, of which nothing is seen here.
func (d *Gates) carry(near net.Conn, to string) {
	defer d.drop(near)
	if !d.keep(near) {
		return
	}
	away, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer d.drop(away)
	if !d.keep(away) {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, away}, {away, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // however it ends, it ends both
			done <- struct{}{}
		}()
	}
	<-done
}

// keep tells whether the gates are still open.
func (d *Gates) keep(c io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.open[c] = struct{}{}
	}
	return !d.ended
}

func (d *Gates) drop(c io.Closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
	_ = c.Close() // what was carried has arrived, or its reader is gone
}

// Close ends all connections and returns when nothing is carried any more.
func (d *Gates) Close() {
	d.mu.Lock()
	d.ended = true
	for c := range d.open {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}
