package intake

import (
	"cmp"
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
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
// is closed, of the address that has most of them the one that was used longest ago. Who opens many closes its own. Of
// those that have sent a review, one whose call is being read or answered goes only where every other is such, too. A
// regular caller loses nothing of its share.
type connections struct {
	net.Listener
	now func() time.Time

	mu           sync.Mutex
	fresh, known crowd // those that have sent no review, and those that have
	callers      callers
}

// LimitConnections makes a listener hold at most so many connections, for servers whose callers it knows nothing of.
func LimitConnections(l net.Listener, most int) net.Listener { return limitConnections(l, most, 0) }

func limitConnections(l net.Listener, fresh, known int) *connections {
	c := &connections{Listener: l, now: time.Now, fresh: newCrowd(fresh), known: newCrowd(known), callers: newCallers()}
	c.known.callsLast = true
	return c
}

// connection is one of the connections that are held.
type connection struct {
	net.Conn
	of      *connections
	from    netip.Addr
	in      *crowd        // nil once it is closed
	at      *list.Element // its place there
	turn    uint64        // when it was used, counted in uses
	calling bool          // a call on it is being read or answered
}

// Accept takes the next connection, and closes another for it at the limit.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	taken := &connection{Conn: conn, of: c, from: addressOf(conn)}
	c.mu.Lock()
	surplus := c.fresh.add(taken, c.callers.share)
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

// began notes that a call's head was read.
func (k *connection) began() {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.calling = true
	if k.in == &k.of.known {
		k.in.use(k)
	}
}

// ended notes that a call was answered, and reports whether the connection has brought a review.
func (k *connection) ended() (spoken bool) {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.calling = false
	return k.in == &k.of.known
}

// spoke notes that the connection brought a review.
func (k *connection) spoke() {
	k.of.mu.Lock()
	var surplus *connection
	k.of.callers.heard(k.from, k.of.now())
	if k.in == &k.of.fresh {
		k.in.remove(k)
		surplus = k.of.known.add(k, k.of.callers.share)
	}
	k.of.mu.Unlock()
	surplus.cut()
}

// crowd is a bounded set of connections, by address, those first that were used longest ago.
type crowd struct {
	most, size int
	turn       uint64
	by         map[netip.Addr]*list.List
	// callsLast lets a call outweigh how many connections its address has. Of those that have sent no review anybody
	// may open as many as are held and begin a call on each, for which no new one must go.
	callsLast bool
}

func newCrowd(most int) crowd { return crowd{most: most, by: map[netip.Addr]*list.List{}} }

// add takes a connection in, and gives the one that has to go for it; nil for none.
func (c *crowd) add(k *connection, share func(netip.Addr) int) *connection {
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
	surplus := c.surplus(share)
	c.remove(surplus)
	return surplus
}

// use makes a connection the one that was used last.
func (c *crowd) use(k *connection) {
	c.turn++
	k.turn = c.turn
	c.by[k.from].MoveToBack(k.at)
}

// stay is why a connection stays; what has the least reason goes first.
type stay int

const (
	expendable stay = iota
	needed          // its call would fail
	shared          // it is within its address's share
)

// candidate is the connection to close of an address.
type candidate struct {
	*connection
	stay  stay
	over  int // connections of the address beyond its share
	calls int // 1 where a call runs on it
}

func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.stay, b.stay), cmp.Compare(b.over, a.over), cmp.Compare(a.calls, b.calls),
		cmp.Compare(a.turn, b.turn))
}

// surplus is the connection to close: of the address with the most beyond its share the one that was used longest ago.
func (c *crowd) surplus(share func(netip.Addr) int) *connection {
	var surplus candidate
	for from, own := range c.by {
		k := c.candidate(own, share(from))
		if surplus.connection == nil || k.compare(surplus) < 0 {
			surplus = k
		}
	}
	return surplus.connection
}

// candidate is an address's first connection without a call, and else its first.
func (c *crowd) candidate(own *list.List, share int) candidate {
	k := candidate{connection: own.Front().Value.(*connection), over: own.Len() - share}
	for at := own.Front(); at != nil && k.calling; at = at.Next() {
		if other := at.Value.(*connection); !other.calling {
			k.connection = other
		}
	}
	if k.calling {
		k.calls = 1
	}
	switch {
	case k.over <= 0:
		k.stay = shared
	case k.calling && c.callsLast:
		k.stay = needed
	}
	return k
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
		k.began()
	case state == http.StateIdle && !k.ended():
		conn.Close()
	}
}

// underneath is the connection under TLS; nil for one that no limit holds.
func underneath(conn net.Conn) *connection {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn()
	}
	k, _ := conn.(*connection)
	return k
}

// Reviewed notes that a request was a review.
func Reviewed(r *http.Request) {
	if k, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		k.spoke()
	}
}
