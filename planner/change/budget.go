package change

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Budget is what may move at one time. Of is how many clusters it is a share of. Next is when the next move fits, now
// if it does already; it is zero where none ever will.
type Budget struct {
	Of      int
	Left    int // math.MaxInt: no limit
	Next    time.Time
	Windows []Window
	Causes  map[Cause]int // of the moves in the longest window
}

// Look judges the ledger. A clock that went back counts as no time passed.
func Look(l Ledger, rates []Rate, clusters int, now time.Time) Budget {
	l = l.shifted(now)
	b := Budget{Of: clusters, Left: math.MaxInt}
	longest := time.Duration(0)
	for _, r := range rates {
		w := Window{Rate: r, Allowed: r.Allowed(clusters)}
		for _, record := range l.within(r.Period, now) {
			w.Used = min(w.Used, maxMoves) + record.Moves
		}
		b.Left = min(b.Left, max(w.Allowed-w.Used, 0))
		b.Windows = append(b.Windows, w)
		longest = max(longest, r.Period)
	}
	for _, record := range l.within(longest, now) {
		if b.Causes == nil {
			b.Causes = map[Cause]int{}
		}
		b.Causes[record.Cause] += record.Moves
	}
	b.Next, _ = When(l, rates, clusters, now, 1)
	return b
}

// within is the records that a window of that length still sees: a move at t counts until t + period.
func (l Ledger) within(period time.Duration, now time.Time) Ledger {
	i, _ := slices.BinarySearchFunc(l, now.Add(-period), func(r Record, from time.Time) int {
		if r.At.After(from) {
			return 1
		}
		return -1
	})
	return l[i:]
}

// Left is how many clusters may move now; math.MaxInt where there is no limit.
func Left(l Ledger, rates []Rate, clusters int, now time.Time) int {
	return Look(l, rates, clusters, now).Left
}

// When is the time from which that many moves fit at once if none is made until then. ok is false where they never do.
func When(l Ledger, rates []Rate, clusters int, now time.Time, moves int) (at time.Time, ok bool) {
	l = l.shifted(now)
	at = now
	for _, r := range rates {
		room := r.Allowed(clusters) - moves
		if room < 0 {
			return time.Time{}, false
		}
		used := 0
		for _, record := range slices.Backward(l.within(r.Period, now)) {
			if used = min(used, maxMoves) + record.Moves; used > room {
				at = later(at, record.At.Add(r.Period)) // until this one, and all before it, count no more
				break
			}
		}
	}
	return at, true
}

// String is a sentence for people.
func (b Budget) String() string {
	if len(b.Windows) == 0 {
		return "the number of moves is not limited"
	}
	var windows []string
	for _, w := range b.Windows {
		windows = append(windows, fmt.Sprintf("%d of %d within %s", w.Used, w.Allowed, period(w.Rate.Period)))
	}
	said := "made " + strings.Join(windows, ", ") + b.causes()
	switch {
	case b.Left == 1:
		return "1 more cluster may move now: " + said
	case b.Left > 1:
		return fmt.Sprintf("%d more clusters may move now: %s", b.Left, said)
	case b.Next.IsZero():
		return "no cluster may move: " + said
	}
	return fmt.Sprintf("no cluster may move before %s: %s", wholeSecond(b.Next).Format(time.RFC3339), said)
}

func (b Budget) causes() string {
	var parts []string
	for _, c := range Causes() {
		if n := b.Causes[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c, n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
