package ending

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatDoesNotEndIsLeftBehindAfterTheGrace(t *testing.T) {
	own := errors.New("own")
	for name, tc := range map[string]struct {
		stopped, takes time.Duration
		want           error
		after          time.Duration
	}{
		"it ends by itself":       {time.Hour, time.Minute, own, time.Minute},
		"it ends when it is told": {time.Minute, time.Minute + 9*time.Second, own, time.Minute + 9*time.Second},
		"it does not end":         {time.Minute, time.Hour, ErrLeftBehind, time.Minute + 10*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), tc.stopped)
				defer stop()
				started := time.Now()
				err := Within(ctx, 10*time.Second, func() error { time.Sleep(tc.takes); return own })
				if took := time.Since(started); !errors.Is(err, tc.want) || took != tc.after {
					t.Errorf("it returns %v after %s, want %v after %s", err, took, tc.want, tc.after)
				}
				time.Sleep(tc.takes) // of the bubble's clock: until what was left behind has ended, too
			})
		})
	}
}
