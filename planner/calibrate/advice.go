package calibrate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Advice is what to configure by a fit: weights that make the load a share of the resource, which sum to 1, and the
// load at which a replica is as full as it may be.
type Advice struct {
	Resource Resource           `json:"resource"`
	Weights  map[string]float64 `json:"weights"`
	PerLoad  float64            `json:"perLoad"`            // of the resource, by a load of 1
	Capacity *float64           `json:"capacity,omitempty"` // nil: there is no limit, or no room below it
	Why      string             `json:"why,omitempty"`      // there is no capacity
}

// digits is how many of a weight's people are asked to believe.
const digits = 4

// Advise makes a fit what the configuration knows. fill is the share of the limit that a replica may use, 0 to 1. What
// the fit is off by is left free.
func Advise(s Samples, f Fit, fill float64) (Advice, error) {
	a := Advice{Resource: f.Resource, Weights: map[string]float64{}}
	for _, id := range s.Metrics {
		a.PerLoad += f.Per[id] * s.reference(id)
	}
	if !(a.PerLoad > 0) || math.IsInf(a.PerLoad, 0) {
		return a, errors.New("no metric says anything of it: what differs between the pods follows none of them")
	}
	for _, id := range s.Metrics {
		a.Weights[id] = rounded(f.Per[id] * s.reference(id) / a.PerLoad)
	}
	limit, limited := s.Limits[f.Resource]
	if !limited {
		a.Why = fmt.Sprintf("the pods have no %s limit, so that nobody knows when one is full", f.Resource)
		return a, nil
	}
	capacity := (fill*limit - f.Base - f.Margin) / a.PerLoad
	if capacity <= 0 {
		a.Why = fmt.Sprintf("a pod without any cluster, and what the fit is off by, take all of %.0f %% of the limit",
			100*fill)
		return a, nil
	}
	a.Capacity = &capacity
	return a, nil
}

// rounded is a number with so many digits that count.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64) // what it wrote itself
	if r < 1e-9 {
		return 0
	}
	return r
}

// Binds is the resource that pods run out of first: of which the fullest sample uses the larger share of its limit.
// Without limits it is memory, of which a pod dies. A fit that predicts nothing stands back for one that does.
func Binds(s Samples, fits []Fit) (at int) {
	share := func(f Fit) float64 {
		if limit, ok := s.Limits[f.Resource]; ok {
			return f.Most / limit
		}
		return 0
	}
	for i, f := range fits {
		better := f.Trusted() && !fits[at].Trusted()
		if better || f.Trusted() == fits[at].Trusted() && share(f) > share(fits[at]) {
			at = i
		}
	}
	return at
}
