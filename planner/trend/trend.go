// Package trend is what replicas carried over the last week, a level each quarter of an hour: what people are shown
// between two decisions. Nothing is decided by it.
package trend

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ballast/planner/gz"
	"ballast/planner/plan"
)

const (
	// HistoryPart names the history's part that it is saved as.
	HistoryPart = "trend"
	// Every is how much time a level is of, and Kept how far back they go: a week has each hour of each weekday once.
	Every = 15 * time.Minute
	Kept  = 7 * 24 * time.Hour
	most  = int(Kept / Every)
	// mostUnit and mostReplicas are what a unit's text and a number of replicas are no longer and no larger than.
	mostUnit, mostReplicas = 64, 1 << 20
)

// Level is what replicas carried in a quarter of an hour from At on, when the fullest of them carried most.
type Level struct {
	At            time.Time
	Fullest, Mean plan.Load
	Replicas      int
}

// Of is the level of replicas as they stand.
func Of(replicas []plan.Replica, now time.Time) Level {
	l := Level{At: now, Replicas: len(replicas)}
	var all plan.Load
	for _, r := range replicas {
		l.Fullest, all = max(l.Fullest, r.TotalLoad), all.Plus(max(r.TotalLoad, 0))
	}
	if len(replicas) > 0 {
		l.Mean = all / plan.Load(len(replicas))
	}
	return l
}

// fits reports whether it can be packed, as any can that a fleet has.
func (l Level) fits() bool {
	counts := l.Replicas > 0 && l.Replicas <= mostReplicas
	return counts && min(l.Fullest, l.Mean) >= 0 && l.At.Unix() >= 0
}

// Trend are the levels, the oldest first, one a quarter of an hour at most. Unit is in what their loads are.
type Trend struct {
	Unit   string
	Levels []Level
}

// Take is the trend with a level of now. One in another unit begins it anew, since those before say nothing beside it;
// a clock that went back takes away what lies ahead of it.
func (t Trend) Take(now Level, unit string) Trend {
	if !now.fits() || len(unit) > mostUnit {
		return t
	}
	now.At = now.At.UTC().Truncate(Every)
	next := Trend{Unit: unit}
	if unit == t.Unit {
		next.Levels = slices.DeleteFunc(slices.Clone(t.Levels), func(l Level) bool {
			return l.At.After(now.At) || now.At.Sub(l.At) >= Kept
		})
	}
	if last := len(next.Levels) - 1; last >= 0 && next.Levels[last].At.Equal(now.At) {
		if now.Fullest > next.Levels[last].Fullest {
			next.Levels[last] = now
		}
		return next
	}
	next.Levels = append(next.Levels, now)
	return next
}

// saved is a trend as it is packed: from the first level to the last, and 0 replicas where there is none.
type saved struct {
	Unit     string  `json:"unit"`
	From     int64   `json:"from"` // quarters of an hour since 1970
	Fullest  []int64 `json:"fullest"`
	Mean     []int64 `json:"mean"`
	Replicas []int   `json:"replicas"`
}

// bounds are those of a week of the largest numbers.
func bounds() gz.Bounds { return gz.Bounds{Bytes: 64 << 10, Nested: 8 + mostUnit} }

func quarter(at time.Time) int64 { return at.Unix() / int64(Every/time.Second) }

// MarshalBinary packs it: some 10 KB for a week.
func (t Trend) MarshalBinary() ([]byte, error) {
	s := saved{Unit: t.Unit, Fullest: []int64{}, Mean: []int64{}, Replicas: []int{}}
	if len(t.Levels) > 0 {
		s.From = quarter(t.Levels[0].At)
	}
	for _, l := range t.Levels {
		at := int(quarter(l.At) - s.From)
		if at < len(s.Replicas) || at >= most {
			return nil, fmt.Errorf("packing a trend: its levels are not in their order within %s", Kept)
		}
		for len(s.Replicas) < at {
			s.Fullest, s.Mean, s.Replicas = append(s.Fullest, 0), append(s.Mean, 0), append(s.Replicas, 0)
		}
		s.Fullest, s.Mean, s.Replicas = append(s.Fullest, int64(l.Fullest)), append(s.Mean, int64(l.Mean)),
			append(s.Replicas, l.Replicas)
	}
	return bounds().PackJSON(s)
}

var errSaved = errors.New("it is not what a trend is saved as")

// UnmarshalBinary reads it back; what is none changes nothing.
func (t *Trend) UnmarshalBinary(packed []byte) error {
	var s saved
	if err := bounds().UnpackJSON(packed, &s); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	read := Trend{Unit: s.Unit}
	for i, n := range s.Replicas {
		if n == 0 {
			continue
		}
		at := time.Unix((s.From+int64(i))*int64(Every/time.Second), 0).UTC()
		read.Levels = append(read.Levels, Level{At: at, Fullest: plan.Load(s.Fullest[i]), Mean: plan.Load(s.Mean[i]),
			Replicas: n})
	}
	*t = read
	return nil
}

// lastQuarter is one that no clock shows.
const lastQuarter = int64(1) << 40

func (s saved) check() error {
	n := len(s.Replicas)
	if n > most || len(s.Fullest) != n || len(s.Mean) != n {
		return errSaved
	}
	if len(s.Unit) > mostUnit || s.From < 0 || s.From > lastQuarter {
		return errSaved
	}
	for i, replicas := range s.Replicas {
		if replicas < 0 || replicas > mostReplicas || min(s.Fullest[i], s.Mean[i]) < 0 {
			return errSaved
		}
	}
	return nil
}
