package auditlog

import "hash/maphash"

// remembered is how many requests a generation of recent holds; two take some 30 MB when full.
const remembered = 1 << 19

// recent knows the last lines, so that a request is counted once: a rotated file may be given twice, or copied while it
// grew. An audit ID does not tell requests apart: clients may choose it, and could hide a write behind another one.
type recent struct {
	seed     maphash.Seed
	now, old map[uint64]struct{}
}

// first reports whether a line is told for the first time. Two requests that differ in nothing but what they wrote have
// different lines.
func (r *recent) first(line []byte) bool {
	if r.now == nil {
		r.seed, r.now = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	key := maphash.Bytes(r.seed, line)
	if _, ok := r.now[key]; ok {
		return false
	}
	if _, ok := r.old[key]; ok {
		return false
	}
	if len(r.now) >= remembered {
		r.old, r.now = r.now, map[uint64]struct{}{}
	}
	r.now[key] = struct{}{}
	return true
}
