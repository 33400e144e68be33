package webhook

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// budget is an amount that calls share. While it is used up they wait, and the addresses that they come from take turns:
// one that asks for more than its share waits behind itself, and an API server's call is the next or the one after.
type budget struct {
	size int64

	mu     sync.Mutex
	free   int64
	queues []*queue // of the addresses that wait, the next to be served first
}

// queue is what waits from one address, the longest first.
type queue struct {
	from    netip.Addr
	waiting []*claim
}

type claim struct {
	weight  int64
	granted chan struct{}
}

func newBudget(size int64) *budget { return &budget{size: size, free: size} }

// tryAcquire takes a part if it is free and no other call waits for one.
func (b *budget) tryAcquire(weight int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free < weight || len(b.queues) > 0 {
		return false
	}
	b.free -= weight
	return true
}

// acquire takes a part, in turn, unless the context ends before. A part that is larger than the whole never comes.
func (b *budget) acquire(ctx context.Context, from netip.Addr, weight int64) error {
	if b.tryAcquire(weight) {
		return nil
	}
	c := &claim{weight, make(chan struct{})}
	b.enqueue(from, c)
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	if b.leave(from, c) {
		return ctx.Err()
	}
	return nil // it was granted at the same moment
}

func (b *budget) enqueue(from netip.Addr, c *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.queues, func(q *queue) bool { return q.from == from })
	if i < 0 {
		i = len(b.queues)
		b.queues = append(b.queues, &queue{from: from})
	}
	b.queues[i].waiting = append(b.queues[i].waiting, c)
	b.serve()
}

// leave takes a claim back; it reports whether it was still waiting.
func (b *budget) leave(from netip.Addr, c *claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.queues, func(q *queue) bool { return q.from == from })
	if i < 0 {
		return false
	}
	at := slices.Index(b.queues[i].waiting, c)
	if at < 0 {
		return false
	}
	b.queues[i].waiting = slices.Delete(b.queues[i].waiting, at, at+1)
	if len(b.queues[i].waiting) == 0 {
		b.queues = slices.Delete(b.queues, i, i+1)
	}
	b.serve() // it may have stood in the way of smaller ones
	return true
}

func (b *budget) release(weight int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += weight
	b.serve()
}

// serve grants what is free, a claim an address by turns. A claim that does not fit is waited for: those behind it may be
// smaller, and would keep it waiting for ever.
func (b *budget) serve() {
	for len(b.queues) > 0 {
		first := b.queues[0]
		c := first.waiting[0]
		if c.weight > b.free {
			return
		}
		b.free -= c.weight
		close(c.granted)
		first.waiting = first.waiting[1:]
		b.queues = b.queues[1:]
		if len(first.waiting) > 0 {
			b.queues = append(b.queues, first)
		}
	}
}

// callerOf is the address that a call comes from; the zero one where it is unknown, as in tests.
func callerOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
