package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// The bounds of request bodies. A review holds an object twice, and an object has at most 1.5 MiB in a request, which
// JSON's escapes may double. Bodies up to smallBody are every Secret's and workload's; the plan's are larger. Each has
// its own budget of bytes being read, so that a flood of large bodies keeps no small one waiting; a length is a claim,
// and the budget is what makes it safe to believe.
const (
	maxBody     = 8 << 20
	smallBody   = 256 << 10
	smallBudget = 16 << 20
	largeBudget = 24 << 20
	pooledBody  = 32 << 10 // an update of a Secret of up to some 12 KiB; a larger one takes a buffer of smallBody
	// busyAfter leaves the API server half of its timeout of 2 s to hear that we are busy.
	busyAfter = time.Second
)

var (
	errBusy     = errors.New("too many bytes are being read")
	errTooLarge = errors.New("the body is too large")
	errNoLength = errors.New("the body's length is not given")
	errBody     = errors.New("the body could not be read")
)

// bodies reads request bodies within the budgets.
type bodies struct {
	small, large *semaphore.Weighted
	buffers      sync.Pool // *[]byte of pooledBody, zeroed
	wide         sync.Pool // *[]byte of smallBody, zeroed
}

func newBodies() *bodies {
	return &bodies{small: semaphore.NewWeighted(smallBudget), large: semaphore.NewWeighted(largeBudget)}
}

// body is a body that was read; its bytes are gone once released.
type body struct {
	bytes  []byte
	buffer *[]byte    // what the bytes are of
	pool   *sync.Pool // where the buffer came from and goes to; nil for none
	budget *semaphore.Weighted
	weight int64
}

func (b *bodies) read(r *http.Request) (body, error) {
	size := r.ContentLength
	switch {
	case size < 0:
		return body{}, errNoLength // the API server always gives one
	case size > maxBody:
		return body{}, errTooLarge
	}
	out := body{budget: b.large, weight: size}
	switch {
	case size <= pooledBody:
		out.budget, out.weight, out.pool = b.small, pooledBody, &b.buffers
	case size <= smallBody:
		out.budget, out.weight, out.pool = b.small, smallBody, &b.wide
	}
	if !out.budget.TryAcquire(out.weight) {
		ctx, cancel := context.WithTimeout(r.Context(), busyAfter)
		defer cancel()
		if out.budget.Acquire(ctx, out.weight) != nil {
			return body{}, errBusy
		}
	}
	out.take(int(size))
	if _, err := io.ReadFull(r.Body, out.bytes); err != nil {
		out.release()
		return body{}, errBody
	}
	return out, nil
}

// take finds room for the bytes.
func (b *body) take(size int) {
	if b.pool == nil {
		b.bytes = make([]byte, size)
		return
	}
	b.buffer, _ = b.pool.Get().(*[]byte)
	if b.buffer == nil {
		fresh := make([]byte, b.weight)
		b.buffer = &fresh
	}
	b.bytes = (*b.buffer)[:size]
}

// release wipes the bytes: they are credentials, and a pooled buffer outlives its request.
func (b *body) release() {
	clear(b.bytes)
	if b.pool != nil {
		b.pool.Put(b.buffer)
	}
	b.budget.Release(b.weight)
}
