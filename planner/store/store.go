// Package store keeps the plan and its history in two ConfigMaps. It is the planner's only writer of state: optimistic
// about concurrency (a lost race is read again, never overwritten), and silent about what does not change.
package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/plan"
)

// ErrConflict says that somebody else wrote the ConfigMap since it was read: read it again and decide anew.
var ErrConflict = errors.New("the ConfigMap was written by somebody else meanwhile")

// Options say where the ConfigMaps are. Reader reads past any cache.
type Options struct {
	Client    client.Client
	Reader    client.Reader
	Namespace string
	Plan      string
	History   string
}

// Store reads and writes the plan and its history.
type Store struct{ Options }

// New makes a Store.
func New(o Options) *Store { return &Store{Options: o} }

// Snapshot is the plan ConfigMap at one moment. The zero value is one that does not exist.
type Snapshot struct {
	Document plan.Document
	Meta     Meta // of the plan, as its annotations say
	object   *corev1.ConfigMap
}

// Exists reports whether there is a plan ConfigMap, with or without a plan.
func (s Snapshot) Exists() bool { return s.object != nil }

// Meta is what stands beside a plan in the annotations.
type Meta struct {
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	DecidedBy string    `json:"decidedBy,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// Read reads the plan ConfigMap.
func (s *Store) Read(ctx context.Context) (Snapshot, error) {
	cm, err := s.get(ctx, s.Plan)
	if err != nil || cm == nil {
		return Snapshot{}, err
	}
	return snapshotOf(cm), nil
}

func (s *Store) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %q in %q: %w", name, s.Namespace, err)
	}
	return &cm, nil
}

func snapshotOf(cm *corev1.ConfigMap) Snapshot {
	at, _ := time.Parse(time.RFC3339, cm.Annotations[plan.AnnotationDecidedAt]) // for display only
	return Snapshot{
		Document: plan.ParseDocument(cm.Data, cm.Annotations),
		Meta:     Meta{DecidedAt: at, DecidedBy: cm.Annotations[plan.AnnotationDecidedBy], Reason: cm.Annotations[plan.AnnotationReason]},
		object:   cm,
	}
}

// WritePlan writes the next plan over the snapshot it was decided on, at a revision above the snapshot's and above floor,
// the highest that was ever seen: a plan restored from a backup must not turn the count back. Only data.plan and
// ballast's own annotations change; people's pins, annotations and labels stay to the letter.
func (s *Store) WritePlan(ctx context.Context, base Snapshot, next plan.Plan, floor int64, m Meta) (Snapshot, error) {
	next.Revision = floor + 1
	if p := base.Document.Plan; p != nil {
		next.Revision = max(floor, p.Revision) + 1
	}
	text, err := plan.Encode(next)
	if err != nil {
		return base, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Plan, Labels: labels()}}
	if base.object != nil {
		cm = base.object.DeepCopy()
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	cm.Data[plan.KeyPlan] = text
	maps.Copy(cm.Annotations, annotations(next, text, m))
	if next.Rollout == nil {
		delete(cm.Annotations, plan.AnnotationStage)
	}
	if err := s.put(ctx, cm, base.object != nil); err != nil {
		return base, err
	}
	return snapshotOf(cm), nil
}

func annotations(p plan.Plan, text string, m Meta) map[string]string {
	a := map[string]string{
		plan.AnnotationRevision:  strconv.FormatInt(p.Revision, 10),
		plan.AnnotationDecidedAt: m.DecidedAt.UTC().Format(time.RFC3339),
		plan.AnnotationDecidedBy: m.DecidedBy,
		plan.AnnotationReason:    m.Reason,
		plan.AnnotationDigest:    plan.Digest(text),
	}
	if p.Rollout != nil {
		a[plan.AnnotationStage] = string(p.Rollout.Stage)
	}
	return a
}

// labels mark what ballast made, so that uninstall and people find it.
func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "ballast", "app.kubernetes.io/component": "planner", "app.kubernetes.io/part-of": "ballast"}
}

// put creates or updates a ConfigMap, which comes back as the API server stored it. An update carries the
// resourceVersion it was read at, so that a race is lost and never won by force.
func (s *Store) put(ctx context.Context, cm *corev1.ConfigMap, exists bool) error {
	name := cm.Name
	var err error
	if exists {
		err = s.Client.Update(ctx, cm)
	} else {
		err = s.Client.Create(ctx, cm)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), exists && apierrors.IsNotFound(err):
		return fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, ErrConflict)
	case err != nil:
		return fmt.Errorf("writing ConfigMap %q in %q: %w", name, s.Namespace, err)
	}
	return nil
}
