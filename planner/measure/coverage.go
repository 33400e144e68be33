package measure

import (
	"fmt"
	"time"
)

// AcceptLossAfter is how long a low coverage must last until it is believed, where it is not Prometheus' fault. A
// further loss is a new one to get used to, but in a day all of them together refuse a metric for no longer than twice
// of it: who has clusters of his own lose their series must not keep the fleet as it is by it, be it over and over.
const AcceptLossAfter = 30 * time.Minute

// A few clusters that are all of their replica's say nothing of that replica: nobody knows whether Prometheus lost it,
// or they ended. People have acceptFewAfter to look; for good they must not keep the fleet as it is. Few are mostFew,
// or one in fewOf. What is believed then is that the others are well measured: those without a value keep their last
// good one (heldFor). So is any number after that time of which more is known: their own pods answer and do not have
// them connected, or another metric has values of their replicas' clusters, and looked back no further than that. A pod
// of which nobody hears may be dead, and its clusters nobody's.
const (
	mostFew        = 2
	fewOf          = 6
	acceptFewAfter = 6 * time.Hour
)

// lossesFor is how long a loss counts with those that follow it.
const lossesFor = 24 * time.Hour

// fallen is what to remember once so many have a value; a clock that went back counts as no time.
func fallen(l Low, to int, now time.Time) Low {
	switch {
	case l.First.IsZero() || now.Before(l.First) || now.Sub(l.First) >= lossesFor:
		return Low{First: now, Since: now, To: to}
	case now.Before(l.Since) || to < l.To:
		return Low{First: l.First, Since: now, To: min(to, l.To)}
	}
	return l
}

// keptLow is what of it is to be kept.
func keptLow(l Low, now time.Time) Low {
	if l.First.IsZero() || now.Sub(l.First) >= lossesFor {
		return Low{}
	}
	return Low{First: l.First.UTC().Truncate(time.Second), Since: l.Since.UTC().Truncate(time.Second), To: l.To}
}

// lowUntil is when it is believed.
func lowUntil(l Low) time.Time {
	until := l.Since.Add(AcceptLossAfter)
	if most := l.First.Add(2 * AcceptLossAfter); most.Before(until) {
		return most
	}
	return until
}

// coverage compares a column with the last one. What counts are clusters that carry load, had a value last time, and
// are not moved; the sums are over those that have one both times.
type coverage struct {
	before, both        int
	lost                []int
	gone, blind         int // of those lost: no pod shows it; its replica's others have no value either
	ended, other        int // of those whose replica's others have none: its own pod does not show it; another metric has values of its replica
	sumBefore, sumNow   float64
	fallBefore, fallNow float64 // of the one that fell most
	fresh               int     // that have a value, whether they count or not
	had, have           bool    // any had a value last time, or has it both times; whether they count or not, but for idle ones
}

func (j *metricJoin) cover(c Column) coverage {
	var v coverage
	for i, row := range j.rows {
		s, measured := j.options.Standings.of(i), j.measured(i) && !j.unshown(&c, i)
		if c.Flags[i] == Fresh {
			v.fresh++
		}
		v.had = v.had || measured && !s.Idle
		v.have = v.have || measured && c.Flags[i] == Fresh
		switch {
		case !measured || s.Uncounted || s.Moved:
		case c.Flags[i] == Fresh:
			v.before, v.both = v.before+1, v.both+1
			v.sumBefore += j.last.Values[row]
			v.sumNow += c.Values[i]
			if j.last.Values[row]-c.Values[i] > v.fallBefore-v.fallNow {
				v.fallBefore, v.fallNow = j.last.Values[row], c.Values[i]
			}
		default:
			v.before++
			v.lost = append(v.lost, i)
		}
	}
	if len(v.lost) == 0 {
		return v
	}
	seen, others := j.seen(c), map[int]bool(nil)
	for _, i := range v.lost {
		switch s := j.options.Standings.of(i); {
		case s.Gone:
			v.gone++
		case seen[s.Replica]:
		case s.Ended:
			v.ended++
		default:
			v.blind++
			if others == nil {
				others = j.seenByOthers(c.ID)
			}
			if others[s.Replica] {
				v.other++
			}
		}
	}
	return v
}

// seenByOthers are the replicas of which another metric of this answer has a value.
func (j *joiner) seenByOthers(id string) map[int]bool {
	seen := map[int]bool{}
	for _, m := range j.metrics {
		if m.ID == id {
			continue
		}
		x := j.index(m)
		for _, sample := range answerTo(m, j.fetched).Samples {
			i := x.Find(sample.Key, m.Match.Aliases)
			if i < 0 || !j.carries(i) || j.old(sample.At) {
				continue
			}
			if s := j.options.Standings.of(i); s.Replica >= 0 && !s.Uncounted && !s.Moved {
				seen[s.Replica] = true
			}
		}
	}
	return seen
}

// seen are the replicas of which Prometheus has anything.
func (j *metricJoin) seen(c Column) map[int]bool {
	seen := map[int]bool{}
	for i, flag := range c.Flags {
		s := j.options.Standings.of(i)
		if counts := flag == Fresh && !s.Uncounted && !s.Moved; counts && j.measured(i) {
			seen[s.Replica] = s.Replica >= 0
		}
	}
	return seen
}

// low reports whether too few clusters have a value. Where none at all has one that had it, nothing is believed,
// whatever counts.
func (v coverage) low(least float64) bool {
	return v.had && !v.have || v.before > 0 && v.short(v.both, least)
}

func (v coverage) short(n int, least float64) bool {
	return n == 0 || float64(n) < least*float64(v.before)
}

// explained reports whether a loss may be of the clusters' own doing, and not Prometheus': their pods do not show them
// any more, or Prometheus has other clusters of the same replicas and no less than half of all. What it does not scrape
// at all is never believed to be gone: the loads of some would stand still while those of others change.
func (v coverage) explained(least float64) bool {
	return v.both > 0 && !v.short(v.before-v.blind-v.ended, least) && 2*v.both >= v.before-v.gone
}

// few reports whether what cannot be explained is so little, or is known to be no fault of Prometheus, that it is
// believed in time.
func (v coverage) few() bool {
	return v.both > 0 && v.blind-v.other <= max(mostFew, v.before/fewOf) && 2*v.both >= v.before-v.gone-v.ended
}

// lowCoverage is why a coverage is refused, and what to remember of it; an empty text believes it.
func (j *metricJoin) lowCoverage(v coverage) (string, Low) {
	var low Low
	if j.last != nil {
		low = j.last.Low
	}
	if !v.low(j.options.MinCoverage) {
		return "", low
	}
	text := j.shortfall(v) + ", so all keep their last good one until "
	explained := v.explained(j.options.MinCoverage)
	if !explained && !v.few() {
		return text + "they have: whole replicas or half of the fleet are missing, so look whether Prometheus scrapes every pod of the " +
			"application-controller" + clustersThatEnded, low
	}
	low = fallen(low, v.both, j.now)
	until, mend := lowUntil(low), ""
	if !explained {
		until = low.First.Add(acceptFewAfter)
		mend = ": they are all that is known of their replicas, so look whether Prometheus scrapes every pod of the application-controller" + clustersThatEnded
	}
	if !j.now.Before(until) {
		return "", low
	}
	return text + until.UTC().Format(time.RFC3339) + mend, low
}

// clustersThatEnded is the mend where Prometheus is well.
const clustersThatEnded = "; of clusters that are no more, delete the Secrets, and lower poll.minCoverage where so many are measured at times only"

// shortfall names the first clusters that have no value.
func (j *joiner) shortfall(v coverage) string {
	if v.before == 0 {
		return "none of the clusters measured last time has a value now"
	}
	names := make([]string, len(v.lost))
	for k, i := range v.lost {
		names[k] = j.fleet.Clusters[i].Shard.ID
	}
	return fmt.Sprintf("only %d of the %d clusters measured last time have a value now (%s: none)", v.both, v.before,
		some(names))
}
