package peer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/change"
	"ballast/planner/change/maintenance"
	"ballast/planner/size"
)

// The second HVPA (its branch hvpa-v2) has no weights but buckets: of each number of replicas the least and the most that
// one replica may have.

// Bucket is one of them, in thousandths by resource.
type Bucket struct {
	Replicas int
	Min, Max map[string]int64
}

// ScaleInterval goes up to a number of replicas, and to so much for each; what is not given is the VPA's maxAllowed.
type ScaleInterval struct {
	MaxReplicas int     `json:"maxReplicas"`
	MaxCPU      *Amount `json:"maxCpu"`
	MaxMemory   *Amount `json:"maxMemory"`
}

// BucketSpec is what buckets are made of.
type BucketSpec struct {
	Intervals          []ScaleInterval
	Overlap            map[string]Param
	MinReplicas        int
	MinAllowed         map[string]Amount
	MaxAllowed         map[string]Amount
	Base               map[string]Param // baseResourcesPerReplica
	Gap                Params
	ScaleUp, ScaleDown ScaleType
	Windows            []maintenance.Window
}

var resources = []string{size.CPU, size.Memory}

func milliOf(a *Amount) (int64, error) {
	q, err := a.Quantity()
	if q == nil {
		return 0, err
	}
	return q.MilliValue(), nil
}

// most is an interval's upper end of a resource.
func (s BucketSpec) most(in ScaleInterval, name string) (int64, error) {
	given := in.MaxCPU
	if name == size.Memory {
		given = in.MaxMemory
	}
	if given == nil {
		allowed := s.MaxAllowed[name]
		given = &allowed
	}
	milli, err := milliOf(given)
	if err == nil && milli <= 0 {
		err = fmt.Errorf("neither the interval nor the VPA says how much %s is the most", name)
	}
	return milli, err
}

// maxBuckets bounds how many replicas buckets may speak of.
const maxBuckets = 1000

// Buckets cuts each interval evenly by its replicas. The next bucket begins where the one before it ends in total, less
// the overlap.
func (s BucketSpec) Buckets() ([]Bucket, error) {
	var out []Bucket
	low := map[string]int64{}
	for _, name := range resources {
		allowed := s.MinAllowed[name]
		var err error
		if low[name], err = milliOf(&allowed); err != nil {
			return nil, err
		}
	}
	replicas := max(s.MinReplicas, 1)
	for _, in := range s.Intervals {
		n := int64(in.MaxReplicas - replicas + 1)
		if n <= 0 || in.MaxReplicas > maxBuckets {
			return nil, fmt.Errorf("an interval up to %d replicas does not follow on %d", in.MaxReplicas, replicas-1)
		}
		from, step := map[string]int64{}, map[string]int64{}
		for _, name := range resources {
			most, err := s.most(in, name)
			if err != nil {
				return nil, err
			}
			from[name], step[name] = low[name], (most-low[name])/n
		}
		for i := int64(1); i <= n; i++ {
			b := Bucket{Replicas: replicas, Min: map[string]int64{}, Max: map[string]int64{}}
			for _, name := range resources {
				b.Min[name], b.Max[name] = low[name], from[name]+i*step[name]
				next := b.Max[name] * int64(replicas) / int64(replicas+1)
				overlap, err := s.Overlap[name].larger(next)
				if err != nil {
					return nil, err
				}
				low[name] = next - overlap
			}
			out = append(out, b)
			replicas++
		}
	}
	return out, nil
}

// larger is the larger of the value and the percentage, in thousandths.
func (p Param) larger(of int64) (int64, error) {
	value, err := milliOf(p.Value)
	if p.Percentage != nil {
		value = max(value, of*int64(*p.Percentage)/100)
	}
	return value, err
}

// In reports whether a total lies in the bucket.
func (b Bucket) In(name string, total int64) bool {
	return total >= b.Min[name]*int64(b.Replicas) && total <= b.Max[name]*int64(b.Replicas)
}

// ReplicasFor is the bucket of a total: that of the replicas in force where it is one of several, else the first. ok is
// false where there is none.
func ReplicasFor(buckets []Bucket, name string, total int64, inForce int) (replicas int, ok bool) {
	first := 0
	for _, b := range buckets {
		switch {
		case !b.In(name, total):
		case b.Replicas == inForce:
			return inForce, true
		case first == 0:
			first = b.Replicas
		}
	}
	return first, first > 0
}

// Recommend is what the buckets make of a VPA's target per replica, in thousandths by resource, and of an HPA's replicas.
func (s BucketSpec) Recommend(replicas, desired int, stands size.Resources, targets map[string]int64, m Moment) (int, Vertical, error) {
	out := Vertical{Blocked: map[change.BlockReason]map[string]resource.Quantity{}}
	buckets, err := s.Buckets()
	if err != nil {
		return replicas, out, err
	}
	t := totals{replicas: int64(replicas), now: map[string]int64{}, want: map[string]int64{}}
	for _, name := range resources {
		request := stands.Requests[name]
		t.now[name] = request.MilliValue()
		t.want[name] = max(targets[name]*t.replicas, t.now[name]*int64(desired))
	}
	final := replicas
	reason, err := s.blocked(t, m)
	if err != nil {
		return replicas, out, err
	}
	if reason == "" && t.changes() {
		final = s.final(buckets, t, targets)
		if !t.grows() && final < replicas && t.paradoxical(int64(final)) {
			final, reason = replicas, change.Paradoxical
		}
	}
	next, changed, err := s.each(t, final)
	if err != nil || !changed {
		return final, out, err
	}
	requests := map[string]resource.Quantity{}
	for _, name := range resources {
		requests[name] = kilo(name, next[name])
	}
	if reason != "" {
		out.Blocked[reason] = requests
		return final, out, nil
	}
	out.Next, err = s.limits(stands, requests)
	return final, out, err
}

// totals are what all replicas have and want.
type totals struct {
	replicas  int64
	now, want map[string]int64 // now is of one replica
}

func (t totals) changes() bool {
	return t.want[size.CPU] != t.now[size.CPU]*t.replicas || t.want[size.Memory] != t.now[size.Memory]*t.replicas
}

// grows reports whether any resource does: then the whole is a growth.
func (t totals) grows() bool {
	return t.want[size.CPU] > t.now[size.CPU]*t.replicas || t.want[size.Memory] > t.now[size.Memory]*t.replicas
}

// paradoxical is fewer replicas, each larger in everything than now.
func (t totals) paradoxical(final int64) bool {
	for _, name := range resources {
		if t.now[name] == 0 || t.now[name] >= t.want[name]/final {
			return false
		}
	}
	return true
}

// blocked is the first thing in the way.
func (s BucketSpec) blocked(t totals, m Moment) (change.BlockReason, error) {
	if !t.changes() {
		return "", nil
	}
	way := s.ScaleDown
	if t.grows() {
		way = s.ScaleUp
	}
	small := true
	for _, name := range resources {
		least, err := way.MinChange.MinChange(name)
		if err != nil {
			return "", err
		}
		now := t.now[name] * t.replicas
		by := t.want[name] - now
		if !t.grows() {
			by = -by
		}
		small = small && by < least.Threshold(now)
	}
	policy := way.policy(s.Windows, change.MinChange{})
	ask := change.Ask{Now: m.Now, Current: 1, Wanted: 2, OOMKilled: m.Override} // up
	if !t.grows() {
		ask.Current, ask.Wanted = 2, 1
	}
	urgent := m.Override && t.grows()
	verdict := change.Rules{Up: policy, Down: policy}.Resources(ask, m.history(), change.Past{})
	switch {
	case len(verdict.Blocks) > 0:
		return verdict.Blocks[0].Reason, nil
	case small && !urgent:
		return change.TooSmall, nil
	}
	return "", nil
}

// final is how many replicas the buckets ask for. A total beyond the last one asks for the most.
func (s BucketSpec) final(buckets []Bucket, t totals, targets map[string]int64) int {
	last := s.Intervals[len(s.Intervals)-1]
	by := map[string]int{}
	for _, name := range resources {
		n, ok := ReplicasFor(buckets, name, t.want[name], int(t.replicas))
		if most, err := s.most(last, name); !ok && err == nil && targets[name] > most {
			n = last.MaxReplicas
		}
		by[name] = n
	}
	stay := by[size.CPU] == int(t.replicas) || by[size.Memory] == int(t.replicas)
	if !t.grows() && stay {
		return int(t.replicas)
	}
	if n := max(by[size.CPU], by[size.Memory]); n > 0 {
		return n
	}
	return int(t.replicas)
}

// each is what one of so many replicas gets. More replicas never shrink any of them; where they would shrink every
// resource nothing changes but their number.
func (s BucketSpec) each(t totals, final int) (map[string]int64, bool, error) {
	out := map[string]int64{}
	shrinks := true
	for _, name := range resources {
		allowed := s.MinAllowed[name]
		least, err := milliOf(&allowed)
		if err != nil {
			return nil, false, err
		}
		if out[name], err = s.based(t, name, max(t.want[name]/int64(final), least), int64(final)); err != nil {
			return nil, false, err
		}
		shrinks = shrinks && out[name] < t.now[name]
	}
	up := t.want[size.CPU] >= t.now[size.CPU]*t.replicas && t.want[size.Memory] >= t.now[size.Memory]*t.replicas
	if up && int64(final) > t.replicas {
		if shrinks {
			return nil, false, nil
		}
		for _, name := range resources {
			out[name] = max(out[name], t.now[name])
		}
	}
	return out, true, nil
}

// based takes into account what each replica needs whatever it does.
func (s BucketSpec) based(t totals, name string, each, final int64) (int64, error) {
	param, given := s.Base[name]
	if !given || final == t.replicas {
		return each, nil
	}
	was, err := param.larger(t.now[name])
	if err != nil {
		return 0, err
	}
	if t.now[name] <= was {
		return each, nil
	}
	is, err := param.larger(each)
	return (each*final - was*t.replicas + is*final) / final, err
}

// limits adds those that go with new requests; their share is that of the requests before.
func (s BucketSpec) limits(stands size.Resources, requests map[string]resource.Quantity) (size.Resources, error) {
	out := size.Resources{Requests: requests, Limits: map[string]resource.Quantity{}}
	for _, name := range resources {
		gap, err := s.Gap.Headroom(name)
		if err != nil {
			return out, err
		}
		limit, request := stands.Limits[name], stands.Requests[name]
		if l := size.Limit(&limit, &request, requests[name], gap); l != nil {
			out.Limits[name] = kilo(name, l.MilliValue())
		}
	}
	return out, nil
}
