package intake

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// Budget is an amount that calls share. While it is used up they wait, and addresses get the same from it, whatever
// each asks for (start-time fair queueing): who asks for more waits behind itself, and an API server's call behind what
// is under way, not behind what an attacker still wants.
type Budget struct {
	size int64

	mu      sync.Mutex
	free    int64
	waiting []*claim             // those that start first, first
	now     int64                // when the claim started that was granted last, in units that an address was given
	ends    map[netip.Addr]int64 // when an address has had what it asked for so far
}

type claim struct {
	from          netip.Addr
	weight, start int64
	granted       chan struct{}
}

// maxEnds bounds the addresses that are remembered; one that had its share long ago is as good as new.
const maxEnds = 1024

// NewBudget makes a budget of that size, of which all is free.
func NewBudget(size int64) *Budget {
	return &Budget{size: size, free: size, ends: map[netip.Addr]int64{}}
}

// TryAcquire takes a part if it is free and no other call waits for one.
func (b *Budget) TryAcquire(from netip.Addr, weight int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free < weight || len(b.waiting) > 0 {
		return false
	}
	b.grant(weight, b.book(from, weight))
	return true
}

// Acquire takes a part, in turn, unless the context ends before. A part that is larger than the whole never comes.
func (b *Budget) Acquire(ctx context.Context, from netip.Addr, weight int64) error {
	if b.TryAcquire(from, weight) {
		return nil
	}
	c := b.enqueue(from, weight)
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	if b.leave(c) {
		return ctx.Err()
	}
	return nil // it was granted at the same moment
}

// book gives a claim its start: now, or when its address has had what it asked for before.
func (b *Budget) book(from netip.Addr, weight int64) (start int64) {
	if len(b.ends) >= maxEnds {
		b.forget()
	}
	start = max(b.now, b.ends[from])
	b.ends[from] = start + weight
	return start
}

// forget makes room for other addresses: those whose share is over go, and where none of them is, the half that had
// least. Who comes from more addresses than these is new from the next one anyway.
func (b *Budget) forget() {
	forgetTo := func(last int64) {
		maps.DeleteFunc(b.ends, func(_ netip.Addr, end int64) bool { return end <= last })
	}
	forgetTo(b.now)
	if len(b.ends) >= maxEnds {
		ends := slices.Sorted(maps.Values(b.ends))
		forgetTo(ends[len(ends)/2])
	}
}

func (b *Budget) grant(weight, start int64) {
	b.free -= weight
	b.now = max(b.now, start)
}

func (b *Budget) enqueue(from netip.Addr, weight int64) *claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &claim{from, weight, b.book(from, weight), make(chan struct{})}
	behind := slices.IndexFunc(b.waiting, func(other *claim) bool { return other.start > c.start })
	if behind < 0 {
		behind = len(b.waiting)
	}
	b.waiting = slices.Insert(b.waiting, behind, c)
	b.serve()
	return c
}

// leave takes a claim back; it reports whether it was still waiting.
func (b *Budget) leave(c *claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.waiting, c)
	if at < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, at, at+1)
	if _, remembered := b.ends[c.from]; remembered {
		b.ends[c.from] -= c.weight // it had nothing
	}
	b.serve() // it may have stood in the way of smaller ones
	return true
}

// Release gives a part back.
func (b *Budget) Release(weight int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += weight
	b.serve()
}

// serve grants what is free. A claim that does not fit is waited for: those behind it may be smaller, and would keep it
// waiting for ever.
func (b *Budget) serve() {
	for len(b.waiting) > 0 && b.waiting[0].weight <= b.free {
		c := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.grant(c.weight, c.start)
		close(c.granted)
	}
}

// CallerOf is the address that a call comes from; the zero one where it is unknown, as in tests.
func CallerOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
