package ownership

import "time"

func everyPod(pods []PodObservation) []int {
	all := make([]int, len(pods))
	for i := range pods {
		all[i] = i
	}
	return all
}

// span is the oldest and the newest sample of those pods that answered, not later than now.
func span(pods []PodObservation, of []int, now time.Time) (oldest, newest time.Time) {
	for _, i := range of {
		if !pods[i].Answered {
			continue
		}
		at := pods[i].SampledAt
		if at.After(now) {
			at = now
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
		newest = later(newest, at)
	}
	return oldest, newest
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
