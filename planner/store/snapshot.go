package store

import (
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ballast/planner/plan"
	"ballast/planner/plan/codec"
	"ballast/planner/plan/configmap"
)

// Snapshot is the plan ConfigMap at one moment. The zero value is one that does not exist.
type Snapshot struct {
	Document configmap.Document
	Meta     configmap.Meta // of the plan, as its annotations say
	object   *corev1.ConfigMap
	words    *words // to put back where there is no object
}

// Exists reports whether there is a plan ConfigMap, with or without a plan.
func (s Snapshot) Exists() bool { return s.object != nil }

// ConfigMap is the plan ConfigMap as it was read or written; nil where there is none. It is not to be changed.
func (s Snapshot) ConfigMap() *corev1.ConfigMap { return s.object }

// Immutable reports whether somebody made the plan ConfigMap immutable.
func (s Snapshot) Immutable() bool { return immutable(s.object) }

// Blocked is what the annotation says that waits.
func (s Snapshot) Blocked() string {
	if s.object == nil {
		return ""
	}
	return s.object.Annotations[plan.AnnotationBlocked]
}

// Claimed is what the ConfigMap says of itself, whoever wrote it.
func (s Snapshot) Claimed() configmap.Document {
	if s.object == nil {
		return configmap.Document{}
	}
	return configmap.Parse(s.object.Data, s.object.Annotations)
}

// maxJump is how far a number that nobody vouches for may carry the revisions on: past those of a history that was
// lost, and far from their end however often somebody forges one.
const maxJump = 1_000_000

// newest is the highest revision that the snapshot shows, or floor. Where the plan was deleted or cannot be believed,
// its text and its annotation may still know.
func (s Snapshot) newest(floor int64) int64 {
	newest := min(max(floor, 0), plan.MaxRevision)
	if s.object == nil {
		return newest
	}
	if p := s.Document.Plan; p != nil {
		return max(newest, p.Revision)
	}
	most := newest + maxJump
	if p, err := codec.Decode(s.object.Data[plan.KeyPlan]); err == nil && p.Revision <= most {
		newest = max(newest, p.Revision)
	}
	annotated, err := strconv.ParseInt(s.object.Annotations[plan.AnnotationRevision], 10, 64)
	if err == nil && annotated <= most {
		newest = max(newest, annotated)
	}
	return newest
}

// Restores reports whether what people had written is to be put back.
func (s Snapshot) Restores() bool { return s.words != nil }

// WithWords is a plan ConfigMap that somebody deleted, as it is to be made anew: with what people had written there.
func (s Snapshot) WithWords(part []byte) (Snapshot, error) {
	if s.Exists() || len(part) == 0 {
		return s, nil
	}
	var w words
	if err := wordBounds().UnpackJSON(part, &w); err != nil {
		return s, err
	}
	maps.DeleteFunc(w.Annotations, func(name, _ string) bool { return !slices.Contains(lastingWords(), name) })
	if w.Pins == "" && len(w.Annotations) == 0 {
		return s, nil
	}
	s.words = &w
	s.Document = configmap.Parse(w.data(), w.Annotations)
	return s, nil
}

func (s *Store) snapshotOf(cm *corev1.ConfigMap) Snapshot {
	at, _ := time.Parse(time.RFC3339, cm.Annotations[plan.AnnotationDecidedAt]) // for display only
	return Snapshot{
		Document: s.Judge(cm),
		Meta: configmap.Meta{DecidedAt: at, DecidedBy: cm.Annotations[plan.AnnotationDecidedBy],
			Reason: cm.Annotations[plan.AnnotationReason]},
		object: cm,
	}
}
