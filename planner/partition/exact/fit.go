package exact

import (
	"cmp"
	"slices"

	"ballast/planner/plan"
)

// verdict is what a search found out.
type verdict int

const (
	unknown verdict = iota // the steps were used up
	fits
	fails
)

// search asks whether loads fit on some replicas. It fills one replica after the other, with the heaviest load left and
// all sets beside it to which none of the others could be added (Martello and Toth; Korf's bin completion).
type search struct {
	full        plan.Load
	steps, left int
	failed      map[remains]bool
	partial     bool // not all sets were looked at
}

// remains names what is left for so many replicas, by two sums of hashes.
type remains struct {
	a, b     uint64
	replicas int
}

func (s *search) used() int { return s.steps - max(s.left, 0) }

// fit answers, with the makespan of what it found.
func (s *search) fit(sorted []plan.Load, replicas int) (verdict, plan.Load) {
	s.failed = map[remains]bool{}
	var sum plan.Load
	for _, l := range sorted {
		sum += l
	}
	if most, found := s.next(sorted, sum, replicas); found {
		return fits, most
	}
	if s.partial || s.left < 0 {
		return unknown, 0
	}
	return fails, 0
}

// next fills the replicas with what is left.
func (s *search) next(left []plan.Load, sum plan.Load, replicas int) (most plan.Load, found bool) {
	waste := plan.Load(replicas)*s.full - sum
	switch {
	case len(left) == 0:
		return 0, true
	case replicas == 0 || waste < 0 || left[0] > s.full:
		return 0, false
	case sum <= s.full:
		return sum, true
	}
	key := keyOf(left, replicas)
	if s.left -= len(left); s.left < 0 || s.failed[key] {
		return 0, false
	}
	for _, c := range s.completions(left, waste) {
		rest := make([]plan.Load, 0, len(left)-len(c.taken))
		at := 0
		for k, l := range left {
			if at < len(c.taken) && c.taken[at] == int32(k) {
				at++
				continue
			}
			rest = append(rest, l)
		}
		if most, found = s.next(rest, sum-c.sum, replicas-1); found {
			return max(most, c.sum), true
		}
		if s.left < 0 {
			return 0, false
		}
	}
	s.failed[key] = true
	return 0, false
}

// completion is what one replica takes of what is left, by place.
type completion struct {
	sum   plan.Load
	taken []int32
}

// mostSets bounds how many sets for one replica are looked at; where there are more, nothing is proved any more.
const mostSets = 512

// completions are the sets that leave no more than that unused, the fullest first. Each has the heaviest.
func (s *search) completions(left []plan.Load, waste plan.Load) (found []completion) {
	after := make([]plan.Load, len(left)+1) // what comes from there on
	for k := len(left) - 1; k >= 0; k-- {
		after[k] = after[k+1] + left[k]
	}
	taken := []int32{0}
	var choose func(k int, sum, lightest plan.Load)
	choose = func(k int, sum, lightest plan.Load) {
		if s.left--; s.left < 0 || len(found) >= mostSets {
			s.partial = s.partial || len(found) >= mostSets
			return
		}
		room := s.full - sum
		for k < len(left) && left[k] > room {
			k++
		}
		if room-after[k] > waste || room-after[k] >= lightest {
			return // too empty with all that is left, or what was left out could be added to it
		}
		if k == len(left) {
			found = append(found, completion{sum, slices.Clone(taken)})
			return
		}
		taken = append(taken, int32(k))
		choose(k+1, sum+left[k], lightest)
		taken = taken[:len(taken)-1]
		same := k + 1 // without it, and without its like
		for same < len(left) && left[same] == left[k] {
			same++
		}
		choose(same, sum, min(lightest, left[k]))
	}
	choose(1, left[0], None)
	slices.SortStableFunc(found, func(a, b completion) int { return cmp.Compare(b.sum, a.sum) })
	return found
}

func keyOf(left []plan.Load, replicas int) remains {
	key := remains{replicas: replicas}
	for _, l := range left {
		key.a += mixed(uint64(l))
		key.b += mixed(uint64(l) ^ 0x9e3779b97f4a7c15)
	}
	return key
}

// mixed is a hash of a number (splitmix64).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
