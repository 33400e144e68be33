package track

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/sim"
)

func TestAPeakLastsAWeek(t *testing.T) {
	now := sim.Epoch
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	p := Peak{}.Next(100<<20+1, now)
	if diff := cmp.Diff(Peak{Bytes: 128 << 20, At: now}, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What came after the highest holds once that is too old, and a look that shows nothing is no use of nothing.
	for d := 1; d <= 6; d++ {
		p = p.Next(90<<20, day(d)).Next(1, day(d)).Next(0, day(d))
	}
	if p.Bytes != 128<<20 {
		t.Errorf("within a week it is %+v", p)
	}
	later := day(7)
	if diff := cmp.Diff(Peak{Bytes: 128 << 20, At: day(6), Later: []Peak{{Bytes: 64 << 20, At: later}}}, p.Next(1, later)); diff != "" {
		t.Errorf("after a week (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Peak{Bytes: 64 << 20, At: day(14)}, p.Next(1, day(14))); diff != "" {
		t.Errorf("after two (-want +got):\n%s", diff)
	}
}

// A peak is never below what was seen within the week, and is remembered in few numbers.
func TestAPeakIsTheMostOfAWeek(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, p := sim.Epoch, Peak{}
		type look struct {
			at    time.Time
			bytes int64
		}
		var looks []look
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "minutes")) * time.Minute)
			looks = append(looks, look{now, rapid.Int64Range(0, 4<<30).Draw(t, "bytes")})
			p = p.Next(looks[len(looks)-1].bytes, now)
			for _, l := range looks {
				if now.Sub(l.at) < 7*24*time.Hour && l.bytes > p.Bytes {
					t.Fatalf("%d bytes were seen at %s, and the peak is %+v", l.bytes, l.at, p)
				}
			}
			if len(p.Later) > 7 {
				t.Fatalf("%d are remembered", len(p.Later)+1)
			}
		}
	})
}
