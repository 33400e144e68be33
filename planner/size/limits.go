package size

import (
	"math"
	"math/big"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/size/rational"
)

// Resources are a container's requests and limits by resource.
type Resources struct {
	Requests map[string]resource.Quantity
	Limits   map[string]resource.Quantity
}

// Headroom is how far a limit lies above its request: the larger of Value and Percent of the request more.
type Headroom struct {
	Value   *resource.Quantity
	Percent int
}

func (h Headroom) isSet() bool { return h.Value != nil || h.Percent > 0 }

// Limit is the limit that goes with a new request, where limit and request are what stood before; nil is none:
//
//  1. without a limit there is none;
//  2. where there was no request it is the new one;
//  3. what was equal stays equal;
//  4. without parameters it grows and shrinks as the request does;
//  5. with parameters it is the larger of request + value and request * (1 + percent).
func Limit(limit, request *resource.Quantity, next resource.Quantity, h Headroom) *resource.Quantity {
	switch {
	case limit == nil || limit.IsZero():
		return nil
	case request == nil || request.IsZero(), limit.Cmp(*request) == 0:
		return &next
	case !h.isSet():
		q := rational.Share(*limit, next, *request)
		return &q
	}
	return h.above(next, limit.Format)
}

func (h Headroom) above(request resource.Quantity, format resource.Format) *resource.Quantity {
	most := new(big.Rat).Mul(rational.Of(request), big.NewRat(int64(100+h.Percent), 100))
	if h.Value != nil {
		if by := new(big.Rat).Add(rational.Of(request), rational.Of(*h.Value)); by.Cmp(most) > 0 {
			most = by
		}
	}
	q := rational.Quantity(most, format)
	return &q
}

const (
	// aboveThePeak is how far above the most that was seen in use a memory limit stays, in percent: at nine tenths of
	// it a replica receives no cluster.
	aboveThePeak = 20
	// FloorStep is what that is rounded up to.
	FloorStep = 64 << 20
)

// NotBelow is the limit, or where that is higher a fifth above the peak, as far as a node has it, and never less than
// the peak: a memory limit below what was used is an OOM kill. most nil: nobody knows what a node has.
func NotBelow(limit resource.Quantity, peak float64, most *resource.Quantity) resource.Quantity {
	floor := above(peak)
	if most != nil && floor != nil && most.Cmp(*floor) < 0 {
		floor = most
		if used := rational.Bytes(peak); used != nil && used.CmpInt64(most.Value()+FloorStep) >= 0 { // not for what it was rounded up by
			floor = used
		}
	}
	if floor == nil || limit.Cmp(*floor) >= 0 {
		return limit
	}
	return *resource.NewQuantity(floor.Value(), limit.Format)
}

// Short reports whether a memory limit is less than a fifth above the peak: NotBelow was bounded by a node.
func Short(limit resource.Quantity, peak float64) bool {
	floor := above(peak)
	return floor != nil && limit.Cmp(*floor) < 0
}

// above is a fifth above a peak; nil where that is no number, or beyond all.
func above(peak float64) *resource.Quantity {
	q := rational.Bytes(math.Ceil(peak/FloorStep*(100+aboveThePeak)/100) * FloorStep)
	if q == nil {
		return rational.Bytes(peak)
	}
	return q
}

// Cap cuts requests to their limits, in copies.
func (r Resources) Cap() Resources {
	out := Resources{Requests: map[string]resource.Quantity{}, Limits: map[string]resource.Quantity{}}
	for name, q := range r.Limits {
		out.Limits[name] = q
	}
	for name, q := range r.Requests {
		if limit, limited := r.Limits[name]; limited && !limit.IsZero() && q.Cmp(limit) > 0 {
			q = limit
		}
		out.Requests[name] = q
	}
	return out
}

// Changed is what of a size differs from what stands: only that is written.
func (r Resources) Changed(stands Resources) Resources {
	return Resources{changed(r.Requests, stands.Requests), changed(r.Limits, stands.Limits)}
}

func changed(want, stands map[string]resource.Quantity) map[string]resource.Quantity {
	var out map[string]resource.Quantity
	for name, q := range want {
		if now, there := stands[name]; there && now.Cmp(q) == 0 {
			continue
		}
		if out == nil {
			out = map[string]resource.Quantity{}
		}
		out[name] = q
	}
	return out
}
