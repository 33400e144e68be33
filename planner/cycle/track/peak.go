package track

import (
	"slices"
	"time"
)

// Peak is the most memory that a replica was seen to use, in whole steps, and when it was that much last. Later are the
// lower ones after it, which hold once it is too old.
type Peak struct {
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at"`
	Later []Peak    `json:"later,omitempty"`
}

const (
	// peakStep is what peaks are rounded up to: a limit that follows one must not change with every megabyte.
	peakStep = 64 << 20
	// peakFor is how long a peak counts.
	peakFor = 7 * 24 * time.Hour
	// mostPeak is more memory than any node has.
	mostPeak = 1 << 50
	// mostPeaks are remembered of a replica.
	mostPeaks = 8
)

// Next is the peak after another look. Nothing that is seen is no use of nothing.
func (p Peak) Next(bytes int64, now time.Time) Peak {
	bytes = min(max(bytes, 0), mostPeak)
	bytes = (bytes + peakStep - 1) / peakStep * peakStep
	all := append([]Peak{{Bytes: p.Bytes, At: p.At}}, p.Later...)
	all = slices.DeleteFunc(all, func(q Peak) bool { return q.Bytes <= bytes || now.Sub(q.At) >= peakFor })
	if bytes > 0 {
		all = append(all, Peak{Bytes: bytes, At: now})
	}
	for i := len(all); i > mostPeaks; i-- { // the two last become one, so that more is remembered, and for longer
		all[i-2].At = all[i-1].At
		all = all[:i-1]
	}
	if len(all) == 0 {
		return Peak{}
	}
	return Peak{all[0].Bytes, all[0].At, append([]Peak(nil), all[1:]...)}
}
