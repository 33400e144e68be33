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
)

const (
	// keptPlans is how far back a person can go.
	keptPlans = 10
	// historyEvery is how often the history is written while nothing is decided: what is lost with a leader is at most
	// this much of a vote and of last good values.
	historyEvery = 5 * time.Minute
	// maxHistory bounds the ConfigMap as the plan's is bounded.
	maxHistory = plan.MaxBytes

	planPrefix, planSuffix = "plan.", ".json.gz"
	keySavedAt             = "savedAt"
)

// Record is a plan as it was written, with its revision and what stood beside it.
type Record struct {
	Revision int64  `json:"revision"`
	Text     string `json:"text"`
	Meta     Meta   `json:"meta"`
}

// History is what outlives a leader: the last plans, newest first, and the memory between cycles in named parts whose
// content is the planner's. Each plan and each part has a key of its own, so that one that breaks takes no other with
// it. Dropped is what had no room when it was written. Asked is the revision that a person wants to go back to, 0 for none:
// it stays until they are there, however many plans that takes. It is not written.
type History struct {
	Plans   []Record
	Parts   map[string][]byte
	SavedAt time.Time
	Dropped Dropped
	Asked   int64
	floor   int64 // the highest revision that a key names, whether or not its plan can be read
	object  *corev1.ConfigMap
}

// Dropped names what did not fit: the oldest plans go first, then the largest parts, which are made anew in time.
type Dropped struct {
	Plans []int64
	Parts []string
}

// LastPlan is the newest plan that can be read, nil without one.
func (h History) LastPlan() *plan.Plan {
	for _, r := range h.Plans {
		if p, err := plan.Decode(r.Text); err == nil {
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

// WithPlan adds a written plan to the others and drops the eleventh, the oldest that nobody asked for.
func (h History) WithPlan(s Snapshot) History {
	if s.Document.Plan == nil || s.object == nil {
		return h
	}
	r := Record{Revision: s.Document.Plan.Revision, Text: s.object.Data[plan.KeyPlan], Meta: s.Meta}
	h.Plans = h.kept(append(slices.Clone(h.Plans), r))
	return h
}

// kept bounds plans, newest first. One at rest that enforces what its predecessor did goes: it is no other state to go back to.
func (h History) kept(records []Record) []Record {
	records = newestFirst(records)
	if len(records) > 2 && records[1].Revision != h.Asked && records[1].same(records[2]) {
		records = slices.Delete(records, 1, 2)
	}
	for len(records) > keptPlans {
		last := len(records) - 1
		if records[last].Revision == h.Asked {
			last--
		}
		records = slices.Delete(records, last, last+1)
	}
	return records
}

// same reports whether two plans enforce the same, as far as both can be read.
func (r Record) same(other Record) bool {
	a, err := plan.Decode(r.Text)
	if err != nil {
		return false
	}
	b, err := plan.Decode(other.Text)
	return err == nil && a.SameEnforced(b)
}

// Over is the history to write over one that somebody else left meanwhile: its plans beside one's own.
func (h History) Over(current History) History {
	current.Plans = h.kept(slices.Concat(current.Plans, h.Plans))
	current.Parts, current.floor, current.Asked = h.Parts, max(h.floor, current.floor), h.Asked
	return current
}

// newestFirst sorts plans; of two with one revision the later one in the list counts. Beside the newest one only
// those at rest are kept: a rollout writes a plan a stage and a wave, and nobody goes back into the middle of one.
func newestFirst(records []Record) []Record {
	slices.Reverse(records)
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(b.Revision, a.Revision) })
	records = slices.CompactFunc(records, func(a, b Record) bool { return a.Revision == b.Revision })
	if len(records) > 0 {
		atRest := slices.DeleteFunc(slices.Clone(records[1:]), func(r Record) bool { return strings.Contains(r.Text, "\nrollout:\n") })
		records = append(records[:1:1], atRest...)
	}
	return records
}

// Due reports whether the history is to be written: after a decision at once, otherwise every five minutes. A clock that
// went back makes it due, since nobody can say how long ago the last time was.
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

// Overtaken reports whether another history stands than the one that was read or written last: somebody deleted it, or wrote it.
func (s *Store) Overtaken(ctx context.Context, h History) (bool, error) {
	if h.object == nil {
		return false, nil
	}
	var stands metav1.PartialObjectMetadata
	stands.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.History}, &stands)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at ConfigMap %q in %q: %w", s.History, s.Namespace, err)
	}
	return stands.ResourceVersion != h.object.ResourceVersion, nil
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
		return h, err
	}
	h.Plans = slices.DeleteFunc(slices.Clone(h.Plans), func(r Record) bool { return slices.Contains(dropped.Plans, r.Revision) })
	h.SavedAt, h.Dropped, h.object = now.UTC().Truncate(time.Second), dropped, cm
	return h, nil
}
