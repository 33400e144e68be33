package draft

// ranking is a heap of replicas that knows where each is.
type ranking struct {
	order []int32
	place []int32 // by replica; -1: it is not in
}

func (t *ranking) grow() { t.place = append(t.place, -1) }

func (t *ranking) shrink() { t.place = t.place[:len(t.place)-1] }

func (t *ranking) add(v *view, r int) {
	if t.place[r] >= 0 {
		return
	}
	t.place[r] = int32(len(t.order))
	t.order = append(t.order, int32(r))
	t.up(v, int(t.place[r]))
}

func (t *ranking) remove(v *view, r int) {
	at := t.place[r]
	if at < 0 {
		return
	}
	last := len(t.order) - 1
	moved := t.order[last]
	t.order[at], t.place[moved] = moved, at
	t.order, t.place[r] = t.order[:last], -1
	if int(at) < last {
		t.fix(v, int(moved))
	}
}

// heapify puts all in order after many changed.
func (t *ranking) heapify(v *view) {
	for at := len(t.order)/2 - 1; at >= 0; at-- {
		t.down(v, at)
	}
}

func (t *ranking) fix(v *view, r int) {
	if at := t.place[r]; at >= 0 {
		t.up(v, int(at))
		t.down(v, int(t.place[r]))
	}
}

func (t *ranking) up(v *view, at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if v.Compare(int(t.order[at]), int(t.order[parent])) > 0 {
			return
		}
		t.swap(at, parent)
		at = parent
	}
}

func (t *ranking) down(v *view, at int) {
	for {
		child := 2*at + 1
		if child >= len(t.order) {
			return
		}
		if right := child + 1; right < len(t.order) && v.Compare(int(t.order[right]), int(t.order[child])) < 0 {
			child = right
		}
		if v.Compare(int(t.order[child]), int(t.order[at])) > 0 {
			return
		}
		t.swap(at, child)
		at = child
	}
}

func (t *ranking) swap(a, b int) {
	t.order[a], t.order[b] = t.order[b], t.order[a]
	t.place[t.order[a]], t.place[t.order[b]] = int32(a), int32(b)
}
