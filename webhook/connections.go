package webhook

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// The most connections that are held at once. One costs some 40 KiB, in a handshake more. An API server keeps at most
// 25 idle ones to a webhook and opens more only for calls that run at the same time, so that 512 are the idle ones of
// 20 of them. What has sent no review yet is counted apart: whoever can reach the port may open those, as many as it
// likes, and they cost no connection that the API server uses.
const (
	maxFresh = 512
	maxKnown = 512
)

// connections is a listener that holds no more than so many connections, and takes every new one: at the limit another
// is closed, of the address that has most of them the one that was used longest ago. Who opens many closes its own.
type connections struct {
	net.Listener

	mu           sync.Mutex
	fresh, known crowd // those that have sent no review, and those that have
}

// LimitConnections makes a listener hold at most so many connections, for servers whose callers it knows nothing of.
func LimitConnections(l net.Listener, most int) net.Listener { return limitConnections(l, most, 0) }

func limitConnections(l net.Listener, fresh, known int) *connections {
	return &connections{Listener: l, fresh: newCrowd(fresh), known: newCrowd(known)}
}

// connection is one of the connections that are held.
type connection struct {
	net.Conn
	of   *connections
	from netip.Addr
	in   *crowd        // nil once it is closed
	at   *list.Element // its place there
	turn uint64        // when it was used, counted in uses
}

// Accept takes the next connection, and closes another for it at the limit.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	taken := &connection{Conn: conn, of: c, from: addressOf(conn)}
	c.mu.Lock()
	surplus := c.fresh.add(taken)
	c.mu.Unlock()
	surplus.cut()
	return taken, nil
}

func addressOf(conn net.Conn) netip.Addr {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Close gives the connection's place free.
func (k *connection) Close() error {
	k.of.mu.Lock()
	if k.in != nil {
		k.in.remove(k)
	}
	k.of.mu.Unlock()
	return k.Conn.Close()
}

// cut closes a connection that has lost its place; nil is none.
func (k *connection) cut() {
	if k != nil {
		k.Conn.Close()
	}
}

// used notes that a call began on the connection.
func (k *connection) used() {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	if k.in == &k.of.known {
		k.in.use(k)
	}
}

// spoke notes that the connection brought a review.
func (k *connection) spoke() {
	k.of.mu.Lock()
	var surplus *connection
	if k.in == &k.of.fresh {
		k.in.remove(k)
		surplus = k.of.known.add(k)
	}
	k.of.mu.Unlock()
	surplus.cut()
}

// crowd is a bounded set of connections, by address, those first that were used longest ago.
type crowd struct {
	most, size int
	turn       uint64
	by         map[netip.Addr]*list.List
}

func newCrowd(most int) crowd { return crowd{most: most, by: map[netip.Addr]*list.List{}} }

// add takes a connection in, and gives the one that has to go for it; nil for none.
func (c *crowd) add(k *connection) *connection {
	own := c.by[k.from]
	if own == nil {
		own = list.New()
		c.by[k.from] = own
	}
	k.in, k.at = c, own.PushBack(k)
	c.use(k)
	if c.size++; c.size <= c.most {
		return nil
	}
	surplus := c.surplus()
	c.remove(surplus)
	return surplus
}

// use makes a connection the one that was used last.
func (c *crowd) use(k *connection) {
	c.turn++
	k.turn = c.turn
	c.by[k.from].MoveToBack(k.at)
}

// surplus is the connection to close: of the address with the most, the one that was used longest ago.
func (c *crowd) surplus() *connection {
	var surplus *connection
	most := 0
	for _, own := range c.by {
		first := own.Front().Value.(*connection)
		if own.Len() > most || own.Len() == most && first.turn < surplus.turn {
			surplus, most = first, own.Len()
		}
	}
	return surplus
}

func (c *crowd) remove(k *connection) {
	own := c.by[k.from]
	if own.Remove(k.at); own.Len() == 0 {
		delete(c.by, k.from)
	}
	c.size--
	k.in, k.at = nil, nil
}

// connectionKey finds a request's connection in its context.
type connectionKey struct{}

// withConnection is net/http's ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if k := underneath(conn); k != nil {
		return context.WithValue(ctx, connectionKey{}, k)
	}
	return ctx
}

// noteCall is net/http's ConnState. A connection whose first request was no review has had its answer, and goes.
func noteCall(conn net.Conn, state http.ConnState) {
	k := underneath(conn)
	switch {
	case k == nil:
	case state == http.StateActive:
		k.used()
	case state == http.StateIdle && !k.hasSpoken():
		conn.Close()
	}
}

func (k *connection) hasSpoken() bool {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	return k.in == &k.of.known
}

// underneath is the connection under TLS; nil for one that no limit holds.
func underneath(conn net.Conn) *connection {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn()
	}
	k, _ := conn.(*connection)
	return k
}

// reviewed notes that a request was a review.
func reviewed(r *http.Request) {
	if k, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		k.spoke()
	}
}
