package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// AllPods stands for every pod in the Proxy's methods.
const AllPods = "*"

// Proxy is the API server's way to the pods: an HTTP CONNECT proxy on a Unix
// socket, as a cloud's konnectivity is. It dials the loopback image of each
// pod IP, and plays the network's part in a failure: a refused pod answers at
// once, a blackholed one never.
type Proxy struct {
	network *Network
	server  *http.Server

	mu     sync.Mutex
	states map[string]reach // by pod IP or AllPods; absent = reachable
	change chan struct{}    // closed and replaced at every change
	counts map[string]int
	tunnel map[*tunnel]struct{}
}

type reach int

const (
	reachable reach = iota
	refused
	blackholed
)

// tunnel is an open connection to a pod, kept so that it can be cut.
type tunnel struct {
	podIP      string
	near, away net.Conn
}

func (t *tunnel) close() {
	t.near.Close()
	t.away.Close()
}

// StartProxy listens on the socket.
func StartProxy(n *Network, socket string) (*Proxy, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for the API server's connections: %w", err)
	}
	p := &Proxy{
		network: n,
		states:  map[string]reach{},
		change:  make(chan struct{}),
		counts:  map[string]int{},
		tunnel:  map[*tunnel]struct{}{},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// Refuse makes new connections to the pod fail at once and cuts the open ones:
// a pod whose process is gone.
func (p *Proxy) Refuse(podIP string) { p.set(podIP, refused) }

// Blackhole makes new connections to the pod hang and open ones fall silent,
// without closing them: a node whose network is gone.
func (p *Proxy) Blackhole(podIP string) { p.set(podIP, blackholed) }

// Allow undoes Refuse and Blackhole; of AllPods it undoes every one.
func (p *Proxy) Allow(podIP string) { p.set(podIP, reachable) }

// Connections is how many times the API server asked for a connection to the
// pod, refused ones included.
func (p *Proxy) Connections(podIP string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[podIP]
}

func (p *Proxy) set(podIP string, r reach) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r != reachable:
		p.states[podIP] = r
	case podIP == AllPods:
		clear(p.states)
	default:
		delete(p.states, podIP)
	}
	close(p.change)
	p.change = make(chan struct{})
	for t := range p.tunnel {
		if r == refused && (podIP == AllPods || t.podIP == podIP) {
			t.close()
		}
	}
}

// state is the pod's own setting, else the one for all, and a channel that
// closes when either may have changed.
func (p *Proxy) state(podIP string) (reach, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.states[podIP]; ok {
		return r, p.change
	}
	return p.states[AllPods], p.change
}

// pass blocks while the pod is blackholed and then tells whether it answers.
func (p *Proxy) pass(ctx context.Context, podIP string) error {
	for {
		r, change := p.state(podIP)
		switch r {
		case reachable:
			return nil
		case refused:
			return fmt.Errorf("connecting to pod %q: refused", podIP)
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeHTTP answers one CONNECT and then carries its bytes.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	podIP, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.counts[podIP]++
	p.counts[AllPods]++
	p.mu.Unlock()
	away, err := p.dial(r.Context(), podIP, port)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		away.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.carry(&tunnel{podIP: podIP, near: near, away: away}, buffered)
}

// dial reaches a pod on its loopback image. Loopback addresses are taken as
// they are: a webhook may be configured by URL.
func (p *Proxy) dial(ctx context.Context, podIP, port string) (net.Conn, error) {
	if err := p.pass(ctx, podIP); err != nil {
		return nil, err
	}
	host := podIP
	if addr, err := netip.ParseAddr(podIP); err != nil || !addr.IsLoopback() {
		if host, err = p.network.Loopback(podIP); err != nil {
			return nil, err
		}
	}
	d := net.Dialer{Timeout: 10 * time.Second}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// carry copies both ways until either side ends.
func (p *Proxy) carry(t *tunnel, buffered *bufio.ReadWriter) {
	defer t.close()
	p.mu.Lock()
	p.tunnel[t] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.tunnel, t)
	}()
	if _, err := io.WriteString(t.near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 2)
	go func() { done <- p.copy(ctx, t.podIP, t.away, buffered) }()
	go func() { done <- p.copy(ctx, t.podIP, t.near, t.away) }()
	<-done
}

// copy holds the bytes back while the pod is blackholed, as TCP would.
func (p *Proxy) copy(ctx context.Context, podIP string, to io.Writer, from io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := p.pass(ctx, podIP); err != nil {
				return err
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// close ends the listener, the waiting requests and the open tunnels.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.Allow(AllPods)
	p.Refuse(AllPods)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
