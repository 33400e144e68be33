package measure

import "time"

// AcceptDropAfter is how long a fallen total must last until it is believed: without an end to it, a fleet that really
// lost half of its work would stand still for ever. In a day, all falls together refuse a metric for no longer than
// twice of it.
const AcceptDropAfter = 30 * time.Minute

// dropsFor is how long a fall counts with those that follow it.
const dropsFor = 24 * time.Hour

// dropped reports whether the total fell by more than may be. The cluster that fell most is left out: one alone is no
// fault of Prometheus, and whoever has it must not refuse the metric of all.
func (v coverage) dropped(most float64) bool {
	return v.sumNow-v.fallNow < (1-most)*(v.sumBefore-v.fallBefore)
}

// dropUntil is when a total that is fallen now is believed.
func (j *metricJoin) dropUntil() time.Time {
	until := j.droppedSince().Add(AcceptDropAfter)
	if most := j.dropsFirst().Add(2 * AcceptDropAfter); most.Before(until) {
		return most
	}
	return until
}

// droppedSince is since when the total is refused as fallen; a clock that went back counts as no time.
func (j *metricJoin) droppedSince() time.Time {
	if j.last == nil || j.last.DroppedSince.IsZero() || j.now.Before(j.last.DroppedSince) {
		return j.now
	}
	return j.last.DroppedSince
}

// dropsFirst is when the first fall of the last day was refused, which may be this one.
func (j *metricJoin) dropsFirst() time.Time {
	if first := j.dropsBefore(); !first.IsZero() {
		return first
	}
	return j.now
}

// dropsBefore is that of the falls before this answer; zero: there is none.
func (j *metricJoin) dropsBefore() time.Time {
	if j.last == nil || j.now.Before(j.last.DropsFirst) || j.now.Sub(j.last.DropsFirst) >= dropsFor {
		return time.Time{}
	}
	return j.last.DropsFirst
}
