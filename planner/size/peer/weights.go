package peer

import "slices"

// Span is a range of replica counts, both ends in it, in which one weight holds.
type Span struct {
	WeightInterval
	Said int // how many intervals speak of it
}

// Spans are the weights of every number of replicas that there may be, in order and without gaps or overlaps, as HVPA
// reads them: of several intervals the one that is listed first holds, and where none speaks the weight is 0.
// Neighbours may have the same weight.
func (s HVPASpec) Spans() (all []Span) {
	least, most := s.Bounds()
	intervals, cuts := make([]WeightInterval, len(s.Intervals)), []int{least}
	for i, in := range s.Intervals {
		intervals[i] = in.Within(least, most)
		cuts = append(cuts, intervals[i].Start, intervals[i].Last+1)
	}
	cuts = slices.DeleteFunc(cuts, func(at int) bool { return at < least || at > most })
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i, start := range cuts {
		span := Span{WeightInterval: WeightInterval{Start: start, Last: most}}
		if i+1 < len(cuts) {
			span.Last = cuts[i+1] - 1
		}
		for _, in := range intervals {
			if start < in.Start || start > in.Last {
				continue
			}
			if span.Said == 0 {
				span.VpaWeight = min(max(in.VpaWeight, 0), 100)
			}
			span.Said++
		}
		all = append(all, span)
	}
	return all
}

// Bounds are the least and the most replicas; where no most is given, the highest number that an interval speaks of.
func (s HVPASpec) Bounds() (least, most int) {
	least, most = 1, s.Hpa.Template.Spec.MaxReplicas
	if given := s.Hpa.Template.Spec.MinReplicas; given != nil {
		least = max(*given, 1)
	}
	if most > 0 {
		return least, most
	}
	for _, in := range s.Intervals {
		most = max(most, in.Start, in.Last)
	}
	return least, most
}
