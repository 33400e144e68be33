package track

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ballast/planner/calibrate"
)

const (
	// settled is how long a pod has the clusters that it has before what it has in use is believed: it lists the
	// objects of one that came first, and gives back what one that went has left.
	settled = 30 * time.Minute
	// sampledEvery is how often a pod that keeps its clusters is sampled.
	sampledEvery = 6 * time.Hour
	// Light is the share of what a pod's clusters make that may come and go, or be another pod's, too, and changes
	// nothing of what is believed: one cluster that carries next to nothing and goes from pod to pod must not keep all
	// of them from being believed.
	Light = 0.05
	// Parts are the parts that the clusters of a pod fall into by their names. What comes and goes shows in how what
	// they make is spread over these, whatever is remembered of each.
	Parts = 16
	// mostUsage bounds the history: some six days of ten pods.
	mostUsage = 240
)

// Usage is what pods had in use, beside what the metrics of their clusters added up to, and what follows of that for
// one more of a metric. Why says why nothing does.
type Usage struct {
	Metrics []string        `json:"metrics,omitempty"`
	Rows    []calibrate.Row `json:"rows,omitempty"` // the oldest first
	Fit     *calibrate.Fit  `json:"fit,omitempty"`
	Why     string          `json:"why,omitempty"`

	Of    map[string]string    `json:"of,omitempty"`    // which clusters a pod has
	Since map[string]time.Time `json:"since,omitempty"` // it has them, but for some that are light
	Shape map[string][]float64 `json:"shape,omitempty"` // how what they made was spread when that time began
}

// Look is what is seen of a pod: which clusters it has, what their metrics add up to, and how many bytes it has in use.
type Look struct {
	Pod     string
	Started time.Time
	Of      string
	Shape   []float64 // how the values are spread over Parts; nil: nobody knows
	Values  []float64
	Memory  float64
}

// Next is with what is seen now. Samples of other metrics say nothing, and begin anew.
func (t Usage) Next(looks []Look, metrics []string, now time.Time) Usage {
	if !slices.Equal(t.Metrics, metrics) {
		t = Usage{Metrics: slices.Clone(metrics)}
	}
	of, since := make(map[string]string, len(looks)), make(map[string]time.Time, len(looks))
	var shape map[string][]float64
	rows := slices.Clip(t.Rows)
	for _, l := range looks {
		of[l.Pod], since[l.Pod] = l.Of, now
		if l.Shape != nil {
			shape = with(shape, l.Pod, l.Shape)
		}
		if at, known := t.Since[l.Pod]; known && t.changed(l) <= Light && !l.Started.After(at) {
			since[l.Pod] = at
			if before := t.Shape[l.Pod]; before != nil {
				shape = with(shape, l.Pod, before) // what comes and goes again has changed nothing
			}
		}
		if t.due(l.Pod, since[l.Pod], now) {
			bytes := l.Memory
			rows = append(rows, calibrate.Row{Pod: l.Pod, At: now, Values: l.Values, Memory: &bytes})
		}
	}
	t.Of, t.Since, t.Shape = of, since, shape
	if len(rows) > len(t.Rows) {
		t.Rows = rows[max(len(rows)-mostUsage, 0):]
		t.fit()
	}
	return t
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// changed is the share of what a pod's clusters make that is of others than when its time began.
func (t Usage) changed(l Look) float64 {
	before := t.Shape[l.Pod]
	switch {
	case t.Of[l.Pod] == l.Of:
		return 0
	case len(before) != Parts || len(l.Shape) != Parts:
		return 1
	}
	differs := 0.0
	for part, share := range l.Shape {
		differs += math.Abs(share - before[part])
	}
	return differs / 2 // what came is a share of one part, and missing in the others
}

// due reports whether a pod is to be sampled: its clusters have settled, and there is no sample of them, or an old one.
func (t Usage) due(pod string, since, now time.Time) bool {
	if now.Sub(since) < settled {
		return false
	}
	for _, r := range slices.Backward(t.Rows) {
		if r.Pod == pod {
			return r.At.Before(since) || now.Sub(r.At) >= sampledEvery
		}
	}
	return true
}

// fit works out what follows of the samples. One that does not predict the pods that it was not made of predicts
// nothing.
func (t *Usage) fit() {
	t.Fit, t.Why = nil, ""
	s := calibrate.Samples{Metrics: t.Metrics, Rows: t.Rows}
	if err := s.Check(); err != nil {
		t.Why = err.Error()
		return
	}
	f, err := calibrate.Of(s, calibrate.Memory)
	switch {
	case err != nil:
		t.Why = err.Error()
	case f.HeldOut == nil:
		t.Why = fmt.Sprintf("there are samples of %d pods, and a fit is only believed that each of three or more bears out", f.Pods)
	case !f.Trusted():
		t.Why = fmt.Sprintf("R2 is %.2f, and %.2f of each pod by the others, below %.1f", f.R2, *f.HeldOut,
			calibrate.Trusted)
	default:
		t.Fit = &f
	}
}

// Until is with every time that lies in the future taken as now.
func (t Usage) Until(now time.Time) Usage {
	t.Since = MapUntil(t.Since, now)
	if slices.ContainsFunc(t.Rows, func(r calibrate.Row) bool { return r.At.After(now) }) {
		t.Rows = slices.Clone(t.Rows)
		for i := range t.Rows {
			NotAhead(now, &t.Rows[i].At)
		}
	}
	return t
}

// Bounded refuses samples that nobody made: they are read from the history.
func (t Usage) Bounded() error {
	if len(t.Rows) > mostUsage {
		return fmt.Errorf("%d samples, of at most %d", len(t.Rows), mostUsage)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return calibrate.Samples{Metrics: t.Metrics, Rows: t.Rows}.Check()
}

// Refit has what follows of the samples worked out anew: what is read says only what was seen.
func (t Usage) Refit() Usage {
	if t.Fit = nil; len(t.Rows) > 0 {
		t.fit()
	}
	return t
}
