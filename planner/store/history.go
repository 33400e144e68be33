package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
)

const (
	// keptPlans is how many plans a person can choose from to go back to.
	keptPlans = 10
	// lasts is how long a plan must have been the last one for it to be a state of the fleet that people knew, and longAgo
	// how old one of those is that stays beside the newest of them: a fault that nobody saw at once is as old.
	lasts, longAgo = time.Hour, 24 * time.Hour
	// historyEvery is how often the history is written while nothing is decided: what is lost with a leader is at most
	// this much of a vote and of last good values.
	historyEvery = 5 * time.Minute
	// maxHistory bounds the ConfigMap as the plan's is bounded.
	maxHistory = codec.MaxBytes

	planPrefix, planSuffix = "plan.", ".json.gz"
	keySavedAt             = "savedAt"
)

// Record is a plan as it was written, with its revision and what stood beside it. Until is when the next one took its
// place.
type Record struct {
	Revision int64     `json:"revision"`
	Text     string    `json:"text"`
	Meta     Meta      `json:"meta"`
	Until    time.Time `json:"until,omitzero"`
}

// stood is for how long it was the last plan. One without a time, or by a clock that went back, is as if it never was.
func (r Record) stood() time.Duration {
	if r.Meta.DecidedAt.IsZero() || r.Until.IsZero() {
		return 0
	}
	return max(r.Until.Sub(r.Meta.DecidedAt), 0)
}

// History is what outlives a leader: the last plans, newest first, and the memory between cycles in named parts whose
// content is the planner's. Each plan and each part has a key of its own, so that one that breaks takes no other with
// it. Dropped is what had no room when it was written. Asked is the revision that a person wants to go back to, 0 for
// none: it stays until they are there, however many plans that takes. Anew names the parts that the planner works out
// again by itself where they are missing. Neither of the two is written.
type History struct {
	Plans   []Record
	Parts   map[string][]byte
	SavedAt time.Time
	Dropped Dropped
	Asked   int64
	Anew    []string
	floor   int64 // the highest revision that a key names, whether or not its plan can be read
	object  *corev1.ConfigMap
	tried   *corev1.ConfigMap // what a write would have stored whose end nobody knows
}

// Dropped names what did not fit, in the order in which it went.
type Dropped struct {
	Plans []int64
	Parts []string
}

// LastPlan is the newest plan that can be read, nil without one.
func (h History) LastPlan() *plan.Plan {
	for _, r := range h.Plans {
		if p, err := codec.Decode(r.Text); err == nil {
			return &p
		}
	}
	return nil
}

// Floor is the highest revision the history knows.
func (h History) Floor() int64 {
	floor := h.floor
	for _, r := range h.Plans {
		floor = max(floor, r.Revision)
	}
	return floor
}

// WithPlan adds a written plan to the others and drops the eleventh.
func (h History) WithPlan(s Snapshot) History {
	if s.Document.Plan == nil || s.object == nil {
		return h
	}
	r := Record{Revision: s.Document.Plan.Revision, Text: s.object.Data[plan.KeyPlan], Meta: s.Meta}
	h.Plans = h.kept(append(slices.Clone(h.Plans), r))
	return h
}

// kept bounds plans, newest first. One at rest that enforces what its predecessor did goes: it is no other state to go
// back to. Of the others the oldest goes that is none to stay.
func (h History) kept(records []Record) []Record {
	records = newestFirst(records)
	if len(records) > 2 && records[1].Revision != h.Asked && records[1].same(records[2]) {
		records[2].Until = records[1].Until
		records = slices.Delete(records, 1, 2)
	}
	stay := h.staying(records)
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
func (h History) staying(records []Record) []int64 {
	if len(records) == 0 {
		return nil
	}
	stay := []int64{records[0].Revision, h.Asked}
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

// Over is the history to write over one that somebody else left meanwhile: its plans beside one's own.
func (h History) Over(current History) History {
	current.Plans = h.kept(slices.Concat(current.Plans, h.Plans))
	current.Parts, current.floor, current.Asked, current.Anew = h.Parts, max(h.floor, current.floor), h.Asked, h.Anew
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

// ReadHistory reads the history ConfigMap. What of it cannot be read is left out and reported; the rest serves.
func (s *Store) ReadHistory(ctx context.Context) (History, []string, error) {
	cm, err := s.get(ctx, s.History)
	if err != nil || cm == nil {
		return History{}, nil, err
	}
	own, foreign := s.own(cm.BinaryData)
	h, problems := decodeHistory(own)
	h.object, problems = cm, append(foreign, problems...)
	if h.SavedAt, err = time.Parse(time.RFC3339, cm.Data[keySavedAt]); err != nil {
		problems = append(problems, "when it was saved is not a time")
	}
	return h, problems, nil
}

// Tried is the history as it was, with what a write that failed may have stored all the same.
func (h History) Tried(failed History) History {
	h.tried = failed.tried
	return h
}

// Overtaken reports whether another object stands than the one that was read or written last, and whether that is somebody else's doing:
// they deleted it, or what it says is neither what was known nor what an own write would have stored whose answer was lost.
func (s *Store) Overtaken(ctx context.Context, h History) (overtaken, byOthers bool, err error) {
	if h.object == nil {
		return false, false, nil
	}
	var stands metav1.PartialObjectMetadata
	stands.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err = s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.History}, &stands)
	if apierrors.IsNotFound(err) {
		return true, true, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("looking at ConfigMap %q in %q: %w", s.History, s.Namespace, err)
	}
	if stands.ResourceVersion == h.object.ResourceVersion {
		return false, false, nil
	}
	now, err := s.get(ctx, s.History)
	if err != nil {
		return false, false, err
	}
	if now == nil { // deleted since
		return true, true, nil
	}
	own := slices.ContainsFunc([]*corev1.ConfigMap{h.object, h.tried}, func(cm *corev1.ConfigMap) bool {
		return cm != nil && s.alike(cm, now)
	})
	return true, !own, nil
}

// WriteHistory writes the history over the one it was read from: the keys that differ, and away with those that are not
// its any more. What does not fit is left out and named.
func (s *Store) WriteHistory(ctx context.Context, h History, now time.Time) (History, error) {
	data, dropped, err := encodeHistory(h)
	if err == nil {
		err = s.vouchAll(data)
	}
	if err != nil {
		return h, err
	}
	saved := now.UTC().Format(time.RFC3339)
	c := change{Data: map[string]*string{keySavedAt: &saved}, BinaryData: map[string]*[]byte{}}
	var stored map[string][]byte
	if h.object != nil {
		stored = h.object.BinaryData
		for key := range h.object.Data { // whoever made it first: a key stands in data or in binaryData, and takes room
			if key != keySavedAt {
				c.Data[key] = nil
			}
		}
	}
	for key, content := range data {
		if old, ok := stored[key]; !ok || !bytes.Equal(old, content) {
			c.BinaryData[key] = &content
		}
	}
	for key := range stored {
		if _, stays := data[key]; !stays {
			c.BinaryData[key] = nil
		}
	}
	cm, err := s.put(ctx, s.History, h.object, c)
	if err != nil {
		if o := h.object; o != nil {
			h.tried = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID}, Immutable: o.Immutable,
				Data: map[string]string{keySavedAt: saved}, BinaryData: data}
		}
		return h, err
	}
	h.Plans = slices.DeleteFunc(slices.Clone(h.Plans), func(r Record) bool { return slices.Contains(dropped.Plans, r.Revision) })
	h.SavedAt, h.Dropped, h.object, h.tried = now.UTC().Truncate(time.Second), dropped, cm, nil
	return h, nil
}

// IsHistory reports whether a ConfigMap is a history: it says when it was saved, or has the words of people.
func IsHistory(cm *corev1.ConfigMap) bool {
	_, saved := cm.Data[keySavedAt]
	_, words := cm.BinaryData[PartWords]
	return saved || words
}
