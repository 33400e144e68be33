package evaluate

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// writer keeps the first limit that was passed, as the reader keeps its first mistake.
type writer struct {
	buf []byte
	err error
}

func (w *writer) raw(s string) { w.buf = append(w.buf, s...) }

func (w *writer) number(n int) { w.buf = binary.AppendUvarint(w.buf, uint64(n)) }

func (w *writer) signed(n int64) { w.buf = binary.AppendVarint(w.buf, n) }

func (w *writer) text(s string) {
	if len(s) > maxTextLength && w.err == nil {
		w.err = fmt.Errorf("%.20q... has %d bytes, and a basis or key has at most %d", s, len(s), maxTextLength)
	}
	w.number(len(s))
	w.raw(s)
}

func (w *writer) names(names []string) {
	w.number(len(names))
	before := ""
	for _, name := range names {
		if len(name) > maxNameLength && w.err == nil {
			w.err = fmt.Errorf("cluster %.20q... has %d bytes, and a Secret's name has at most %d", name, len(name), maxNameLength)
		}
		n := shared(before, name)
		w.number(n)
		w.number(len(name) - n)
		w.raw(name[n:])
		before = name
	}
}

// shared is how many bytes two names begin with together.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func (w *writer) ballots(ballots []Ballot, keys []string) {
	w.number(len(ballots))
	var before int64
	for _, b := range ballots {
		if y := b.At.UTC().Year(); !hasForm(y) && w.err == nil {
			w.err = fmt.Errorf("a ballot is of the year %d", y)
		}
		at, _ := slices.BinarySearch(keys, b.Key)
		w.number(at)
		w.signed(b.At.Unix() - before)
		w.number(b.At.Nanosecond())
		before = b.At.Unix()
	}
}

func (w *writer) candidates(candidates map[string]Candidate, keys, names []string) error {
	w.number(len(candidates))
	for at, key := range keys {
		c, kept := candidates[key]
		if !kept {
			continue
		}
		if c.Replicas < 0 || c.Replicas > maxReplicas {
			return fmt.Errorf("candidate %q has %d replicas, and 0 to %d can be kept", key, c.Replicas, maxReplicas)
		}
		w.number(at)
		w.number(c.Replicas)
		for _, name := range names {
			r, has := c.Of[name]
			if !has {
				w.number(0)
				continue
			}
			if r < 0 || r >= c.Replicas {
				return fmt.Errorf("candidate %q puts cluster %q on replica %d of %d", key, name, r, c.Replicas)
			}
			w.number(1 + r)
		}
	}
	return nil
}

// check refuses what the reader would.
func (w *writer) check(h History, names, keys int) error {
	candidates := len(h.Candidates)
	switch {
	case w.err != nil:
		return w.err
	case names > maxNames:
		return fmt.Errorf("it names %d clusters, and at most %d can be kept", names, maxNames)
	case names*candidates > maxAssignments:
		return fmt.Errorf("%d candidates of %d clusters are more than %d assignments: lower maxAssignments", candidates, names, maxAssignments)
	case len(h.Ballots) > maxBallots || keys > maxKeys:
		return fmt.Errorf("it has %d ballots and %d keys, and at most %d and %d can be kept", len(h.Ballots), keys, maxBallots, maxKeys)
	case len(w.buf) > maxDecoded:
		return fmt.Errorf("it has %d bytes before packing, and at most %d can be kept: lower maxAssignments", len(w.buf), maxDecoded)
	}
	return nil
}
