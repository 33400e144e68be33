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

const keySavedAt = "savedAt"

// History is the history ConfigMap as it was read, or written last.
type History struct {
	history.Content
	object *corev1.ConfigMap
}

// Immutable reports whether somebody made the ConfigMap immutable.
func (h History) Immutable() bool { return immutable(h.object) }

// WithPlan adds a written plan to the others.
func (h History) WithPlan(s Snapshot) History {
	if s.Document.Plan == nil || s.object == nil {
		return h
	}
	h.Content = h.With(history.Record{Revision: s.Document.Plan.Revision, Text: s.object.Data[plan.KeyPlan], Meta: s.Meta})
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

// Overtaken reports whether another history stands than the one that was read or written last: somebody deleted it, or
// wrote it.
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
		return h, err
	}
	h.Plans = slices.DeleteFunc(slices.Clone(h.Plans), func(r history.Record) bool { return slices.Contains(dropped.Plans, r.Revision) })
	h.SavedAt, h.Dropped, h.object = now.UTC().Truncate(time.Second), dropped, cm
	return h, nil
}

// IsHistory reports whether a ConfigMap is a history: it says when it was saved, or has the words of people.
func IsHistory(cm *corev1.ConfigMap) bool {
	_, saved := cm.Data[keySavedAt]
	_, words := cm.BinaryData[PartWords]
	return saved || words
}
