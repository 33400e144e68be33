package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"ballast/webhook/rawjson"
)

// The bounds of request bodies. A review holds the object that is written and the one that is stored. The API server
// reads a request of at most RequestLimit, and etcd stores an object of at most StoredLimit (their defaults). In a
// review either is JSON as encoding/json writes it, where one byte becomes up to WorstEscape. The rest of a review is
// names, the user and the options. A patch may make an object larger than RequestLimit of a stored one; that is larger
// than StoredLimit too, and refused after admission whatever we answer. So what is over MaxBody is never stored: no
// filler gets a write past us.
//
// Bodies up to smallBody are every Secret's and workload's; the plan's are larger, and above largeBody there is nothing
// but filler. Each has its own budget of bytes being read, so that a flood of larger bodies keeps no smaller one
// waiting. The largest budget holds one body.
//
// A length is a claim that anybody on the network may make, so that no more than headBody is set aside for it until as
// much has come. What is claimed is set aside as a whole then: bodies that grew together could each wait for the rest
// of the budget and hold the others' part of it.
const (
	RequestLimit = 3 << 20
	StoredLimit  = 3 << 19
	MaxBody      = rawjson.WorstEscape*(RequestLimit+StoredLimit) + 1<<20
	smallBody    = 256 << 10
	smallBudget  = 12 << 20
	largeBody    = 6 << 20
	largeBudget  = 24 << 20
	hugeBudget   = MaxBody
	headBody     = 4 << 10
	pooledBody   = 32 << 10 // an update of a Secret of up to some 12 KiB; a larger one takes a buffer of smallBody
	// BusyAfter leaves the API server half of its timeout of 2 s to hear that we are busy.
	BusyAfter = time.Second
	// StalledAfter is how long a body may take while others wait for its bytes. The API server sends a request at once;
	// who takes longer loses its place to who waits.
	StalledAfter = 250 * time.Millisecond
	// cutEvery is how often one that waits looks for a body that has stalled.
	cutEvery = 25 * time.Millisecond
)

// Why a body was not read.
var (
	ErrBusy     = errors.New("too many bytes are being read")
	ErrTooLarge = errors.New("the body is too large")
	ErrNoLength = errors.New("the body's length is not given")
	errBody     = errors.New("the body could not be read")
)

// Bodies reads request bodies within the budgets.
type Bodies struct {
	budgets  [classes]*Budget
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

// NewBodies has every budget free.
func NewBodies() *Bodies {
	return &Bodies{budgets: [classes]*Budget{NewBudget(smallBudget), NewBudget(largeBudget), NewBudget(hugeBudget)}}
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

// Body is a body that was read; its bytes are gone once released.
type Body struct {
	Bytes   []byte
	reading *reading
	buffer  *[]byte    // what the bytes are of, where they are more than a head
	pool    *sync.Pool // where the buffer came from and goes to; nil for none
	from    *Bodies
}

// Read reads a request's body. Its error is one of this package's, or that the network failed.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (Body, error) {
	size := r.ContentLength
	switch {
	case size < 0:
		return Body{}, ErrNoLength // the API server always gives one
	case size > MaxBody:
		return Body{}, ErrTooLarge
	}
	if err := b.acquire(r, small, headBody); err != nil {
		return Body{}, err
	}
	out := Body{from: b, reading: b.newReading(w)}
	b.list(out.reading)
	err := out.fill(r, int(size))
	if b.unlist(out.reading) {
		err = ErrBusy // whatever came meanwhile: the connection is of no use any more
	}
	if err != nil {
		out.Release()
		return Body{}, err
	}
	return out, nil
}

func (b *Bodies) newReading(w http.ResponseWriter) *reading {
	r, _ := b.readings.Get().(*reading)
	if r == nil {
		r = &reading{}
	}
	r.connection, r.cut, r.held = w, false, [classes]int64{small: headBody}
	return r
}

// fill reads the head, and finds room for the rest only when all of that has come.
func (b *Body) fill(r *http.Request, size int) error {
	b.Bytes = b.reading.head[:min(size, headBody)]
	if _, err := io.ReadFull(r.Body, b.Bytes); err != nil {
		return errBody
	}
	if size <= headBody {
		return nil
	}
	if err := b.from.grow(r, b.reading, int64(size)); err != nil {
		return err
	}
	b.take(size)
	copy(b.Bytes, b.reading.head[:])
	if _, err := io.ReadFull(r.Body, b.Bytes[headBody:]); err != nil {
		return errBody
	}
	return nil
}

// grow sets aside what a body of that size needs beside its head. While it waits for that it is not stalled.
func (b *Bodies) grow(request *http.Request, r *reading, size int64) error {
	if b.unlist(r) {
		return ErrBusy
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
func (b *Body) take(size int) {
	var length int
	switch {
	case size <= pooledBody:
		b.pool, length = &b.from.buffers, pooledBody
	case size <= smallBody:
		b.pool, length = &b.from.wide, smallBody
	default:
		b.Bytes = make([]byte, size)
		return
	}
	b.buffer, _ = b.pool.Get().(*[]byte)
	if b.buffer == nil {
		fresh := make([]byte, length)
		b.buffer = &fresh
	}
	b.Bytes = (*b.buffer)[:size]
}

// Release wipes the bytes: they are credentials, and a pooled buffer outlives its request.
func (b *Body) Release() {
	clear(b.Bytes)
	clear(b.reading.head[:])
	if b.pool != nil {
		b.pool.Put(b.buffer)
	}
	held := b.reading.held
	b.reading.connection = nil
	b.from.readings.Put(b.reading)
	for of, weight := range held {
		if weight > 0 {
			b.from.budgets[of].Release(weight)
		}
	}
}

// acquire sets bytes aside, if need be those of bodies that have stalled.
func (b *Bodies) acquire(r *http.Request, of class, weight int64) error {
	from, budget := CallerOf(r), b.budgets[of]
	if budget.TryAcquire(from, weight) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), BusyAfter)
	defer cancel()
	acquired := make(chan error, 1)
	go func() { acquired <- budget.Acquire(ctx, from, weight) }()
	tick := time.NewTicker(cutEvery)
	defer tick.Stop()
	for {
		b.cutStalled(of, weight, time.Now())
		select {
		case err := <-acquired:
			if err != nil {
				return ErrBusy
			}
			return nil
		case <-tick.C:
		}
	}
}

// cutStalled ends the oldest readings of a budget that take too long, until so many bytes come free.
func (b *Bodies) cutStalled(of class, weight int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := b.oldest; r != nil && weight > 0 && now.Sub(r.since) > StalledAfter; r = r.next {
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
func (b *Bodies) list(r *reading) {
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
func (b *Bodies) unlist(r *reading) bool {
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
