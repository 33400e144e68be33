package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// The bounds of request bodies. A review holds an object twice, and an object has at most 1.5 MiB in a request, which
// JSON's escapes may double. Bodies up to smallBody are every Secret's and workload's; the plan's are larger. Each has
// its own budget of bytes being read, so that a flood of large bodies keeps no small one waiting.
const (
	maxBody     = 8 << 20
	smallBody   = 128 << 10
	smallBudget = 16 << 20
	largeBudget = 24 << 20
	// busyAfter leaves the API server half of its timeout of 2 s to hear that we are busy.
	busyAfter = time.Second
)

var (
	errBusy     = errors.New("too many bytes are being read")
	errTooLarge = errors.New("the body is too large")
	errBody     = errors.New("the body could not be read")
)

// bodies reads request bodies within the budgets.
type bodies struct {
	small, large *semaphore.Weighted
	buffers      sync.Pool // *[]byte of smallBody, zeroed
}

func newBodies() *bodies {
	return &bodies{small: semaphore.NewWeighted(smallBudget), large: semaphore.NewWeighted(largeBudget)}
}

// body is a body that was read; its bytes are gone once released.
type body struct {
	bytes  []byte
	pooled *[]byte
	budget *semaphore.Weighted
	weight int64
	from   *bodies
}

func (b *bodies) read(r *http.Request) (body, error) {
	size := r.ContentLength
	switch {
	case size > maxBody:
		return body{}, errTooLarge
	case size < 0:
		size = maxBody // chunked: the API server never does, so it may be anything
	}
	out := body{budget: b.large, weight: size, from: b}
	if size <= smallBody {
		out.budget, out.weight = b.small, smallBody
	}
	if !out.budget.TryAcquire(out.weight) {
		ctx, cancel := context.WithTimeout(r.Context(), busyAfter)
		defer cancel()
		if out.budget.Acquire(ctx, out.weight) != nil {
			return body{}, errBusy
		}
	}
	if err := out.fill(r.Body, size); err != nil {
		out.release()
		return body{}, err
	}
	return out, nil
}

// fill reads into a pooled buffer, or grows with what really comes: a length is only a claim.
func (b *body) fill(from io.Reader, size int64) error {
	if size <= smallBody {
		b.pooled, _ = b.from.buffers.Get().(*[]byte)
		if b.pooled == nil {
			fresh := make([]byte, smallBody)
			b.pooled = &fresh
		}
		b.bytes = (*b.pooled)[:size]
		if _, err := io.ReadFull(from, b.bytes); err != nil {
			return errBody
		}
		return nil
	}
	limited := io.LimitReader(from, maxBody+1)
	for {
		b.bytes = slices.Grow(b.bytes, max(smallBody, len(b.bytes)/2))
		n, err := limited.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case len(b.bytes) > maxBody:
			return errTooLarge
		case err == io.EOF && (int64(len(b.bytes)) == size || size == maxBody):
			return nil
		case err != nil:
			return errBody
		}
	}
}

// release wipes the bytes: they are credentials, and a pooled buffer outlives its request.
func (b *body) release() {
	clear(b.bytes)
	if b.pooled != nil {
		b.from.buffers.Put(b.pooled)
	}
	b.budget.Release(b.weight)
}
