// Package calibrate says whether clusters' metrics predict what their replicas use: non-negative least squares of each
// pod's memory and CPU on its clusters' metrics. Functions of values: samples in, fit out.
package calibrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Resource is what a pod uses.
type Resource string

// The resources: memory in bytes, CPU in cores.
const (
	Memory Resource = "memory"
	CPU    Resource = "cpu"
)

// Resources lists them.
func Resources() []Resource { return []Resource{Memory, CPU} }

// Samples are what pods used, and what the metrics of the clusters that each had then add up to. Limits are those of
// one pod; References what the metrics' values are shares of in the load, none where it is the values themselves.
type Samples struct {
	Metrics    []string             `json:"metrics"`
	References map[string]float64   `json:"references,omitempty"`
	Weights    map[string]float64   `json:"weights,omitempty"` // of the load as it is configured now
	Limits     map[Resource]float64 `json:"limits,omitempty"`
	Rows       []Row                `json:"rows"`
}

// Row is one pod at one time. What was not measured is not there.
type Row struct {
	Pod    string    `json:"pod"`
	At     time.Time `json:"at"`
	Values []float64 `json:"values"` // as Samples.Metrics
	Memory *float64  `json:"memory,omitempty"`
	CPU    *float64  `json:"cpu,omitempty"`
}

// Used is what the pod used; false: it was not measured.
func (r Row) Used(of Resource) (float64, bool) {
	used := r.Memory
	if of == CPU {
		used = r.CPU
	}
	if used == nil {
		return 0, false
	}
	return *used, true
}

// Bounds of what is read: a day of 100 pods at a minute is 144,000 rows.
const (
	mostBytes   = 256 << 20
	mostMetrics = 100
	mostRows    = 1 << 20
	// mostValue keeps sums and squares of values finite.
	mostValue = 1e30
)

// Read reads samples, as Write writes them, within bounds.
func Read(r io.Reader) (Samples, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return Samples{}, err
	}
	if len(data) > mostBytes {
		return Samples{}, fmt.Errorf("it has more than %d MiB", mostBytes>>20)
	}
	var s Samples
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Samples{}, fmt.Errorf("it is no file of samples: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Samples{}, errors.New("it is no file of samples: something follows them")
	}
	return s, s.Check()
}

// Check refuses what no fit can go by.
func (s Samples) Check() error {
	switch {
	case len(s.Metrics) == 0:
		return errors.New("metrics: there is none")
	case len(s.Metrics) > mostMetrics:
		return fmt.Errorf("metrics: there are %d, and at most %d are fitted", len(s.Metrics), mostMetrics)
	case len(s.Rows) > mostRows:
		return fmt.Errorf("rows: there are %d, and at most %d are fitted: take a larger step", len(s.Rows), mostRows)
	}
	for i, id := range s.Metrics {
		if id == "" || slices.Contains(s.Metrics[:i], id) {
			return fmt.Errorf("metrics[%d]: %q is empty, or stands twice", i, id)
		}
		if ref, ok := s.References[id]; s.References != nil && (!ok || !(ref > 0 && ref <= mostValue)) {
			return fmt.Errorf("references.%s: %v is no number above 0", id, ref)
		}
		if w, ok := s.Weights[id]; s.Weights != nil && (!ok || !fits(w)) {
			return fmt.Errorf("weights.%s: %v is no number of 0 or more", id, w)
		}
	}
	for _, of := range Resources() {
		if limit, ok := s.Limits[of]; ok && !(limit > 0 && limit <= mostValue) {
			return fmt.Errorf("limits.%s: %v is no number above 0", of, limit)
		}
	}
	for i, r := range s.Rows {
		if err := r.check(len(s.Metrics)); err != nil {
			return fmt.Errorf("rows[%d]: %w", i, err)
		}
	}
	return nil
}

func fits(v float64) bool { return v >= 0 && v <= mostValue }

func (r Row) check(metrics int) error {
	if r.Pod == "" {
		return errors.New("pod: it has no name")
	}
	if len(r.Values) != metrics {
		return fmt.Errorf("values: %d of %d metrics", len(r.Values), metrics)
	}
	for i, v := range r.Values {
		if !fits(v) {
			return fmt.Errorf("values[%d]: %v is no number from 0 to %g", i, v, mostValue)
		}
	}
	for _, of := range Resources() {
		if used, ok := r.Used(of); ok && !fits(used) {
			return fmt.Errorf("%s: %v is no number from 0 to %g", of, used, mostValue)
		}
	}
	return nil
}

// measured are the rows that have the resource, in the order of pods and times, so that rounding is the same whatever
// the order they come in.
func (s Samples) measured(of Resource) []Row {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r Row) bool { _, ok := r.Used(of); return !ok })
	slices.SortFunc(rows, func(a, b Row) int {
		x, _ := a.Used(of)
		y, _ := b.Used(of)
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), a.At.Compare(b.At), cmp.Compare(x, y),
			slices.Compare(a.Values, b.Values))
	})
	return rows
}

// pods are the names of the pods of rows, in order.
func pods(rows []Row) (names []string) {
	for _, r := range rows {
		if len(names) == 0 || names[len(names)-1] != r.Pod {
			names = append(names, r.Pod)
		}
	}
	return names
}
