package intake

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/webhook/fixture"
)

// waits is how many claims wait for a budget.
func (b *Budget) waits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// TestAddressesGetTheSameOfABudget: one that asks often, or for much, waits behind itself.
func TestAddressesGetTheSameOfABudget(t *testing.T) {
	const attacker, one, other = "10.0.0.66", "10.0.0.1", "10.0.0.2"
	type ask struct {
		from   string
		weight int64
	}
	for name, tc := range map[string]struct {
		holds ask   // when the others come
		asks  []ask // in this order
		want  []string
	}{
		"one address, in its order": {ask{attacker, 10}, []ask{{attacker, 1}, {attacker, 2}}, []string{"1 of " + attacker, "2 of " + attacker}},
		"before an address that had something": {ask{attacker, 10}, []ask{{attacker, 10}, {attacker, 9}, {one, 8}, {other, 7}},
			[]string{"8 of " + one, "7 of " + other, "10 of " + attacker, "9 of " + attacker}},
		"by turns with one that had nothing": {ask{other, 10}, []ask{{attacker, 10}, {attacker, 9}, {one, 10}, {one, 8}},
			[]string{"10 of " + attacker, "10 of " + one, "9 of " + attacker, "8 of " + one}},
		"several small for one large": {ask{other, 10}, []ask{{attacker, 10}, {attacker, 9}, {one, 4}, {one, 5}, {one, 6}},
			[]string{"10 of " + attacker, "4 of " + one, "5 of " + one, "6 of " + one, "9 of " + attacker}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(10)
			if !b.TryAcquire(netip.MustParseAddr(tc.holds.from), 10) {
				t.Fatal("a free budget is refused")
			}
			served := make(chan ask)
			for i, a := range tc.asks {
				go func() {
					if err := b.Acquire(t.Context(), netip.MustParseAddr(a.from), a.weight); err == nil {
						served <- a
					}
				}()
				fixture.Eventually(t, "the claim", 5*time.Second, func() bool { return b.waits() == i+1 })
			}
			var got []string
			for range tc.asks {
				b.mu.Lock()
				b.free = b.waiting[0].weight // there is room for one
				b.serve()
				b.mu.Unlock()
				a := <-served
				got = append(got, fmt.Sprintf("%d of %s", a.weight, a.from))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddressesOfOldAreForgotten: an attacker may have many.
func TestAddressesOfOldAreForgotten(t *testing.T) {
	b := NewBudget(10)
	for i := range 10 * maxEnds {
		if !b.TryAcquire(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1) {
			t.Fatal("a free budget is refused")
		}
		b.Release(1)
		if i%100 == 0 { // an address that goes on using it moves the time on
			b.TryAcquire(netip.Addr{}, 2)
			b.Release(2)
		}
	}
	if len(b.ends) > maxEnds {
		t.Errorf("%d addresses are remembered", len(b.ends))
	}
}

// Each address comes once, so that none moves the time on, some with much; one that had more than they stays behind.
func TestAddressesThatComeOnceAreForgotten(t *testing.T) {
	heavy := netip.MustParseAddr("10.1.0.1")
	for name, waiting := range map[string]bool{"while none waits": false, "while others wait": true} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(10)
			b.ends[heavy] = 1 << 20
			if waiting {
				b.free = 0
			}
			for i := range 10 * maxEnds {
				from := netip.AddrFrom16([16]byte{0xfd, 0, 14: byte(i >> 8), 15: byte(i)})
				if !waiting {
					b.TryAcquire(from, int64(1+i%7))
					b.Release(int64(1 + i%7))
					continue
				}
				c := b.enqueue(from, int64(1+i%7))
				b.free = c.weight
				b.serve()
			}
			if len(b.ends) > maxEnds || b.ends[heavy] != 1<<20 {
				t.Errorf("%d addresses are remembered, and of one that had most %d", len(b.ends), b.ends[heavy])
			}
			if b.now != 0 || len(b.waiting) > 0 {
				t.Errorf("the time is %d, %d wait", b.now, len(b.waiting))
			}
		})
	}
}

// Who gives up after it was forgotten is remembered no more.
func TestAClaimThatIsGivenUpIsForgotten(t *testing.T) {
	b := NewBudget(10)
	b.free = 0
	first := b.enqueue(netip.MustParseAddr("10.1.0.1"), 3)
	delete(b.ends, first.from)
	if !b.leave(first) || len(b.ends) != 0 {
		t.Errorf("%v is remembered", b.ends)
	}
}

func TestABudgetIsGivenBackWhole(t *testing.T) {
	b := NewBudget(10)
	if !b.TryAcquire(netip.Addr{}, 4) {
		t.Fatal("a free budget is refused")
	}
	ctx, cancel := context.WithCancel(t.Context())
	large := make(chan error, 1)
	go func() { large <- b.Acquire(ctx, netip.Addr{}, 8) }()
	fixture.Eventually(t, "the large claim", 5*time.Second, func() bool { return b.waits() == 1 })
	if b.TryAcquire(netip.Addr{}, 1) {
		t.Error("a small claim overtook one that waits")
	}
	small := make(chan error, 1)
	go func() { small <- b.Acquire(t.Context(), netip.Addr{}, 6) }()
	fixture.Eventually(t, "the small claim", 5*time.Second, func() bool { return b.waits() == 2 })
	cancel()
	if err := <-large; !errors.Is(err, context.Canceled) {
		t.Errorf("a claim that was given up: %v", err)
	}
	if err := <-small; err != nil {
		t.Errorf("the claim behind it: %v", err)
	}
	b.Release(4)
	b.Release(6)
	if !b.TryAcquire(netip.Addr{}, 10) {
		t.Error("not all of it came back")
	}
}
