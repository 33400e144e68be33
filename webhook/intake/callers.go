package intake

import (
	"net/netip"
	"time"
)

// The addresses that are remembered. Whoever reaches the port may send reviews, as long as he likes and from as many
// addresses as he has. So those that came first have precedence: the API servers, which call from a pod's first minute
// on.
const (
	callsForLong = time.Minute // after its first review an address becomes a regular caller
	fairShare    = 32          // connections of a regular caller: an API server's 25 idle ones, and some that it opens
	maxRegulars  = 12          // whose shares are three quarters of maxFresh, and of maxKnown
	maxCallers   = 256
	// After so long without a review an address makes room for another.
	callerLeaves  = 2 * time.Minute
	regularLeaves = time.Hour
)

// callers are the addresses that reviews came from.
type callers struct {
	by       map[netip.Addr]*callerSeen
	regulars int
}

type callerSeen struct {
	since, last time.Time // its first and its last review
	regular     bool
}

func newCallers() callers { return callers{by: map[netip.Addr]*callerSeen{}} }

// heard notes a review.
func (c *callers) heard(from netip.Addr, now time.Time) {
	a := c.by[from]
	if a == nil {
		if len(c.by) >= maxCallers && !c.makeRoom(now) {
			return
		}
		a = &callerSeen{since: now}
		c.by[from] = a
	}
	a.last = now
	if a.regular || now.Sub(a.since) < callsForLong {
		return
	}
	if c.regulars >= maxRegulars {
		c.makeRoom(now)
	}
	if c.regulars < maxRegulars {
		a.regular = true
		c.regulars++
	}
}

// makeRoom forgets the addresses that have been silent for too long, and reports whether there were any.
func (c *callers) makeRoom(now time.Time) (room bool) {
	for from, a := range c.by {
		leaves := callerLeaves
		if a.regular {
			leaves = regularLeaves
		}
		if now.Sub(a.last) <= leaves {
			continue
		}
		if a.regular {
			c.regulars--
		}
		delete(c.by, from)
		room = true
	}
	return room
}

// share is how many connections an address keeps whatever others open.
func (c *callers) share(from netip.Addr) int {
	if a := c.by[from]; a != nil && a.regular {
		return fairShare
	}
	return 0
}
