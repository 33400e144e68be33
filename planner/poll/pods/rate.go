package pods

import (
	"math"
)

// kept is a sample of the counters that one process shows of a server; NaN is one that it does not show. Look is which
// of the process' looks it was made at.
type kept struct {
	look   uint32
	counts [2]float64 // events, reconciles
}

// look is when a pod was looked at, in Unix milliseconds, and when its container had begun.
type look struct{ at, began int64 }

// other reports whether another process answered; one whose beginning is not known is the same.
func (l look) other(than look) bool { return l.began != than.began && l.began > 0 && than.began > 0 }

// rateAt is the rate of a counter over the ten minutes up to a time, as Prometheus has it: what the counter rose, from
// its first sample to its last, stretched over the ends of the range as far as samples are usual there. A counter that
// fell, or whose process began anew, began at 0. False: there are no two samples.
func rateAt(samples []kept, looks []look, first uint32, counter int, until int64) (rate float64, ok bool) {
	since := until - rateOver.Milliseconds()
	var begin, end look
	var lowest, last, rise float64
	count := 0
	for _, s := range samples {
		l, v := looks[s.look-first], s.counts[counter]
		if l.at <= since || l.at > until || math.IsNaN(v) {
			continue
		}
		switch {
		case count == 0:
			begin, lowest = l, v
		case v < last || l.other(end):
			rise += v
		default:
			rise += v - last
		}
		end, last = l, v
		count++
	}
	if count < 2 {
		return 0, false
	}
	return stretched(rise, lowest, count, begin.at-since, end.at-begin.at, until-end.at), true
}

// stretched is a rise over an interval between two samples as a rate over the whole range: before and after it, as many
// milliseconds as samples are apart are taken to be like it, else half as many; and before it none in which the counter
// would have been below 0.
func stretched(rise, lowest float64, count int, before, interval, after int64) float64 {
	rise = min(rise, math.MaxFloat64)
	apart := float64(interval) / float64(count-1)
	lead, tail := float64(before), float64(after)
	if lead >= 1.1*apart {
		lead = apart / 2
	}
	if tail >= 1.1*apart {
		tail = apart / 2
	}
	if rise > 0 && lowest >= 0 {
		lead = min(lead, lowest/rise*float64(interval))
	}
	return rise * (float64(interval) + lead + tail) / float64(interval) / rateOver.Seconds()
}

// quantileOf is the value at or below which so much of them is, between the two next to it where it is between them.
// It sorts them.
func quantileOf(sorted []float32) float64 {
	rank := quantile * float64(len(sorted)-1)
	low := int(rank)
	high := min(low+1, len(sorted)-1)
	weight := rank - float64(low)
	return float64(sorted[low])*(1-weight) + float64(sorted[high])*weight
}

// stepOf is the number of the full five minutes at or before a time, slotOf of those at or after it.
func stepOf(at int64) int64 { return at / step.Milliseconds() }

func slotOf(at int64) int64 { return (at + step.Milliseconds() - 1) / step.Milliseconds() }
