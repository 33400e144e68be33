// Package store keeps the plan and its history in two ConfigMaps. It is the planner's only writer of state: optimistic
// about concurrency (a lost race is read again, never overwritten), and silent about what does not change. The plan's
// ConfigMap is shared with people, so that a write names ballast's own keys and nothing else.
package store

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ballast/planner/store/seal"
)

var (
	// ErrConflict says that somebody else wrote the ConfigMap since it was read: read it again and decide anew.
	ErrConflict = errors.New("the ConfigMap was written by somebody else meanwhile")
	// ErrNotKept says that the plan was written and another one stands: something changed it on its way.
	ErrNotKept = errors.New("the plan was changed on its way into the ConfigMap")
	// ErrFull says that other keys or annotations leave the ConfigMap no room for what ballast writes.
	ErrFull = errors.New("the ConfigMap has no room left")
	// ErrImmutable says that somebody made the ConfigMap immutable: nothing but deleting it lets it be written again.
	ErrImmutable = errors.New("the ConfigMap is immutable: delete it, and ballast makes it anew")
)

const keySavedAt = "savedAt"

// Options say where the ConfigMaps are. Reader reads past any cache. Key is the Secret by whose key the planner knows
// its own plans; without one everything is shown as it stands, which is for people's commands.
type Options struct {
	Client    client.Client
	Reader    client.Reader
	Namespace string
	Plan      string
	History   string
	Key       string
}

// Store reads and writes the plan and its history. One with a Key believes neither before Unseal has read that.
type Store struct {
	Options
	*seal.Keeper
}

// New makes a Store.
func New(o Options) *Store {
	return &Store{Options: o, Keeper: seal.New(o.Client, o.Reader, o.Namespace, o.Key)}
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

func immutable(cm *corev1.ConfigMap) bool { return cm != nil && cm.Immutable != nil && *cm.Immutable }
