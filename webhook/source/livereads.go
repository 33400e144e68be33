package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ballast/webhook/inforce"
)

// The bounds of live reads: a write of the planner may wait so long, and the API server is asked so often.
const (
	readTimeout    = 500 * time.Millisecond
	readsPerSecond = 5
)

// Results of a live read, the values of a metric label.
const (
	readDone   = "Done"
	readFailed = "Failed"
)

// liveReads lets callers share reads. A caller shares the read that begins next, never one under way: that one may have
// been answered before the plan it is asked for was written.
type liveReads struct {
	limit   *rate.Limiter
	timeout time.Duration // of each

	mu      sync.Mutex
	running bool
	next    *liveRead
}

type liveRead struct {
	done  chan struct{}
	state *inforce.State
	err   error
}

// Fresh is the plan as it stands in the API server at some moment after the call.
func (s *Source) Fresh(ctx context.Context) (*inforce.State, error) {
	ctx, cancel := context.WithTimeout(ctx, s.reads.timeout)
	defer cancel()
	read := s.reads.join(s.get)
	var err error
	var state *inforce.State
	select {
	case <-ctx.Done():
		err = fmt.Errorf("reading the plan live: %w", ctx.Err())
	case <-read.done:
		state, err = read.state, read.err
	}
	result := readDone
	if err != nil {
		result = readFailed
	}
	s.options.Metrics.reads.WithLabelValues(result).Inc()
	return state, err
}

func (l *liveReads) join(get func(context.Context) (*inforce.State, error)) *liveRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &liveRead{done: make(chan struct{})}
	}
	if !l.running {
		l.running = true
		go l.run(get)
	}
	return l.next
}

// run reads until nobody waits.
func (l *liveReads) run(get func(context.Context) (*inforce.State, error)) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
		err := l.limit.Wait(ctx)
		l.mu.Lock()
		read := l.next
		l.next = nil
		l.mu.Unlock()
		if read.err = err; err == nil {
			read.state, read.err = get(ctx)
		}
		cancel()
		close(read.done)
		l.mu.Lock()
		if l.next == nil {
			l.running = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}
