package sharding

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"golang.org/x/crypto/blake2b"
)

// pointsPerShard is Argo CD's number of points that a shard has on the ring.
const pointsPerShard = 1000

// ring is Argo CD's consistent hashing with bounded loads: a cluster goes to the first shard clockwise of its hash that
// carries less than 5/4 of the mean number of Applications. It is our own because Argo CD's answers for one cluster at
// a time, out of a database; testdata has what that answers (e2e/argocd/vectors), and holds it to that.
type ring struct {
	points []point
	loads  []int
	total  int
}

type point struct {
	hash  uint64
	shard int
}

func newRing(replicas int) *ring {
	r := &ring{points: make([]point, 0, replicas*pointsPerShard), loads: make([]int, replicas)}
	for shard := range replicas {
		for i := range pointsPerShard {
			r.points = append(r.points, point{ringHash(ringPoint(shard, i)), shard})
		}
	}
	// Names collide ("1"+"11" and "11"+"1"): the shard that came last has the point.
	slices.SortStableFunc(r.points, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	kept := r.points[:0]
	for i, p := range r.points {
		if i+1 == len(r.points) || r.points[i+1].hash != p.hash {
			kept = append(kept, p)
		}
	}
	r.points = kept
	return r
}

// ringPoint returns the name under which a shard's i-th point on the ring is hashed.
func ringPoint(shard, i int) string { return strconv.Itoa(shard) + strconv.Itoa(i) }

// place gives a cluster with that many Applications its shard. A shard below the bound always exists: the bound is
// above the mean.
func (r *ring) place(id string, apps int) int {
	hash := ringHash(id)
	at, _ := slices.BinarySearchFunc(r.points, hash, func(p point, h uint64) int {
		if p.hash <= h { // a point at the very hash is passed over
			return -1
		}
		return 1
	})
	for {
		p := r.points[at%len(r.points)]
		if r.loads[p.shard] < r.bound() {
			r.loads[p.shard] += apps
			r.total += apps
			return p.shard
		}
		at++
	}
}

// bound is ceil(5/4 * mean), the mean counting one Application more and rounded down, at least 1.
func (r *ring) bound() int {
	mean := max((r.total+1)/len(r.loads), 1)
	return (5*mean + 3) / 4
}

func ringHash(name string) uint64 {
	sum := blake2b.Sum512([]byte(name))
	return binary.LittleEndian.Uint64(sum[:8])
}
