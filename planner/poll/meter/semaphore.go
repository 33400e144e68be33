package meter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// Semaphore lets one at a time take much memory.
type Semaphore chan struct{}

// NewSemaphore makes one that nothing holds.
func NewSemaphore() Semaphore { return make(Semaphore, 1) }

func (s Semaphore) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s Semaphore) release() { <-s }

// A head takes up to fourteen times its size while it is parsed; net/http allows 10 MiB, and prometheus/common does
// not let anyone ask for less. So heads are parsed one at a time, and none is kept that is larger than proxies and
// gateways make them.
const (
	maxHead    = 64 << 10 // bytes of memory
	headerLine = 200      // bytes of memory that a line takes beside its text
)

// heads parses the heads of responses one at a time.
type heads struct {
	next http.RoundTripper
	slot Semaphore
}

// RoundTrip sends a request, and gives the response if its head is of a usual size.
func (h heads) RoundTrip(r *http.Request) (*http.Response, error) {
	head := parsing{slot: h.slot}
	defer head.end()
	trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { head.begin(r.Context()) }}
	response, err := h.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return nil, err
	}
	if size := sizeOf(response.Header); size > maxHead {
		response.Body.Close()
		return nil, fmt.Errorf("the head of the answer takes more than %d KiB of memory: look at what answers at poll.prometheus.url", maxHead>>10)
	}
	return response, nil
}

// CloseIdleConnections lets the HTTP client close what it keeps open.
func (h heads) CloseIdleConnections() {
	if c, ok := h.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func sizeOf(header http.Header) (size int) {
	for name, values := range header {
		for _, v := range values {
			size += headerLine + len(name) + len(v)
		}
	}
	return size
}

// parsing is the parsing of one response's head. It begins in a goroutine of the transport's, again where a request is
// sent again, and may begin after the call has ended.
type parsing struct {
	slot        Semaphore
	mu          sync.Mutex
	held, ended bool
}

// begin returns with the slot, unless the call is over: then the transport closes the connection.
func (p *parsing) begin(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held && !p.ended {
		p.held = p.slot.acquire(ctx) == nil
	}
}

func (p *parsing) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.slot.release()
	}
	p.held, p.ended = false, true
}
