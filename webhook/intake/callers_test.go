package intake

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// offered is a listener and a connection of it, from an address of the test's.
type offered struct {
	net.Listener
	net.Conn
	from   net.Addr
	closed bool
}

func (o *offered) Accept() (net.Conn, error) { return o, nil }
func (o *offered) RemoteAddr() net.Addr      { return o.from }
func (o *offered) Close() error              { o.closed = true; return nil }

// play is what happens to the connections of a listener, on a clock of its own.
type play struct {
	*connections
	at      time.Time
	offered []*offered
	taken   []*connection
}

func newPlay(fresh, known int) *play {
	p := &play{connections: limitConnections(nil, fresh, known), at: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	p.now = func() time.Time { return p.at }
	return p
}

// opens takes so many connections of an address.
func (p *play) opens(t *testing.T, from string, count int) {
	t.Helper()
	for range count {
		o := &offered{from: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 40000))}
		p.Listener = o
		taken, err := p.Accept()
		if err != nil {
			t.Fatal(err)
		}
		p.offered, p.taken = append(p.offered, o), append(p.taken, taken.(*connection))
	}
}

// review is a call on one of the connections, up to its answer.
func (p *play) review(i int) {
	noteCall(p.taken[i], http.StateActive)
	p.taken[i].spoke()
	noteCall(p.taken[i], http.StateIdle)
}

func (p *play) closed() []int {
	var closed []int
	for i, o := range p.offered {
		if o.closed {
			closed = append(closed, i)
		}
	}
	return closed
}

// reviews are so many connections of an address that have each brought one.
func (p *play) reviews(t *testing.T, from string, count int) {
	t.Helper()
	for range count {
		p.opens(t, from, 1)
		p.review(len(p.taken) - 1)
	}
}

// longTime makes an address a regular caller, with so many idle connections.
func (p *play) longTime(t *testing.T, from string, count int) {
	t.Helper()
	first := len(p.taken)
	p.reviews(t, from, count)
	p.at = p.at.Add(callsForLong)
	p.review(first)
}

// TestAtTheLimitNoCallIsCut: a connection whose call is being read or answered goes only where every other is such.
func TestAtTheLimitNoCallIsCut(t *testing.T) {
	const honest, other, third = "10.0.0.1", "10.0.0.66", "10.0.0.67"
	for name, tc := range map[string]struct {
		play func(*testing.T, *play)
		want []int
	}{
		"of the address with most, where another has an idle one": {func(t *testing.T, p *play) {
			p.reviews(t, honest, 3)
			for i := range 3 {
				noteCall(p.taken[i], http.StateActive)
			}
			p.reviews(t, other, 2)
		}, []int{3}},
		"an answered one goes": {func(t *testing.T, p *play) {
			p.reviews(t, honest, 3)
			for i := range 3 {
				noteCall(p.taken[i], http.StateActive)
			}
			noteCall(p.taken[1], http.StateIdle)
			p.reviews(t, other, 2)
		}, []int{1}},
		"where a call runs on each, the oldest of who has most": {func(t *testing.T, p *play) {
			p.opens(t, honest, 1)
			p.opens(t, other, 4)
			for i := range 5 {
				noteCall(p.taken[i], http.StateActive)
				p.taken[i].spoke()
			}
		}, []int{1}},
		"a first call, while its address has a handshake": {func(t *testing.T, p *play) {
			p.opens(t, honest, 4)
			noteCall(p.taken[0], http.StateActive)
			p.opens(t, other, 1)
		}, []int{1}},
		"nor while another address has one": {func(t *testing.T, p *play) {
			p.opens(t, honest, 1)
			noteCall(p.taken[0], http.StateActive)
			p.opens(t, "10.0.0.65", 1)
			p.opens(t, other, 1)
			p.opens(t, third, 1)
			p.opens(t, "10.0.0.68", 1)
		}, []int{1}},
		"first calls keep no new connection out": {func(t *testing.T, p *play) {
			p.opens(t, other, 4)
			for i := range 4 {
				noteCall(p.taken[i], http.StateActive)
			}
			p.opens(t, honest, 1)
		}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(4, 4)
			tc.play(t, p)
			if diff := cmp.Diff(tc.want, p.closed()); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARegularCallerKeepsItsShare, whatever others open and however many addresses they have.
func TestARegularCallerKeepsItsShare(t *testing.T) {
	const honest = "10.0.0.1"
	crowd := func(t *testing.T, p *play) {
		for i := range 1000 {
			from := fmt.Sprintf("10.1.%d.%d", i/250, i%250)
			p.reviews(t, from, 1)
			noteCall(p.taken[len(p.taken)-1], http.StateActive) // and its next call goes on
			p.opens(t, from, 1)
		}
	}
	kept := func(p *play, first, count int) (n int) {
		for _, o := range p.offered[first : first+count] {
			if !o.closed {
				n++
			}
		}
		return n
	}
	for name, tc := range map[string]struct {
		begin func(*testing.T, *play)
		count int
		want  int // of the first so many connections, how many stay
	}{
		"25 idle ones":                 {func(t *testing.T, p *play) { p.longTime(t, honest, 25) }, 25, 25},
		"no more than its share":       {func(t *testing.T, p *play) { p.longTime(t, honest, 60) }, 60, fairShare},
		"not one that has just come":   {func(t *testing.T, p *play) { p.reviews(t, honest, 25) }, 25, 0},
		"those that it opens anew":     {func(t *testing.T, p *play) { p.longTime(t, honest, 1); p.opens(t, honest, 25) }, 26, 26},
		"handshakes of an unknown one": {func(t *testing.T, p *play) { p.opens(t, honest, 25) }, 25, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(maxFresh, maxKnown)
			tc.begin(t, p)
			crowd(t, p)
			if got := kept(p, 0, tc.count); got != tc.want {
				t.Errorf("%d of %d stay, want %d", got, tc.count, tc.want)
			}
			if p.fresh.size > maxFresh || p.known.size > maxKnown {
				t.Errorf("%d fresh and %d known connections are held", p.fresh.size, p.known.size)
			}
		})
	}
}

// TestWhoCallsForLong: the first have precedence, and who is silent makes room.
func TestWhoCallsForLong(t *testing.T) {
	type heard struct {
		from int
		at   time.Duration
	}
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	all := func(n int, at time.Duration) (out []heard) {
		for i := range n {
			out = append(out, heard{i, at})
		}
		return out
	}
	upTo := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for name, tc := range map[string]struct {
		heard []heard
		want  []int
	}{
		"one review is none":               {all(3, 0), nil},
		"nor are many within a minute":     {slices.Concat(all(1, 0), all(1, callsForLong-1)), nil},
		"a minute later":                   {slices.Concat(all(3, 0), all(3, callsForLong)), upTo(3)},
		"the first ones, and no more":      {slices.Concat(all(40, 0), all(40, callsForLong)), upTo(maxRegulars)},
		"those who came later wait":        {slices.Concat(all(12, 0), all(12, time.Hour/2), all(13, time.Hour), all(13, time.Hour+callsForLong)), upTo(12)},
		"until one is silent for an hour":  {slices.Concat(all(13, 0), all(12, callsForLong), all(12, time.Hour)[1:], []heard{{12, time.Hour + callsForLong + 1}}), upTo(13)[1:]},
		"a burst of addresses leaves room": {slices.Concat([]heard{}, all(maxCallers+100, 0)[100:], []heard{{0, callerLeaves + 1}, {0, callerLeaves + callsForLong + 1}}), upTo(1)},
		"a lasting one leaves none":        {slices.Concat(all(maxCallers, 0), []heard{{300, time.Second}, {300, callsForLong + 2}}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, start := newCallers(), time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
			for _, h := range tc.heard {
				c.heard(address(h.from), start.Add(h.at))
			}
			var got []int
			for i := range 400 {
				if c.share(address(i)) == fairShare {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("regular callers (-want +got):\n%s", diff)
			}
			if len(c.by) > maxCallers || c.regulars != len(got) {
				t.Errorf("%d are remembered, %d of them as regular", len(c.by), c.regulars)
			}
		})
	}
}
