package webhook

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// waits is how many claims wait for a budget.
func (b *budget) waits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, q := range b.queues {
		n += len(q.waiting)
	}
	return n
}

// TestAddressesTakeTurns: an address that asks a hundred times waits behind itself.
func TestAddressesTakeTurns(t *testing.T) {
	b := newBudget(10)
	if !b.tryAcquire(10) {
		t.Fatal("a free budget is refused")
	}
	served := make(chan string)
	wait := func(from string, weight int64) {
		before := b.waits()
		go func() {
			if err := b.acquire(t.Context(), netip.MustParseAddr(from), weight); err == nil {
				served <- from
			}
		}()
		eventually(t, "the claim", 5*time.Second, func() bool { return b.waits() == before+1 })
	}
	for range 4 {
		wait("10.0.0.66", 10)
	}
	wait("10.0.0.1", 10)
	wait("10.0.0.2", 10)
	var got []string
	for range 6 {
		b.release(10)
		got = append(got, <-served)
	}
	if diff := cmp.Diff([]string{"10.0.0.66", "10.0.0.1", "10.0.0.2", "10.0.0.66", "10.0.0.66", "10.0.0.66"}, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

func TestABudgetIsGivenBackWhole(t *testing.T) {
	b := newBudget(10)
	if !b.tryAcquire(4) {
		t.Fatal("a free budget is refused")
	}
	ctx, cancel := context.WithCancel(t.Context())
	large := make(chan error, 1)
	go func() { large <- b.acquire(ctx, netip.Addr{}, 8) }()
	eventually(t, "the large claim", 5*time.Second, func() bool { return b.waits() == 1 })
	if b.tryAcquire(1) {
		t.Error("a small claim overtook one that waits")
	}
	small := make(chan error, 1)
	go func() { small <- b.acquire(t.Context(), netip.MustParseAddr("10.0.0.1"), 6) }()
	eventually(t, "the small claim", 5*time.Second, func() bool { return b.waits() == 2 })
	cancel()
	if err := <-large; !errors.Is(err, context.Canceled) {
		t.Errorf("a claim that was given up: %v", err)
	}
	if err := <-small; err != nil {
		t.Errorf("the claim behind it: %v", err)
	}
	b.release(4)
	b.release(6)
	if !b.tryAcquire(10) {
		t.Error("not all of it came back")
	}
}
