package auditlog

import "hash/maphash"

// remembered is how many requests a generation of recent holds; two take some 30 MB when full.
const remembered = 1 << 19

// recent knows the last requests, so that one is counted once: a rotated file may be given twice, or copied while it
// grew. An audit ID alone does not tell them apart: clients may choose it, and could hide a write behind another one.
type recent struct {
	seed     maphash.Seed
	now, old map[uint64]struct{}
}

// request tells requests apart. The time is the API server's.
type request struct {
	auditID, user, uri string
	received           int64
}

func (r *recent) first(e event) bool {
	if r.now == nil {
		r.seed, r.now = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	key := maphash.Comparable(r.seed, request{e.AuditID, e.User.Username, e.RequestURI, e.Received.UnixNano()})
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
