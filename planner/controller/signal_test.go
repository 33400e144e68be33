package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// The clock of these tests is synctest's: it goes on when everybody waits for it, and so at once.
func TestACycleWaitsForQuiet(t *testing.T) {
	const ms = time.Millisecond
	every := func(step, from, to time.Duration) (at []time.Duration) {
		for ; from <= to; from += step {
			at = append(at, from)
		}
		return at
	}
	for name, test := range map[string]struct {
		interval time.Duration
		changes  []time.Duration
		want     time.Duration
	}{
		"no change":                                      {time.Minute, nil, time.Minute},
		"one change":                                     {time.Minute, []time.Duration{3000 * ms}, 4000 * ms},
		"a change that came before":                      {time.Minute, []time.Duration{0}, 1000 * ms},
		"each change asks for a second of quiet":         {time.Minute, []time.Duration{3000 * ms, 3900 * ms, 4500 * ms}, 5500 * ms},
		"what comes after the quiet is the next cycle's": {time.Minute, []time.Duration{3000 * ms, 4100 * ms}, 4000 * ms},
		"a stream of changes is cut after five seconds":  {time.Minute, every(300*ms, 3000*ms, 20_000*ms), 8000 * ms},
		"the interval ends a stream":                     {6000 * ms, every(300*ms, 3000*ms, 20_000*ms), 6000 * ms},
		"the interval ends the quiet":                    {6000 * ms, []time.Duration{5500 * ms}, 6000 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changes, started := newSignal(), time.Now()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() {
					for _, at := range test.changes {
						select {
						case <-time.After(at - time.Since(started)):
							changes.raise()
						case <-ctx.Done():
							return
						}
					}
				}()
				if goesOn := await(ctx, clock.RealClock{}, changes, test.interval); !goesOn {
					t.Error("it says that the context ended")
				}
				if got := time.Since(started); got != test.want {
					t.Errorf("the cycle ran after %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		changes := newSignal()
		changes.raise()
		if !await(ctx, clock.RealClock{}, changes, time.Minute) || await(ctx, clock.RealClock{}, changes, time.Minute) {
			t.Error("want true for the cycle after a second, then false for the context that ended")
		}
	})
}

func TestAnyNumberOfChangesWakeOnce(t *testing.T) {
	s := newSignal()
	for range 3 {
		s.raise()
	}
	<-s
	select {
	case <-s:
		t.Error("three changes woke twice")
	default:
	}
}
