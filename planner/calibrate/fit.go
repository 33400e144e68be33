package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

const (
	// Trusted is the R2 below which a fit is nothing to size by.
	Trusted = 0.6
	// leastRows is how many samples each number that is fitted needs.
	leastRows = 3
	// together is the correlation of two metrics above which nobody can tell which of them it is.
	together = 0.98
	// offShare is the share of the samples of which the margin covers what the fit is off by.
	offShare = 0.95
)

// Fit is what a resource is, by the metrics: Base and each metric's Per times its value.
type Fit struct {
	Resource Resource           `json:"resource"`
	Samples  int                `json:"samples"`
	Pods     int                `json:"pods"`
	Base     float64            `json:"base"` // of a pod without any cluster
	Per      map[string]float64 `json:"per"`  // one more of a metric's unit
	R2       float64            `json:"r2"`
	HeldOut  *float64           `json:"heldOutR2,omitempty"` // of each pod by a fit to the others; of three pods or more
	LoadR2   *float64           `json:"loadR2,omitempty"`    // of the load as it is configured now, alone
	Margin   float64            `json:"margin"`              // what 95 % of the samples are above it at most
	Most     float64            `json:"most"`                // that any sample has
	Flat     []string           `json:"flat,omitempty"`      // metrics that are the same on every pod at every time, which say nothing
	Together [][2]string        `json:"together,omitempty"`  // metrics that go up and down together: their shares are a guess
}

// Trusted reports whether the fit predicts anything, on pods that it was not made of too.
func (f Fit) Trusted() bool { return f.R2 >= Trusted && (f.HeldOut == nil || *f.HeldOut >= Trusted) }

// Of fits a resource. The samples are checked.
func Of(s Samples, of Resource) (Fit, error) {
	rows := s.measured(of)
	names := pods(rows)
	if least := leastRows * (len(s.Metrics) + 1); len(rows) < least {
		return Fit{}, fmt.Errorf("fitting %s: there are %d samples of it, and %d metrics need %d: take a longer range, or a smaller step",
			of, len(rows), len(s.Metrics), least)
	}
	order := make([]int, len(s.Metrics)) // by name: of two that say the same the first is taken, whatever order they come in
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.Metrics[a], s.Metrics[b]) })
	f := Fit{Resource: of, Samples: len(rows), Pods: len(names), Per: map[string]float64{}}
	for _, id := range s.Metrics {
		f.Per[id] = 0
	}
	order = f.looks(s, rows, order)
	x, err := fitted(rows, of, order)
	if err != nil {
		return Fit{}, fmt.Errorf("fitting %s: %w", of, err)
	}
	f.Base = x[len(order)]
	for at, i := range order {
		f.Per[s.Metrics[i]] = x[at]
	}
	used, off := residuals(rows, of, order, x)
	f.R2, f.Margin, f.Most = r2(used, off), quantile(off, offShare), slices.Max(used)
	if f.Margin < 1e-9*f.Most { // rounding
		f.Margin = 0
	}
	f.HeldOut = heldOut(rows, of, order, names)
	f.LoadR2 = s.loadR2(rows, of)
	return f, nil
}

// fitted are the numbers of the columns, in their order, and of the base last.
func fitted(rows []Row, of Resource, columns []int) ([]float64, error) {
	a, b := mat.NewDense(len(rows), len(columns)+1, nil), make([]float64, len(rows))
	for i, r := range rows {
		for at, c := range columns {
			a.Set(i, at, r.Values[c])
		}
		a.Set(i, len(columns), 1)
		b[i], _ = r.Used(of)
	}
	return NNLS(a, b)
}

// residuals are what was used, and by how much that is more than the fit says.
func residuals(rows []Row, of Resource, columns []int, x []float64) (used, off []float64) {
	used, off = make([]float64, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		used[i], _ = r.Used(of)
		off[i] = used[i] - x[len(columns)]
		for at, c := range columns {
			off[i] -= x[at] * r.Values[c]
		}
	}
	return used, off
}

// r2 is the share of the variance that a fit explains; 0 where nothing varies, since nothing is explained.
func r2(used, off []float64) float64 {
	mean := 0.0
	for _, u := range used {
		mean += u / float64(len(used))
	}
	all, left := 0.0, 0.0
	for i, u := range used {
		all += (u - mean) * (u - mean)
		left += off[i] * off[i]
	}
	if scale := math.Abs(mean) * 1e-9; all <= float64(len(used))*scale*scale {
		return 0
	}
	return 1 - left/all
}

// quantile is the value that such a share of the values does not exceed; not below 0.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return max(sorted[min(int(math.Ceil(share*float64(len(sorted)))), len(sorted))-1], 0)
}

// leastPods is how many pods there must be to fit each by the others.
const leastPods = 3

// heldOut is how well each pod is told by a fit to the others. Samples of one pod are alike, so that few pods are
// fitted well whatever the metrics say.
func heldOut(rows []Row, of Resource, columns []int, names []string) *float64 {
	if len(names) < leastPods {
		return nil
	}
	var used, off []float64
	for _, name := range names {
		its := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Pod != name })
		others := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Pod == name })
		x, err := fitted(others, of, columns)
		if err != nil {
			return nil
		}
		u, o := residuals(its, of, columns, x)
		used, off = append(used, u...), append(off, o...)
	}
	share := r2(used, off)
	return &share
}

// loadR2 is how much of a resource the load alone tells that is configured now; nil where nobody said what that is.
func (s Samples) loadR2(rows []Row, of Resource) *float64 {
	if s.Weights == nil {
		return nil
	}
	loads := slices.Clone(rows)
	for i, r := range loads {
		loads[i].Values = []float64{s.load(s.Weights, r)}
	}
	x, err := fitted(loads, of, []int{0})
	if err != nil {
		return nil
	}
	share := r2(residuals(loads, of, []int{0}, x))
	return &share
}

// load is what a pod's clusters make together.
func (s Samples) load(weights map[string]float64, r Row) (load float64) {
	for i, id := range s.Metrics {
		load += weights[id] * r.Values[i] / s.reference(id)
	}
	return load
}

// reference is what a metric's value is divided by.
func (s Samples) reference(id string) float64 {
	if s.References == nil {
		return 1
	}
	return s.References[id]
}

// looks names the metrics of which the samples cannot tell, and answers those that are not the same everywhere.
func (f *Fit) looks(s Samples, rows []Row, order []int) (moving []int) {
	columns := map[int][]float64{}
	for _, c := range order {
		for _, r := range rows {
			columns[c] = append(columns[c], r.Values[c])
		}
		if most, least := slices.Max(columns[c]), slices.Min(columns[c]); most-least <= 1e-9*most {
			f.Flat = append(f.Flat, s.Metrics[c])
			continue
		}
		moving = append(moving, c)
	}
	for k, a := range moving {
		for _, b := range moving[k+1:] {
			if correlation(columns[a], columns[b]) > together {
				f.Together = append(f.Together, [2]string{s.Metrics[a], s.Metrics[b]})
			}
		}
	}
	return moving
}

func correlation(a, b []float64) float64 {
	n, top, left, right := float64(len(a)), 0.0, 0.0, 0.0
	ma, mb := 0.0, 0.0
	for i := range a {
		ma, mb = ma+a[i]/n, mb+b[i]/n
	}
	for i := range a {
		x, y := a[i]-ma, b[i]-mb
		top, left, right = top+x*y, left+x*x, right+y*y
	}
	return top / math.Sqrt(left*right)
}
