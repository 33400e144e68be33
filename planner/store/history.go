package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
	"ballast/planner/store/history"
)

// History is the history ConfigMap as it was read, or written last.
type History struct {
	history.Content
	object *corev1.ConfigMap
	tried  *corev1.ConfigMap // what a write would have stored whose end nobody knows
}

// Immutable reports whether somebody made the ConfigMap immutable.
func (h History) Immutable() bool { return immutable(h.object) }

// WithPlan adds a written plan to the others.
func (h History) WithPlan(s Snapshot) History {
	if s.Document.Plan == nil || s.object == nil {
		return h
	}
	h.Content = h.With(history.Record{Revision: s.Document.Plan.Revision, Text: s.object.Data[plan.KeyPlan],
		Meta: s.Meta})
	return h
}

// Over is the history to write over one that somebody else left meanwhile.
func (h History) Over(current History) History {
	current.Content = h.Content.Over(current.Content)
	return current
}

// ReadHistory reads the history ConfigMap. What of it cannot be read is left out and reported; the rest serves.
func (s *Store) ReadHistory(ctx context.Context) (History, []string, error) {
	cm, err := s.get(ctx, s.History)
	if err != nil || cm == nil {
		return History{}, nil, err
	}
	own, foreign := s.own(cm.BinaryData)
	content, problems := history.Decode(own)
	h := History{Content: content, object: cm}
	problems = append(foreign, problems...)
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

// Overtaken reports whether another object stands than the one that was read or written last, and whether that is
// somebody else's doing: they deleted it, or what it says is neither what was known nor what an own write would have
// stored whose answer was lost.
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
	data, dropped, err := h.Encode()
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
	h.Plans = slices.DeleteFunc(slices.Clone(h.Plans), func(r history.Record) bool { return slices.Contains(dropped.Plans, r.Revision) })
	h.SavedAt, h.Dropped, h.object, h.tried = now.UTC().Truncate(time.Second), dropped, cm, nil
	return h, nil
}

// IsHistory reports whether a ConfigMap is a history: it says when it was saved, or has the words of people.
func IsHistory(cm *corev1.ConfigMap) bool {
	_, saved := cm.Data[keySavedAt]
	_, words := cm.BinaryData[PartWords]
	return saved || words
}
