package controller

import (
	"fmt"
	"sync"
	"time"

	"ballast/planner/controller/wiring"
)

// health is the leader's health check.
type health struct {
	*wiring.Options
	mu       sync.Mutex
	lastLive time.Time // when the last cycle ended, or this leader began
}

func (h *health) alive() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastLive = h.Clock.Now()
}

// Alive is the health check of a leader: cycles end. A cycle may take several timeouts of a Prometheus that hangs.
func (h *health) Alive() error {
	c := h.Config()
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := 3*time.Duration(c.Interval) + 10*c.Poll.Timeout()
	if since := h.Clock.Since(h.lastLive); !h.lastLive.IsZero() && since > limit {
		return fmt.Errorf("no cycle has ended for %s, more than %s", since.Round(time.Second), limit)
	}
	return nil
}
