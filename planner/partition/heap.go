package partition

import "ballast/planner/plan"

// bin is a replica being filled.
type bin struct {
	load     plan.Load
	clusters int32
	replica  int32
}

// less is a total order: by load, then fewer clusters, so that clusters without load spread by number, then number.
func (a bin) less(b bin) bool {
	if a.load != b.load {
		return a.load < b.load
	}
	if a.clusters != b.clusters {
		return a.clusters < b.clusters
	}
	return a.replica < b.replica
}

// heap is a binary heap with the least loaded replica at 0. container/heap would call through an interface and box each
// bin, which is most of the time here.
type heap []bin

func (h *heap) push(b bin) {
	*h = append(*h, b)
	h.up(len(*h) - 1)
}

// remove takes out the bin at a position.
func (h *heap) remove(at int) bin {
	s := *h
	b, last := s[at], len(s)-1
	s[at] = s[last]
	*h = s[:last]
	if at < last {
		h.down(at)
		h.up(at)
	}
	return b
}

func (h heap) up(at int) {
	b := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !b.less(h[parent]) {
			break
		}
		h[at] = h[parent]
		at = parent
	}
	h[at] = b
}

func (h heap) down(at int) {
	b := h[at]
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].less(h[child]) {
			child = right
		}
		if !h[child].less(b) {
			break
		}
		h[at] = h[child]
		at = child
	}
	h[at] = b
}
