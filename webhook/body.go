package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// The bounds of request bodies. A review holds the object that is written and the one that is stored. The API server
// reads a request of at most requestLimit, and etcd stores an object of at most storedLimit (their defaults). In a
// review either is JSON as encoding/json writes it, where one byte becomes six at worst: '<', a control character, a
// byte that is no UTF-8. The rest of a review is names, the user and the options. A patch may make an object larger
// than requestLimit of a stored one; that is larger than storedLimit too, and refused after admission whatever we
// answer. So what is over maxBody is never stored: no filler gets a write past us.
//
// Bodies up to smallBody are every Secret's and workload's; the plan's are larger, and above largeBody there is nothing
// but filler. Each has its own budget of bytes being read, so that a flood of larger bodies keeps no smaller one
// waiting. The largest budget holds one body.
//
// A length is a claim that anybody on the network may make, so that no more than headBody is set aside for it until as
// much has come. What is claimed is set aside as a whole then: bodies that grew together could each wait for the rest
// of the budget and hold the others' part of it.
const (
	requestLimit = 3 << 20
	storedLimit  = 3 << 19
	worstEscape  = 6
	maxBody      = worstEscape*(requestLimit+storedLimit) + 1<<20
	smallBody    = 256 << 10
	smallBudget  = 12 << 20
	largeBody    = 6 << 20
	largeBudget  = 24 << 20
	hugeBudget   = maxBody
	headBody     = 4 << 10
	pooledBody   = 32 << 10 // an update of a Secret of up to some 12 KiB; a larger one takes a buffer of smallBody
	// busyAfter leaves the API server half of its timeout of 2 s to hear that we are busy.
	busyAfter = time.Second
	// stalledAfter is how long a body may take while others wait for its bytes. The API server sends a request at once;
	// who takes longer loses its place to who waits.
	stalledAfter = 250 * time.Millisecond
	// cutEvery is how often one that waits looks for a body that has stalled.
	cutEvery = 25 * time.Millisecond
)

var (
	errBusy     = errors.New("too many bytes are being read")
	errTooLarge = errors.New("the body is too large")
	errNoLength = errors.New("the body's length is not given")
	errBody     = errors.New("the body could not be read")
)

// bodies reads request bodies within the budgets.
type bodies struct {
	budgets  [classes]*budget
	readings sync.Pool // *reading
	buffers  sync.Pool // *[]byte of pooledBody, zeroed
	wide     sync.Pool // *[]byte of smallBody, zeroed

	mu             sync.Mutex
	oldest, newest *reading // those that wait for the network
}

// class is a size of bodies that has a budget of its own.
type class int

const (
	small class = iota
	large
	huge
	classes
)

// classOf is a body's class, and what it takes of its budget.
func classOf(size int64) (class, int64) {
	switch {
	case size <= pooledBody:
		return small, pooledBody
	case size <= smallBody:
		return small, smallBody
	case size <= largeBody:
		return large, size
	}
	return huge, size
}

func newBodies() *bodies {
	return &bodies{budgets: [classes]*budget{newBudget(smallBudget), newBudget(largeBudget), newBudget(hugeBudget)}}
}

// reading is a body that is being read, and the bytes that it begins with.
type reading struct {
	head        [headBody]byte
	since       time.Time           // when it began to wait for the network
	connection  http.ResponseWriter // whose read deadline ends the reading; nil in tests
	prev, next  *reading
	listed, cut bool
	held        [classes]int64 // of each budget
}

// body is a body that was read; its bytes are gone once released.
type body struct {
	bytes   []byte
	reading *reading
	buffer  *[]byte    // what the bytes are of, where they are more than a head
	pool    *sync.Pool // where the buffer came from and goes to; nil for none
	from    *bodies
}

func (b *bodies) read(w http.ResponseWriter, r *http.Request) (body, error) {
	size := r.ContentLength
	switch {
	case size < 0:
		return body{}, errNoLength // the API server always gives one
	case size > maxBody:
		return body{}, errTooLarge
	}
	if err := b.acquire(r, small, headBody); err != nil {
		return body{}, err
	}
	out := body{from: b, reading: b.newReading(w)}
	b.list(out.reading)
	err := out.fill(r, int(size))
	if b.unlist(out.reading) {
		err = errBusy // whatever came meanwhile: the connection is of no use any more
	}
	if err != nil {
		out.release()
		return body{}, err
	}
	return out, nil
}

func (b *bodies) newReading(w http.ResponseWriter) *reading {
	r, _ := b.readings.Get().(*reading)
	if r == nil {
		r = &reading{}
	}
	r.connection, r.cut, r.held = w, false, [classes]int64{small: headBody}
	return r
}

// fill reads the head, and finds room for the rest only when all of that has come.
func (b *body) fill(r *http.Request, size int) error {
	b.bytes = b.reading.head[:min(size, headBody)]
	if _, err := io.ReadFull(r.Body, b.bytes); err != nil {
		return errBody
	}
	if size <= headBody {
		return nil
	}
	if err := b.from.grow(r, b.reading, int64(size)); err != nil {
		return err
	}
	b.take(size)
	copy(b.bytes, b.reading.head[:])
	if _, err := io.ReadFull(r.Body, b.bytes[headBody:]); err != nil {
		return errBody
	}
	return nil
}

// grow sets aside what a body of that size needs beside its head. While it waits for that it is not stalled.
func (b *bodies) grow(request *http.Request, r *reading, size int64) error {
	if b.unlist(r) {
		return errBusy
	}
	of, weight := classOf(size)
	if err := b.acquire(request, of, weight); err != nil {
		return err
	}
	r.held[of] += weight
	b.list(r)
	return nil
}

// take finds room for the bytes.
func (b *body) take(size int) {
	var length int
	switch {
	case size <= pooledBody:
		b.pool, length = &b.from.buffers, pooledBody
	case size <= smallBody:
		b.pool, length = &b.from.wide, smallBody
	default:
		b.bytes = make([]byte, size)
		return
	}
	b.buffer, _ = b.pool.Get().(*[]byte)
	if b.buffer == nil {
		fresh := make([]byte, length)
		b.buffer = &fresh
	}
	b.bytes = (*b.buffer)[:size]
}

// release wipes the bytes: they are credentials, and a pooled buffer outlives its request.
func (b *body) release() {
	clear(b.bytes)
	clear(b.reading.head[:])
	if b.pool != nil {
		b.pool.Put(b.buffer)
	}
	held := b.reading.held
	b.reading.connection = nil
	b.from.readings.Put(b.reading)
	for of, weight := range held {
		if weight > 0 {
			b.from.budgets[of].release(weight)
		}
	}
}

// acquire sets bytes aside, if need be those of bodies that have stalled.
func (b *bodies) acquire(r *http.Request, of class, weight int64) error {
	from, budget := callerOf(r), b.budgets[of]
	if budget.tryAcquire(from, weight) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), busyAfter)
	defer cancel()
	acquired := make(chan error, 1)
	go func() { acquired <- budget.acquire(ctx, from, weight) }()
	tick := time.NewTicker(cutEvery)
	defer tick.Stop()
	for {
		b.cutStalled(of, weight, time.Now())
		select {
		case err := <-acquired:
			if err != nil {
				return errBusy
			}
			return nil
		case <-tick.C:
		}
	}
}

// cutStalled ends the oldest readings of a budget that take too long, until so many bytes come free.
func (b *bodies) cutStalled(of class, weight int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := b.oldest; r != nil && weight > 0 && now.Sub(r.since) > stalledAfter; r = r.next {
		if r.held[of] == 0 {
			continue
		}
		weight -= r.held[of]
		if r.cut = true; r.connection != nil {
			_ = http.NewResponseController(r.connection).SetReadDeadline(now) // one without deadlines is a test's
		}
	}
}

// list notes that a reading waits for the network from now on.
func (b *bodies) list(r *reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.since, r.listed, r.prev, r.next = time.Now(), true, b.newest, nil
	if b.newest == nil {
		b.oldest = r
	} else {
		b.newest.next = r
	}
	b.newest = r
}

// unlist notes that a reading does not wait for the network, so that nobody cuts it; it reports whether somebody has.
func (b *bodies) unlist(r *reading) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.listed {
		return r.cut
	}
	if r.prev == nil {
		b.oldest = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		b.newest = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.listed, r.prev, r.next = false, nil, nil
	return r.cut
}
