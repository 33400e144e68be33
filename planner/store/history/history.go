// Package history is what outlives a leader: earlier plans and the parts of its memory, which of them are kept, and
// their bytes.
package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
)

const (
	// keptPlans is how many plans a person can choose from to go back to.
	keptPlans = 10
	// lasts is how long a plan must have been the last one for it to be a state of the fleet that people knew, and
	// longAgo how old one of those is that stays beside the newest of them: a fault that nobody saw at once is as old.
	lasts, longAgo = time.Hour, 24 * time.Hour
	// historyEvery is how often the history is written while nothing is decided: what is lost with a leader is at most
	// this much of a vote and of last good values.
	historyEvery = 5 * time.Minute
	// maxHistory bounds the ConfigMap as the plan's is bounded.
	maxHistory = codec.MaxBytes

	planPrefix, planSuffix = "plan.", ".json.gz"
)

// Record is a plan as it was written, with its revision and what stood beside it. Until is when the next one took its
// place.
type Record struct {
	Revision int64          `json:"revision"`
	Text     string         `json:"text"`
	Meta     configmap.Meta `json:"meta"`
	Until    time.Time      `json:"until,omitzero"`
}

// stood is for how long it was the last plan. One without a time, or by a clock that went back, is as if it never was.
func (r Record) stood() time.Duration {
	if r.Meta.DecidedAt.IsZero() || r.Until.IsZero() {
		return 0
	}
	return max(r.Until.Sub(r.Meta.DecidedAt), 0)
}

// Content is what outlives a leader: the last plans, newest first, and the memory between cycles in named parts whose
// content is the planner's. Each plan and each part has a key of its own, so that one that breaks takes no other with
// it. Dropped is what had no room when it was written. Asked is the revision that a person wants to go back to, 0 for
// none: it stays until they are there, however many plans that takes. Anew names the parts that the planner works out
// again by itself where they are missing. Neither of the two is written.
type Content struct {
	Plans   []Record
	Parts   map[string][]byte
	SavedAt time.Time
	Dropped Dropped
	Asked   int64
	Anew    []string
	floor   int64 // the highest revision that a key names, whether or not its plan can be read
}

// Dropped names what did not fit, in the order in which it went.
type Dropped struct {
	Plans []int64
	Parts []string
}

// LastPlan is the newest plan that can be read, nil without one.
func (c Content) LastPlan() *plan.Plan {
	for _, r := range c.Plans {
		if p, err := codec.Decode(r.Text); err == nil {
			return &p
		}
	}
	return nil
}

// Floor is the highest revision the history knows.
func (c Content) Floor() int64 {
	floor := c.floor
	for _, r := range c.Plans {
		floor = max(floor, r.Revision)
	}
	return floor
}

// With adds a written plan to the others and drops the eleventh.
func (c Content) With(r Record) Content {
	c.Plans = c.kept(append(slices.Clone(c.Plans), r))
	return c
}

// kept bounds plans, newest first. One at rest that enforces what its predecessor did goes: it is no other state to go
// back to. Of the others the oldest goes that is none to stay.
func (c Content) kept(records []Record) []Record {
	records = newestFirst(records)
	if len(records) > 2 && records[1].Revision != c.Asked && records[1].same(records[2]) {
		records[2].Until = records[1].Until
		records = slices.Delete(records, 1, 2)
	}
	stay := c.staying(records)
	for last := len(records) - 1; len(records) > keptPlans && last > 0; last-- {
		if !slices.Contains(stay, records[last].Revision) {
			records = slices.Delete(records, last, last+1)
		}
	}
	return records
}

// staying are the revisions that no newer plan may push out, of plans that are newest first: the one in force, the one
// that a person asked for, the last that stood for an hour (else the one that stood longest), and the last of those
// that is a day old (else the oldest of them). Whoever changes their own pin ten times in a minute must leave people
// something to go back to.
func (c Content) staying(records []Record) []int64 {
	if len(records) == 0 {
		return nil
	}
	stay := []int64{records[0].Revision, c.Asked}
	newest, longest := records[0].Meta.DecidedAt, Record{}
	var lasting []Record
	for _, r := range records[1:] {
		if r.stood() > longest.stood() {
			longest = r
		}
		if r.stood() >= lasts {
			lasting = append(lasting, r)
		}
	}
	if len(lasting) == 0 {
		return append(stay, longest.Revision)
	}
	old := slices.IndexFunc(lasting, func(r Record) bool { return newest.Sub(r.Meta.DecidedAt) >= longAgo })
	if old < 0 {
		old = len(lasting) - 1
	}
	return append(stay, lasting[0].Revision, lasting[old].Revision)
}

// same reports whether two plans enforce the same, as far as both can be read.
func (r Record) same(other Record) bool {
	a, err := codec.Decode(r.Text)
	if err != nil {
		return false
	}
	b, err := codec.Decode(other.Text)
	return err == nil && a.SameEnforced(b)
}

// Over is what to write over a history that somebody else left meanwhile: its plans beside one's own.
func (c Content) Over(current Content) Content {
	current.Plans = c.kept(slices.Concat(current.Plans, c.Plans))
	current.Parts, current.floor, current.Asked, current.Anew = c.Parts, max(c.floor, current.floor), c.Asked, c.Anew
	return current
}

// newestFirst sorts plans; of two with one revision the later one in the list counts. Beside the newest one only
// those at rest are kept: a rollout writes a plan a stage and a wave, and nobody goes back into the middle of one.
func newestFirst(records []Record) []Record {
	slices.Reverse(records)
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(b.Revision, a.Revision) })
	records = slices.CompactFunc(records, func(a, b Record) bool { return a.Revision == b.Revision })
	for i := range records {
		if i > 0 && records[i].Until.IsZero() {
			records[i].Until = records[i-1].Meta.DecidedAt
		}
	}
	if len(records) > 0 {
		atRest := slices.DeleteFunc(slices.Clone(records[1:]), func(r Record) bool { return strings.Contains(r.Text, "\nrollout:\n") })
		records = append(records[:1:1], atRest...)
	}
	return records
}

// Due reports whether the history is to be written: after a decision at once, otherwise every five minutes. A clock
// that went back makes it due, since nobody can say how long ago the last time was.
func Due(saved, now time.Time, decided bool) bool {
	since := now.Sub(saved)
	return decided || since >= historyEvery || since < 0
}
