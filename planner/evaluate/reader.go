package evaluate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// reader takes a history apart. Its first mistake stays; whatever is read after it is empty. Every count is held against
// the bytes that are left before anything is made of that size.
type reader struct {
	rest []byte
	err  error
}

var errShort = errors.New("it ends too early")

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

func (r *reader) magic() {
	if !strings.HasPrefix(string(r.rest[:min(len(r.rest), len(magic))]), magic) {
		r.fail(errors.New("it is no history, or of another version"))
		return
	}
	r.rest = r.rest[len(magic):]
}

// number reads a count or index of at most limit.
func (r *reader) number(what string, limit int) int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail(errShort)
		return 0
	}
	if n > uint64(limit) {
		r.fail(fmt.Errorf("%s is %d, and at most %d", what, n, limit))
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

// count reads how many things follow, of so many bytes each at least.
func (r *reader) count(what string, limit, least int) int {
	n := r.number(what, limit)
	if n > len(r.rest)/least {
		r.fail(errShort)
		return 0
	}
	return n
}

func (r *reader) bytes(n int) string {
	if n > len(r.rest) {
		r.fail(errShort)
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) text() string { return r.bytes(r.number("the length of a text", maxTextLength)) }

// names are in ascending order without doubles, as each is written by what it shares with the one before.
func (r *reader) names() []string {
	names := make([]string, r.count("the number of clusters", maxNames, 2))
	before := ""
	for i := range names {
		prefix := r.number("what a name shares with the one before", len(before))
		name := before[:prefix] + r.bytes(r.number("the length of a name", maxNameLength-prefix))
		if r.err == nil && i > 0 && name <= before {
			r.fail(fmt.Errorf("cluster %q follows %q", name, before))
		}
		if r.err != nil {
			return nil
		}
		names[i], before = name, name
	}
	return names
}

func (r *reader) keys() []string {
	keys := make([]string, r.count("the number of keys", maxKeys, 1))
	for i := range keys {
		keys[i] = r.text()
		if r.err == nil && i > 0 && keys[i] <= keys[i-1] {
			r.fail(fmt.Errorf("key %q follows %q", keys[i], keys[i-1]))
		}
		if r.err != nil {
			return nil
		}
	}
	return keys
}

func (r *reader) key(keys []string) (at int, key string) {
	if len(keys) == 0 {
		r.fail(errors.New("it has no keys"))
		return 0, ""
	}
	at = r.number("a key's number", len(keys)-1)
	return at, keys[at]
}

func (r *reader) ballots(keys []string) []Ballot {
	n := r.count("the number of ballots", maxBallots, 3)
	if n == 0 {
		return nil
	}
	ballots := make([]Ballot, n)
	var seconds int64
	for i := range ballots {
		_, key := r.key(keys)
		since, size := binary.Varint(r.rest)
		if size <= 0 {
			r.fail(errShort)
			return nil
		}
		r.rest = r.rest[size:]
		seconds += since
		at := time.Unix(seconds, int64(r.number("a nanosecond", int(time.Second)-1))).UTC()
		if y := at.Year(); r.err == nil && !hasForm(y) {
			r.fail(fmt.Errorf("a ballot is of the year %d", y))
		}
		if r.err != nil {
			return nil
		}
		ballots[i] = Ballot{At: at, Key: key}
	}
	return ballots
}

// hasForm: RFC 3339, and with it JSON, knows no other years.
func hasForm(year int) bool { return year >= 0 && year <= 9999 }

func (r *reader) candidates(keys, names []string) map[string]Candidate {
	n := r.count("the number of candidates", len(keys), 2+len(names))
	if n*len(names) > maxAssignments {
		r.fail(fmt.Errorf("%d candidates of %d clusters are more than %d assignments", n, len(names), maxAssignments))
	}
	if n == 0 || r.err != nil {
		return nil
	}
	candidates := make(map[string]Candidate, n)
	before := -1
	for range n {
		at, key := r.key(keys)
		if r.err == nil && at <= before {
			r.fail(fmt.Errorf("candidate %q is out of order", key))
		}
		c := r.candidate(names)
		if r.err != nil {
			return nil
		}
		candidates[key], before = c, at
	}
	return candidates
}

func (r *reader) candidate(names []string) Candidate {
	c := Candidate{Replicas: r.number("the number of replicas", maxReplicas), Of: make(map[string]int, len(names))}
	for _, name := range names {
		if replica := r.number("a replica", c.Replicas); replica > 0 {
			c.Of[name] = replica - 1
		}
		if r.err != nil {
			return Candidate{}
		}
	}
	return c
}
