package intake

import (
	"context"
	"sync/atomic"
	"time"
)

// newConnection is how long a call may take to come on the connection that was dialled for it. Go's client dials ahead
// while calls queue, so that a connection without a call may be old, too.
const newConnection = time.Second

// dial is what is known of the connection that a call came on.
type dial struct {
	since time.Time
	calls atomic.Int64
}

type dialKey struct{}

// noteDial begins a connection's context.
func noteDial(ctx context.Context) context.Context {
	return context.WithValue(ctx, dialKey{}, &dial{since: time.Now()})
}

// FirstOnConnection counts a call, and reports whether its connection was dialled for it. It is called once a call.
func FirstOnConnection(ctx context.Context, now time.Time) bool {
	c, noted := ctx.Value(dialKey{}).(*dial)
	return noted && c.calls.Add(1) == 1 && now.Sub(c.since) < newConnection
}
