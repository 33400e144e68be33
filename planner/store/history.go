package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// maxPart bounds what one part unpacks to; ten plans of 900 KiB are the largest there is.
	maxPart = 16 << 20

	keyPlans   = "plans.json.gz"
	keySavedAt = "savedAt"
)

// Record is a plan as it was written, with its revision and what stood beside it.
type Record struct {
	Revision int64  `json:"revision"`
	Text     string `json:"text"`
	Meta     Meta   `json:"meta"`
}

// History is what outlives a leader: the last plans, newest first, and the memory between cycles in named parts whose
// content is the planner's.
type History struct {
	Plans   []Record
	Parts   map[string][]byte
	SavedAt time.Time
	object  *corev1.ConfigMap
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
	var floor int64
	for _, r := range h.Plans {
		floor = max(floor, r.Revision)
	}
	return floor
}

// WithPlan puts a written plan in front of the others and drops the eleventh.
func (h History) WithPlan(s Snapshot) History {
	if s.Document.Plan == nil || s.object == nil {
		return h
	}
	r := Record{Revision: s.Document.Plan.Revision, Text: s.object.Data[plan.KeyPlan], Meta: s.Meta}
	h.Plans = slices.DeleteFunc(slices.Clone(h.Plans), func(o Record) bool { return o.Revision == r.Revision })
	h.Plans = slices.Insert(h.Plans, 0, r)
	h.Plans = h.Plans[:min(len(h.Plans), keptPlans)]
	return h
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
	h := History{Parts: maps.Clone(cm.BinaryData), object: cm}
	delete(h.Parts, keyPlans)
	var problems []string
	if h.SavedAt, err = time.Parse(time.RFC3339, cm.Data[keySavedAt]); err != nil {
		problems = append(problems, "when it was saved is not a time")
	}
	if packed, ok := cm.BinaryData[keyPlans]; ok {
		if h.Plans, err = unpackPlans(packed); err != nil {
			problems = append(problems, fmt.Sprintf("the last plans: %v", err))
		}
	}
	return h, problems, nil
}

// WriteHistory writes the history over the one it was read from. What does not fit is left out, the oldest plans first;
// the newest plan always fits, for it fits its own ConfigMap.
func (s *Store) WriteHistory(ctx context.Context, h History, now time.Time) (History, error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.History, Labels: labels()}}
	if h.object != nil {
		cm = h.object.DeepCopy()
	}
	packed, plans, err := fitPlans(h)
	if err != nil {
		return h, err
	}
	cm.Data = map[string]string{keySavedAt: now.UTC().Format(time.RFC3339)}
	cm.BinaryData = maps.Clone(h.Parts)
	if cm.BinaryData == nil {
		cm.BinaryData = map[string][]byte{}
	}
	cm.BinaryData[keyPlans] = packed
	if err := s.put(ctx, cm, h.object != nil); err != nil {
		return h, err
	}
	h.Plans, h.SavedAt, h.object = plans, now.UTC().Truncate(time.Second), cm
	return h, nil
}

// fitPlans packs as many of the last plans as there is room for beside the parts.
func fitPlans(h History) ([]byte, []Record, error) {
	room := maxHistory
	for _, part := range h.Parts {
		room -= len(part)
	}
	for n := len(h.Plans); ; n-- {
		packed, err := packPlans(h.Plans[:n])
		if err != nil {
			return nil, nil, err
		}
		if len(packed) <= room || n <= 1 {
			return packed, h.Plans[:n], nil
		}
	}
}

func packPlans(records []Record) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := json.NewEncoder(w).Encode(records); err != nil {
		return nil, fmt.Errorf("packing %d plans: %w", len(records), err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing %d plans: %w", len(records), err)
	}
	return b.Bytes(), nil
}

func unpackPlans(packed []byte) ([]Record, error) {
	data, err := Unpack(packed)
	if err != nil {
		return nil, err
	}
	var records []Record
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("unpacking plans: %w", err)
	}
	if len(records) > keptPlans {
		records = records[:keptPlans]
	}
	return records, nil
}

// Pack compresses a part.
func Pack(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("packing a part of the history: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing a part of the history: %w", err)
	}
	return b.Bytes(), nil
}

// Unpack reverses Pack, up to a bound: a few bytes must not become gigabytes.
func Unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxPart+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if len(data) > maxPart {
		return nil, fmt.Errorf("unpacking: it is larger than %d MiB", maxPart>>20)
	}
	return data, nil
}
