package controller

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Quiet time after a change, and the longest a stream of changes may put a cycle off.
const (
	quiet    = time.Second
	mostWait = 5 * time.Second
)

// signal wakes somebody up; any number of changes before he looks are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// await returns when interval has passed, or when changes came and there was a second of quiet, or five of them without
// any. It returns false when the context ends.
func await(ctx context.Context, c clock.Clock, changes signal, interval time.Duration) bool {
	due := c.NewTimer(interval)
	defer due.Stop()
	var settle clock.Timer
	var settled <-chan time.Time
	var deadline time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C():
			return true
		case <-settled:
			return true
		case <-changes:
			now := c.Now()
			if settle == nil {
				deadline = now.Add(mostWait)
				settle = c.NewTimer(quiet)
				settled = settle.C()
				defer settle.Stop()
				continue
			}
			left := deadline.Sub(now)
			if left <= 0 {
				return true
			}
			settle.Reset(min(quiet, left))
		}
	}
}
