package pods

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ballast/planner/discover"
	"ballast/planner/measure"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// Servers are the URLs of a fleet, as pods write them.
func Servers(fleet discover.Fleet) []string {
	urls := make([]string, 0, len(fleet.Units))
	for _, u := range fleet.Units {
		if url := plan.NormalizeServer(u.Server); url != "" {
			urls = append(urls, url)
		}
	}
	return urls
}

// Fetched is the answer for each of Metrics. Where pods never said anything, or no rate could be made yet, it says why
// there is none.
func (w *Window) Fetched(now time.Time) []poll.Fetched {
	at := now.UnixMilli()
	answers := make([]poll.Fetched, metrics)
	for i, m := range Metrics() {
		answers[i].Metric = m.ID
	}
	var values []float32
	for _, url := range w.fleet {
		s := w.servers[url]
		for i := range answers {
			if value, ok := s.value(i, at, &values); ok {
				answers[i].Samples = append(answers[i].Samples,
					poll.Sample{Key: url, Value: value, At: atOf(s.seen[i])})
			}
		}
	}
	answers[events].Warnings = slices.Clone(w.passed)
	rated := len(answers[events].Samples)+len(answers[reconciles].Samples) > 0
	for i := range answers {
		if idle := rated && (i == events || i == reconciles); len(answers[i].Samples) == 0 && !idle {
			answers[i].Err = w.whyNone(i)
		}
	}
	for _, url := range w.strangers { // measure tells people of them
		answers[apps].Samples = append(answers[apps].Samples, poll.Sample{Key: url, At: now.UTC()})
	}
	slices.SortFunc(answers[apps].Samples, func(a, b poll.Sample) int { return cmp.Compare(a.Key, b.Key) })
	return answers
}

// OfSaved is the answer that a saved window gave of a fleet when it looked last, and when that was.
func OfSaved(part []byte, fleet discover.Fleet) ([]poll.Fetched, time.Time, error) {
	var w Window
	if err := w.UnmarshalBinary(part); err != nil {
		return nil, time.Time{}, err
	}
	w.know(Servers(fleet))
	last := atOf(w.restored)
	return w.Fetched(last), last, nil
}

func atOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// value is what counts of a server now.
func (s *server) value(metric int, at int64, room *[]float32) (float64, bool) {
	switch metric {
	case objects:
		return most(s.most[0][:], at, objectsFor)
	case apps:
		return most(s.most[1][:], at, appsFor)
	}
	values, last := (*room)[:0], stepOf(at)
	for _, r := range s.rates[metric-events] {
		if r.within(last-steps, last) {
			values = append(values, r.value)
		}
	}
	*room = values
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	return quantileOf(values), true
}

// most is the largest value of the slots that end within a time.
func most(ring []slot, at int64, within time.Duration) (largest float64, any bool) {
	low := (at - within.Milliseconds()) / step.Milliseconds()
	for _, s := range ring {
		if s.within(low, slotOf(at)) {
			largest, any = max(largest, float64(s.value)), true
		}
	}
	return largest, any
}

// whyNone says why nothing is known of a metric. No Application is no fault, nor is a fleet without clusters.
func (w *Window) whyNone(metric int) string {
	switch {
	case w.silence != "":
		return "no pod of the application-controller answers: " + w.silence
	case len(w.fleet) == 0 || metric == objects || metric == apps:
		return ""
	case w.began == 0:
		return "no pod of the application-controller was asked yet"
	}
	first := time.UnixMilli((stepOf(w.began) + 2) * step.Milliseconds()).UTC()
	if w.newest > first.UnixMilli() { // pods without a cluster
		return ""
	}
	return fmt.Sprintf("the pods are asked since %s, and a rate needs two looks before a full five minutes: the first is there by %s",
		time.UnixMilli(w.began).UTC().Format(time.RFC3339), first.Format(time.RFC3339))
}

// Empty reports whether no rate is known of the last three hours.
func (w *Window) Empty(now time.Time) bool {
	last := stepOf(now.UnixMilli())
	for _, s := range w.servers {
		for _, ring := range s.rates {
			for _, r := range ring {
				if r.within(last-steps, last) {
					return false
				}
			}
		}
	}
	return true
}

// Seed fills an empty window with last good values, as if each had been the rate all along: whoever begins to look,
// where a Prometheus or another leader did before and left nothing else, neither forgets the loads nor takes its first
// minutes for them.
func (w *Window) Seed(last measure.LastGood, fleet discover.Fleet, now time.Time) {
	w.know(Servers(fleet))
	urls := map[string]string{}
	for _, c := range fleet.Clusters {
		urls[c.Shard.ID] = plan.NormalizeServer(c.Shard.Server)
	}
	ids := Metrics()
	for _, column := range last.Columns {
		for counter, metric := range [2]int{events, reconciles} {
			if column.ID != ids[metric].ID {
				continue
			}
			for row, id := range last.IDs {
				if s := w.servers[urls[id]]; s != nil && column.At[row] > 0 {
					s.seed(counter, metric, column.Values[row], column.At[row]*1000, now.UnixMilli())
				}
			}
		}
	}
}

// seed gives a server one rate for all steps; of two values of one server the larger counts.
func (s *server) seed(counter, metric int, value float64, seen, at int64) {
	for i := range int64(steps) {
		raise(s.rates[counter][:], stepOf(at)-i, value)
	}
	s.seen[metric] = max(s.seen[metric], min(seen, at))
}
